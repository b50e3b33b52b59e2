"""Test `accelbench compare`: input, refusals, exit codes and JSON. tests/report holds the words of its report."""

import importlib.util
import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from accelbench.api.case import CaseMeasurement
from accelbench.cli.main import app
from accelbench.local.exits import Exit
from history.runs import run, scaled


def compare(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["compare", *map(str, arguments)], env={"COLUMNS": "100"})


def written(path: Path, *, factor: float = 1.0, day: int = 1, **changes: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(run({"jax/jit": scaled(factor)}, day=day, **changes).to_json())
    return path


def text(result: Result) -> str:
    return " ".join(result.stdout.split())


def test_two_results_end_with_a_verdict_for_each_variant(tmp_path: Path) -> None:
    done = compare(written(tmp_path / "a.result.json"), written(tmp_path / "b.result.json", factor=0.5))
    assert done.exit_code == Exit.SUCCESS, done.output
    assert "faster 2.00x" in text(done)
    assert "equivalent 1.000x" in text(done)


def test_a_comparison_is_available_as_json(tmp_path: Path) -> None:
    before, after = written(tmp_path / "a.json"), written(tmp_path / "b.json", factor=2, fingerprint={"kernel": "7"})
    done = compare(before, after, "--output", "json")
    found = json.loads(done.stdout)
    assert found["format"] == "accelbench.dev/comparison/v1alpha1"
    assert found["refused"] == []
    assert [each["name"] for each in found["differences"]] == ["kernel"]
    slower = next(each for each in found["comparisons"] if each["variant"] == "jax/jit")
    assert (slower["verdict"], float(slower["speedup"])) == ("slower", pytest.approx(0.5))
    assert float(slower["lower"]) < 0.5 < float(slower["upper"])
    assert slower["before"] == {"seconds": "0.000999999", "results": 1, "launches": 5}


def test_a_relevant_difference_is_refused_with_the_remedy_and_can_be_allowed(tmp_path: Path) -> None:
    before = written(tmp_path / "a.json")
    after = written(tmp_path / "b.json", fingerprint={"version.jax": "0.11.0"})
    refused = compare(before, after)
    assert refused.exit_code == Exit.INVALID_MEASUREMENT
    assert "--allow-different versions" in text(refused)
    found = json.loads(compare(before, after, "-o", "json").stdout)
    assert (found["refused"], found["comparisons"]) == (["version.jax"], [])
    insisted = compare(before, after, "--allow-different", "versions", "-o", "json")
    assert insisted.exit_code == Exit.SUCCESS
    assert json.loads(insisted.stdout)["insisted"] == ["version.jax"]


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"fingerprint": {"cpusUsed": "1", "cpuLimit": "1.5"}}, "cpusUsed"),
        ({"measurement": CaseMeasurement(precision="tf32", rounds_max=5)}, "precision"),
        ({"fingerprint": {"workloadSource": "f" * 64}}, "workloadSource"),
        ({"protocol": "episode"}, "protocol"),
    ],
)
def test_a_relevant_difference_is_refused_by_name(tmp_path: Path, changes: dict[str, Any], name: str) -> None:
    before = written(tmp_path / "a.json", fingerprint={"workloadSource": "e" * 64})
    done = compare(before, written(tmp_path / "b.json", **changes), "-o", "json")
    assert done.exit_code == Exit.INVALID_MEASUREMENT
    assert name in json.loads(done.stdout)["refused"]


def test_several_differences_of_a_group_are_named_together(tmp_path: Path) -> None:
    versions = {"version.jax": "0.11.0", "python": "3.12.1"}
    done = text(compare(written(tmp_path / "a.json"), written(tmp_path / "b.json", fingerprint=versions)))
    assert done.count("--allow-different versions") == 1


def test_an_irrelevant_difference_has_no_effect(tmp_path: Path) -> None:
    after = written(tmp_path / "b.json", fingerprint={"kernel": "7.0"})
    [difference] = json.loads(compare(written(tmp_path / "a.json"), after, "-o", "json").stdout)["differences"]
    assert (difference["name"], difference["matters"], difference["after"]) == ("kernel", False, ["7.0"])


@pytest.mark.parametrize(
    ("name", "advice"),
    [("versoins", "versions?"), ("hardwear", "hardware?"), ("protocol", "never compared")],
)
def test_an_unknown_name_to_allow_is_a_usage_error_with_the_nearest(tmp_path: Path, name: str, advice: str) -> None:
    done = compare(written(tmp_path / "a.json"), written(tmp_path / "b.json"), "--allow-different", name)
    assert done.exit_code == Exit.USAGE
    assert advice in " ".join(done.stderr.replace("│", " ").split())


def test_allowing_a_difference_that_does_not_exist_changes_nothing(tmp_path: Path) -> None:
    done = compare(written(tmp_path / "a.json"), written(tmp_path / "b.json"), "--allow-different", "version.jax")
    assert done.exit_code == Exit.SUCCESS
    assert "although" not in done.stdout


def test_a_missing_file_or_one_without_a_result_is_refused(tmp_path: Path) -> None:
    there = written(tmp_path / "a.json")
    (tmp_path / "empty").mkdir()
    (tmp_path / "other.json").write_text("{}")
    for path, message in (
        ("absent.json", "there is no"),
        ("empty", "contains no results"),
        ("other.json", "not a result of accelbench"),
    ):
        done = compare(there, tmp_path / path)
        assert done.exit_code == Exit.INVALID_SPEC
        assert message in done.stderr


def test_results_with_nothing_in_common_have_no_verdict(tmp_path: Path) -> None:
    other = run()
    case = other.case.model_copy(update={"workload": "xor"})
    (tmp_path / "b.json").write_text(other.model_copy(update={"case": case}).to_json())
    done = compare(written(tmp_path / "a.json"), tmp_path / "b.json")
    assert done.exit_code == Exit.INVALID_MEASUREMENT


def test_a_directory_or_a_pattern_of_results_is_a_series_and_its_steps_are_reported(tmp_path: Path) -> None:
    for day in range(1, 13):
        mood = 1 + 0.001 * (day * 7 % 5 - 2)
        factor = mood * (1.2 if day > 6 else 1)
        written(tmp_path / "nightly" / f"{day:02}" / "all.result.json", factor=factor, day=day)
    done = compare(tmp_path / "nightly/0[1-6]", tmp_path / "nightly")
    assert "2026-11-07T09:00:00Z" in text(done)
    found = json.loads(compare(tmp_path / "nightly/0[1-6]", tmp_path / "nightly", "-o", "json").stdout)
    assert (found["before"]["results"], found["after"]["results"]) == (6, 12)
    assert [(step["variant"], step["number"], step["of"]) for step in found["steps"]] == [("jax/jit", 7, 12)]


def test_without_the_extra_for_steps_verdicts_are_shown_and_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for day in range(1, 11):
        written(tmp_path / "nightly" / f"{day}.result.json", factor=1 + day / 1e5, day=day)
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "ruptures" else find(name, *more)
    )
    done = compare(tmp_path / "nightly", tmp_path / "nightly")
    assert done.exit_code == Exit.SUCCESS, done.output
    assert "accelbench[series]" in text(done)
    assert "equivalent" in text(done)


def test_a_result_compared_with_itself_is_reported_as_the_same_and_paths_are_named_once(tmp_path: Path) -> None:
    path = written(tmp_path / "a.result.json")
    done = compare(path, path)
    assert "inconclusive" not in text(done).partition("variant")[0]
    other = compare(path, written(tmp_path / "b.result.json", factor=0.5))
    assert other.stdout.count("a.result.json") == 1


def sweep(path: Path, factors: Mapping[int, float], uses: tuple[str, str] = ("pytorch/eager", "jax/jit")) -> Path:
    """Write a result for each size, in which the second of `uses` takes that many times as long."""
    path.mkdir()
    for size, factor in factors.items():
        seconds = {"pytorch/eager": scaled(1), "jax/jit": scaled(factor)}
        document = run(seconds, swept={"size": size}, parameters={"size": size}).to_json()
        for name, use in zip(seconds, uses, strict=True):
            document = document.replace(name, use)
        (path / f"{size}.result.json").write_text(document)
    return path


@pytest.mark.parametrize(
    "uses",
    [("pytorch/eager", "jax/jit"), ("pytorch/no-optimizer", "jax/jit-donated"), ("pytorch/" + "e" * 30, "jax/j")],
)
def test_eighty_columns_show_both_sides_of_every_case_and_cut_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uses: tuple[str, str]
) -> None:
    monkeypatch.chdir(tmp_path)
    sweep(Path("a"), {32: 1.8319, 64: 1.8319}, uses)
    sweep(Path("b"), {32: 1.868, 64: 0.91234}, uses)
    narrow, wide = (
        CliRunner().invoke(app, ["compare", "a", "b"], env={"COLUMNS": columns}).stdout for columns in ("80", "300")
    )
    assert all(len(line) <= 80 for line in narrow.splitlines())
    missing = Counter(wide.split()) - Counter(narrow.split())
    # A list has no head and repeats the names of columns.
    assert set(missing) <= {"variant"}
    assert len(re.findall(r"\d (?:ms|µs)(?!\w)", narrow)) == 2 * 2 * 2


def test_every_sentence_and_row_names_its_case_if_there_are_several(tmp_path: Path) -> None:
    done = compare(sweep(tmp_path / "a", {32: 1, 64: 1}), sweep(tmp_path / "b", {32: 0.5, 64: 2}))
    sentences, _, rows = done.stdout.partition("variant")
    assert sentences.count("size 32") == sentences.count("size 64") == 3
    assert rows.count("size 32") == rows.count("size 64") == 3


def test_no_sentence_names_a_single_case(tmp_path: Path) -> None:
    before, after = sweep(tmp_path / "a", {32: 1}), sweep(tmp_path / "b", {32: 0.5})
    assert "size 32" not in text(compare(before, after))


@pytest.mark.parametrize(("factor", "ends"), [(1 / 1.0215, "1.018 to 1.025"), (1.0215, "0.976 to 0.982")])
def test_the_sentence_of_an_inconclusive_row_gives_no_verdict_and_the_reason(
    tmp_path: Path, factor: float, ends: str
) -> None:
    done = text(compare(written(tmp_path / "a.json"), written(tmp_path / "b.json", factor=factor)))
    assert done.count(ends) == 2
    assert re.search(rf"jax/jit inconclusive \S+ {ends}", done)


def test_the_note_on_single_runs_names_a_page_that_explains_it(tmp_path: Path) -> None:
    done = text(compare(written(tmp_path / "a.json"), written(tmp_path / "b.json")))
    [page] = re.findall(r"docs/\S+\.md", done)
    explained = (Path(__file__).parents[2] / page).read_text()
    assert "## Two runs" in explained


def test_sixty_columns_split_no_word_of_a_comparison(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sides = written(Path("a.json")), written(Path("b.json"), factor=0.5)
    narrow, wide = (
        CliRunner().invoke(app, ["compare", *map(str, sides)], env={"COLUMNS": columns}).stdout
        for columns in ("60", "300")
    )
    assert set(wide.split()) - {"variant"} <= set(narrow.split())
