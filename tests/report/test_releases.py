"""A suite that compares releases shows what each makes of a call, and what else its environment changed."""

import json
import re
from collections.abc import Callable

import pytest
from rich.console import Console

from accelbench.report.suite import as_json, html, markdown, releases, terminal
from accelbench.report.suite.view import Suite
from report import sample, suite_sample
from report.suite_sample import JIT, environment, program, released, suite_run

OLD, MIDDLE, NEW = suite_sample.RELEASES


def of(*results: sample.Result) -> Suite:
    return Suite("demo", "", tuple(suite_run(f"case-{n}", result, uses=(JIT,)) for n, result in enumerate(results)))


def test_a_number_that_changes_is_shown_with_the_release_that_changes_it() -> None:
    [table] = releases.program_tables(suite_sample.versions())
    assert [column.name for column in table.columns] == ["case", "counted", OLD, MIDDLE, NEW, "changes with"]
    assert ("layer-norm", "kernels in a call", "6", "6", "1", NEW) in table.rows
    assert ("layer-norm", "read and written in a call", "103 MB", "103 MB", "33.6 MB", NEW) in table.rows
    assert ("chain", "kernels in a call", "100", "100", "100", "") in table.rows


def test_the_first_sentence_names_the_cases_whose_program_changes_and_the_release() -> None:
    assert f"in 1 of 2 cases: layer-norm (with {NEW})." in releases.sentence(suite_sample.versions())


def test_without_a_change_it_says_so_only_of_what_is_counted() -> None:
    same = of(released([environment(OLD), environment(NEW)], [program(6, 100)] * 2, ()))
    assert "the same in all releases, as far as it is counted, in 1 case" in releases.sentence(same)


def test_an_unknown_number_is_shown_as_such_and_is_no_change() -> None:
    environments = [environment(release) for release in suite_sample.RELEASES]
    [kernels, _] = releases.release_numbers(
        of(released(environments, [program(6, 1), program(None, 1), program(6, 1)], ()))
    )
    assert kernels.changes == ()
    [table] = releases.program_tables(of(released(environments, [program(6, 1), program(None, 1), program(6, 1)], ())))
    assert table.rows[0] == ("case-0", "kernels in a call", "6", "unknown", "6")


def test_programs_are_compared_although_a_check_rejects_the_times() -> None:
    result = released([environment(OLD), environment(NEW)], [program(6, 100), program(1, 30)], ())
    disturbed = result.model_copy(update={"comparisons": (), "rounds": 0})
    [table] = releases.program_tables(of(disturbed))
    assert table.rows[0][-1] == NEW


def test_other_packages_are_listed_without_those_that_come_with_the_framework() -> None:
    [packages] = releases.other_packages(suite_sample.versions())
    assert [(package.name, tuple(package.versions.values())) for package in packages] == [
        ("flax", ("0.12.6", "0.12.6", "0.12.8"))
    ]


def test_a_package_that_only_one_environment_has_and_another_python_are_listed() -> None:
    newer = environment(NEW, **{"ml-dtypes": "0.5.4"}).model_copy(update={"python_version": "3.12.3"})
    [packages] = releases.other_packages(of(released([environment(OLD), newer], [program(1, 1)] * 2, ())))
    assert {package.name: tuple(package.versions.values()) for package in packages} == {
        "Python": ("3.11.7", "3.12.3"),
        "ml-dtypes": ("none", "0.5.4"),
    }


def test_if_nothing_else_differs_a_note_says_so() -> None:
    same = of(released([environment(OLD), environment(NEW)], [program(1, 1)] * 2, ()))
    assert releases.package_tables(same) == ()
    assert any("Nothing else differs" in note for note in releases.notes(same))


@pytest.mark.parametrize("suite", [suite_sample.mixed(), of(released([environment(OLD)], [program(1, 1)], ()))])
def test_a_suite_without_releases_shows_none(suite: Suite) -> None:
    assert releases.sentence(suite) == ""
    assert releases.program_tables(suite) == releases.package_tables(suite) == releases.notes(suite) == ()


def test_json_has_programs_and_packages() -> None:
    document = json.loads(as_json.report(suite_sample.versions()))
    assert {"case": "layer-norm", "number": "kernelsPerCall", "byRelease": {OLD: 6, MIDDLE: 6, NEW: 1}} in document[
        "programs"
    ]
    assert document["alsoDifferent"] == [{"flax": {OLD: "0.12.6", MIDDLE: "0.12.6", NEW: "0.12.8"}}]


def test_the_reports_are_the_golden_ones(golden: Callable[[str, str], None]) -> None:
    suite = suite_sample.versions()
    golden("versions.md", markdown.report(suite))
    golden("versions.html", re.sub(r"<style>.*?</style>|<svg.*?</svg>", "", html.report(suite), flags=re.DOTALL))
    console = Console(width=100, record=True, file=None, quiet=False, force_terminal=False)
    with console.capture() as captured:
        console.print(terminal.report(suite))
    golden("versions.txt", "\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n")
