"""The report of a suite: rows, counts, means, and how each outcome is shown."""

import json
import re
from collections.abc import Callable

import pytest

from accelbench.report.suite import as_json, html, markdown, terminal, view
from accelbench.report.suite.view import Suite
from report import suite_sample
from report.suite_sample import EQUIVALENT, FASTER, INVALID, SLOWER, suite, suite_run


def test_the_mean_covers_all_cases_and_has_a_range() -> None:
    [summary] = suite_sample.decided().summaries
    assert summary.mean
    # 0.5, 4, 1.2 and 1: the product is 2.4.
    assert summary.mean.mean == pytest.approx(2.4 ** (1 / 4))
    assert summary.mean.lowest == pytest.approx((2.4 / 4) ** (1 / 3))
    assert summary.mean.highest == pytest.approx((2.4 / 0.5) ** (1 / 3))
    assert "of these 4 cases" in summary.mean_text


@pytest.mark.parametrize(
    ("spoiler", "reason"),
    [
        (suite_run("gone", None), "gone (not measured)"),
        (suite_run("broken", INVALID), "broken (invalid: shared-device)"),
        (suite_run("loud", suite_sample.sample.noisy()), "loud (noisy)"),
    ],
    ids=["missing", "invalid", "noisy"],
)
def test_a_case_without_a_valid_speedup_prevents_the_mean_and_is_named(spoiler: view.SuiteRun, reason: str) -> None:
    spoiled = Suite("demo", "", (*suite_sample.decided().runs, spoiler))
    [summary] = spoiled.summaries[:1]
    assert summary.mean is None
    assert reason in summary.mean_text
    assert summary.range_text == ""


def test_a_pair_that_some_cases_do_not_compare_has_no_mean() -> None:
    three = suite_run("three", suite_sample.sample.result(), uses=suite_sample.sample.USES)
    other = suite_run("four", suite_sample.sample.result(), uses=suite_sample.sample.USES)
    by_pair = {summary.pair.variant: summary for summary in suite(three, other, suite_run("two", FASTER)).summaries}
    assert by_pair["jax/jit"].mean
    assert by_pair["jax/op-by-op"].mean is None
    assert not by_pair["jax/op-by-op"].is_in_every_case


def test_a_case_without_times_is_shown_and_does_not_prevent_the_mean() -> None:
    observed = suite_run("observed", suite_sample.sample.observing())
    with_observed = Suite("demo", "", (*suite_sample.decided().runs, observed))
    assert with_observed.summaries[0].mean == suite_sample.decided().summaries[0].mean
    assert [row.label for row in with_observed.other_rows] == ["observed"]


def test_a_variant_measured_alone_is_listed_with_a_sentence() -> None:
    uses = suite_sample.sample.USES[:1]
    case, variant = suite_sample.sample.case(uses), suite_sample.sample.variant(uses[0], "0.001")
    alone = suite_sample.sample.result(case=case, variants=(variant,), comparisons=())
    [row] = suite(suite_run("alone", alone, uses=uses)).other_rows
    assert row.findings == view.view.sentences(alone) != ()


def test_every_outcome_is_counted() -> None:
    sentence = suite_sample.mixed().sentence
    assert sentence.startswith("10 comparisons in 8 cases: ")
    for count in ("2 faster", "1 equivalent", "1 slower", "2 inconclusive", "2 noisy", "1 invalid", "1 not measured"):
        assert count in sentence


def test_intervals_are_sorted_by_speedup() -> None:
    speedups = [cell.bounds.estimate for cell in suite_sample.mixed().sorted_cells if cell.bounds]
    assert speedups == sorted(speedups, reverse=True)
    table = view.comparison_table(suite_sample.mixed())
    assert table
    assert table.rows[0][0] == "faster-case"
    assert {row[0] for row in table.rows[-2:]} == {"invalid-case", "missing-case"}


def test_the_cases_of_a_sweep_are_rows_of_their_own() -> None:
    swept = suite_run("swept", None)
    axis = swept.run.model_validate(
        {
            **swept.run.model_dump(by_alias=True, exclude_none=True),
            "spec": {
                **swept.run.spec.model_dump(by_alias=True, exclude_none=True),
                "sweep": [{"name": "size", "values": [8, 16]}],
            },
        }
    )
    result = FASTER.model_copy(update={"case": FASTER.case.model_copy(update={"swept": {"size": 8}})})
    first_case = view.case_names(axis)[0]
    rows = suite(view.SuiteRun(axis, {first_case: result})).rows
    assert [row.cells[0].outcome for row in rows] == ["faster", "not measured"]
    assert rows[0].label == "swept (size 8)"


@pytest.mark.parametrize(
    ("result", "css_class"),
    [
        (FASTER, "above"),
        (SLOWER, "below"),
        (EQUIVALENT, "above"),
        (suite_sample.UNDECIDED, "above undecided"),
        (suite_sample.sample.noisy(), "none noisy"),
        (INVALID, "none"),
        (None, "none open"),
    ],
)
def test_only_verdicts_are_coloured_and_undecided_ones_hatched(result: view.Result | None, css_class: str) -> None:
    cell = suite(suite_run("one", result)).cells[0]
    assert html.show_cell(cell).css_class == css_class


def test_the_colour_is_centred_on_1_and_the_same_for_a_speedup_and_its_inverse() -> None:
    assert html.colour_share(1) == 0
    for speedup in (1.1, 2, 5, 8, 100):
        assert html.colour_share(speedup) == html.colour_share(1 / speedup)
    assert html.colour_share(1.5) < html.colour_share(3) < html.colour_share(8) == html.colour_share(1000)


def test_the_page_gives_the_reason_of_a_missing_verdict() -> None:
    page = html.report(suite_sample.mixed())
    cell = re.search(r'<li class="cell none">.*?invalid: shared-device.*?</li>', page)
    assert cell
    assert suite_sample.sample.CROWDED in page
    assert "color-mix" in page
    assert '<a href="faster-case/report.html">' in page


def test_a_result_without_a_framework_is_of_the_same_machine_and_another_version_is_not() -> None:
    def fingerprint(**changes: str) -> dict[str, str]:
        return {**suite_sample.sample.FINGERPRINT, **{f"version.{name}": text for name, text in changes.items()}}

    without_jax = {name: text for name, text in fingerprint().items() if name != "version.jax"}
    results = [FASTER.model_copy(update={"fingerprint": each}) for each in (without_jax, fingerprint())]
    same = suite(*(suite_run(f"case-{number}", result) for number, result in enumerate(results)))
    [line] = same.machines
    assert "JAX 0.10.2" in line
    newer = FASTER.model_copy(update={"fingerprint": fingerprint(jax="0.11.0")})
    other = Suite("demo", "", (*same.runs, suite_run("newer", newer)))
    assert len(other.machines) == 2
    assert len(other.notes) == len(same.notes) + 1


def test_texts_of_results_are_escaped() -> None:
    bad = suite_sample.compared("faster", "4.0", "3.9", "4.1", fingerprint={"cpu": "<script>alert(1)</script>"})
    assert "<script>" not in html.report(suite(suite_run("one", bad)))


def test_a_suite_without_any_result_has_a_page() -> None:
    empty = suite(suite_run("one", None), suite_run("two", None))
    assert "2 not measured" in html.report(empty)
    assert "2 not measured" in markdown.report(empty)


def test_json_has_the_numbers_or_the_reason_that_there_are_none() -> None:
    [summary] = json.loads(as_json.report(suite_sample.decided()))["summaries"]
    assert summary["geometricMeanOfTheseCases"] == "1.24467"
    document = json.loads(as_json.report(suite_sample.mixed()))
    assert "noMean" in document["summaries"][0]
    assert {entry["outcome"] for entry in document["comparisons"]} >= {"faster", "invalid", "not measured", "noisy"}


def test_the_reports_are_the_golden_ones(golden: Callable[[str, str], None]) -> None:
    page = html.report(suite_sample.mixed())
    golden("suite.md", markdown.report(suite_sample.mixed()))
    golden("suite.decided.md", markdown.report(suite_sample.decided()))
    golden("suite.html", re.sub(r"<style>.*?</style>|<svg.*?</svg>", "", page, flags=re.DOTALL))


def test_a_terminal_shows_the_same(golden: Callable[[str, str], None]) -> None:
    from rich.console import Console

    console = Console(width=100, record=True, file=None, quiet=False, force_terminal=False)
    with console.capture() as captured:
        console.print(terminal.report(suite_sample.decided()))
    golden("suite.txt", "\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n")
