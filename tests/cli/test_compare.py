"""`accelbench compare`: what it reads, what it refuses, how it ends, what a script gets."""

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
    assert "jax/jit in B is 2.00 times as fast as in A" in text(done)
    assert "pytorch/eager equivalent 1.000x" in text(done)
    assert "from 5 launches in A and 5 launches in B" in text(done)
    assert "note: a machine drifts from run to run" in text(done)


def test_a_script_gets_it_as_json(tmp_path: Path) -> None:
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


def test_what_matters_refuses_says_what_to_do_and_can_be_insisted_on(tmp_path: Path) -> None:
    before = written(tmp_path / "a.json")
    after = written(tmp_path / "b.json", fingerprint={"version.jax": "0.11.0"})
    refused = compare(before, after)
    assert refused.exit_code == Exit.INVALID_MEASUREMENT
    assert "because what matters differs: versions (version.jax: 0.10.2 against 0.11.0)." in text(refused)
    assert "To compare anyway, add --allow-different versions" in text(refused)
    assert "differs A B group effect version.jax 0.10.2 0.11.0 versions refuses" in text(refused)
    assert "times as fast" not in refused.stdout
    insisted = compare(before, after, "--allow-different", "versions")
    assert insisted.exit_code == Exit.SUCCESS
    assert "compared although these differ: version.jax" in text(insisted)
    assert "version.jax 0.10.2 0.11.0 versions allowed" in text(insisted)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"fingerprint": {"cpusUsed": "1", "cpuLimit": "1.5"}}, "limits (cpusUsed: 2 against 1)."),
        ({"measurement": CaseMeasurement(precision="tf32", rounds_max=5)}, "precision (float32 against tf32)."),
        ({"fingerprint": {"workloadSource": "f" * 64}}, "source (workloadSource)."),
        ({"protocol": "episode"}, "protocol (steady against episode)."),
    ],
)
def test_a_refusal_names_what_differs_under_the_name_that_allows_it(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    before = written(tmp_path / "a.json", fingerprint={"workloadSource": "e" * 64})
    assert f"Not compared, because what matters differs: {said}" in text(
        compare(before, written(tmp_path / "b.json", **changes))
    )


def test_several_entries_of_a_group_are_named_once_together(tmp_path: Path) -> None:
    versions = {"version.jax": "0.11.0", "python": "3.12.1"}
    done = text(compare(written(tmp_path / "a.json"), written(tmp_path / "b.json", fingerprint=versions)))
    assert done.count("--allow-different") == 1
    named = done.partition("differs: ")[2].partition(". To compare")[0]
    assert named.startswith("versions (")
    assert named.count("; ") == 1
    assert {"0.11.0;", "0.11.0)"} & set(named.split())


def test_what_does_not_matter_has_no_effect(tmp_path: Path) -> None:
    done = compare(written(tmp_path / "a.json"), written(tmp_path / "b.json", fingerprint={"kernel": "7.0"}))
    assert "differs A B effect kernel" in text(done)
    assert "7.0 none" in text(done)


@pytest.mark.parametrize(
    ("name", "advice"),
    [("versoins", "did you mean versions?"), ("hardwear", "did you mean hardware?"), ("protocol", "never compared")],
)
def test_an_unknown_name_to_allow_is_a_usage_error_with_the_nearest(tmp_path: Path, name: str, advice: str) -> None:
    done = compare(written(tmp_path / "a.json"), written(tmp_path / "b.json"), "--allow-different", name)
    assert done.exit_code == Exit.USAGE
    assert advice in " ".join(done.stderr.replace("│", " ").split())


def test_a_name_that_may_differ_and_does_not_changes_nothing(tmp_path: Path) -> None:
    done = compare(written(tmp_path / "a.json"), written(tmp_path / "b.json"), "--allow-different", "version.jax")
    assert done.exit_code == Exit.SUCCESS
    assert "although" not in done.stdout


def test_what_is_not_there_or_no_result_is_refused(tmp_path: Path) -> None:
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
    assert "have no variant of a case in common" in text(done)
    assert "xor is only in" in text(done)


def test_a_directory_or_a_pattern_of_results_is_a_series_and_its_steps_are_told(tmp_path: Path) -> None:
    for day in range(1, 13):
        mood = 1 + 0.001 * (day * 7 % 5 - 2)
        factor = mood * (1.2 if day > 6 else 1)
        written(tmp_path / "nightly" / f"{day:02}" / "all.result.json", factor=factor, day=day)
    done = compare(tmp_path / "nightly/0[1-6]", tmp_path / "nightly")
    assert "from 6 results in A and 12 results in B" in text(done)
    assert "jax/jit takes 1.2 times as long since 2026-11-07T09:00:00Z (result 7 of 12" in text(done)
    assert "run-to-run drift" not in text(done)
    steps = json.loads(compare(tmp_path / "nightly/0[1-6]", tmp_path / "nightly", "-o", "json").stdout)["steps"]
    assert [(each["variant"], each["number"], each["of"]) for each in steps] == [("jax/jit", 7, 12)]


def test_without_what_finds_steps_the_verdicts_stand_and_it_says_what_to_install(
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
    assert "looking for steps needs ruptures: pip install 'accelbench[series]'" in text(done)
    assert "equivalent" in text(done)


def test_a_result_compared_with_itself_is_said_to_be_the_same_and_paths_are_named_once(tmp_path: Path) -> None:
    path = written(tmp_path / "a.result.json")
    done = compare(path, path)
    assert "A and B are the same results: there is nothing to compare." in text(done)
    assert "inconclusive" not in text(done).partition("variant")[0]
    other = compare(path, written(tmp_path / "b.result.json", factor=0.5))
    assert text(other).startswith("A: /")
    assert other.stdout.count("a.result.json") == 1


def sweep(path: Path, factors: Mapping[int, float], uses: tuple[str, str] = ("pytorch/eager", "jax/jit")) -> Path:
    """A result for each size, in which the second of `uses` takes so many times as long."""
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


def test_of_several_cases_every_sentence_and_row_says_which_it_is_about(tmp_path: Path) -> None:
    done = compare(sweep(tmp_path / "a", {32: 1, 64: 1}), sweep(tmp_path / "b", {32: 0.5, 64: 2}))
    assert "With size 32: jax/jit in B is 2.00 times as fast as in A" in text(done)
    assert "With size 64: jax/jit in B takes 2.00 times as long as in A" in text(done)
    sentences, _, rows = done.stdout.partition("variant")
    assert sentences.count(" in B") == sentences.count("With size ") == 6
    assert rows.count("size 32") == rows.count("size 64") == 3


def test_of_a_single_case_no_sentence_names_it(tmp_path: Path) -> None:
    before, after = sweep(tmp_path / "a", {32: 1}), sweep(tmp_path / "b", {32: 0.5})
    assert "size 32" not in text(compare(before, after))


@pytest.mark.parametrize(("factor", "ends"), [(1 / 1.0215, "1.018 to 1.025"), (1.0215, "0.976 to 0.982")])
def test_a_sentence_beside_an_inconclusive_row_says_no_verdict_and_why(
    tmp_path: Path, factor: float, ends: str
) -> None:
    done = text(compare(written(tmp_path / "a.json"), written(tmp_path / "b.json", factor=factor)))
    assert f"No verdict: jax/jit in B is {ends} times as fast as in A, which may be less than the margin of 2 %" in done
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
