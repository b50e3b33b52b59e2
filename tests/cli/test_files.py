from pathlib import Path

import pytest

from accelbench.api.run import BenchmarkRun
from accelbench.delivery.traces import trace_file
from accelbench.local.directory import (
    RunDirectory,
    RunRecord,
    load_result,
    reserve_numbered,
    write_atomically,
)
from accelbench.local.errors import OccupiedError, UnreadableResultError
from report import sample


def record(*cases: str) -> RunRecord:
    run = BenchmarkRun.model_validate(
        {
            "apiVersion": "accelbench.dev/v1alpha1",
            "kind": "BenchmarkRun",
            "metadata": {"name": "chain"},
            "spec": {"workload": {"name": "matmul-chain"}, "variants": [{"use": "jax/jit"}]},
        }
    )
    return RunRecord(accelbench="1", started="2026-11-21T09:00:00Z", cases=cases or ("all",), run=run)


def test_the_files_of_a_run_are_read_as_they_were_written(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "deep" / "out")
    directory.create()
    directory.write_record(record())
    directory.write_result(sample.result(), ['{"round": 1}', '{"round": 2}'])
    found, results = directory.load()
    assert found == record()
    assert results == (sample.result(),)
    assert (directory.path / "all.launches.jsonl").read_text() == '{"round": 1}\n{"round": 2}\n'


def test_a_case_that_was_not_reached_has_no_result_and_causes_no_error(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    directory.write_record(record("all", "other"))
    directory.write_result(sample.result(), [])
    assert len(directory.load()[1]) == 1


def test_results_of_an_earlier_run_are_not_taken_for_this_ones(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    directory.write_result(sample.result(), [])
    directory.delete_case("all")
    directory.write_record(record())
    assert directory.load()[1] == ()


def test_the_traces_of_an_earlier_run_are_deleted_with_its_results(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    names = [trace_file("all", 1, "jax/jit"), trace_file("all", 2, "jax-jit"), trace_file("all-more", 1, "jax/jit")]
    for name in names:
        (tmp_path / name).touch()
    directory.delete_case("all")
    assert [entry.name for entry in tmp_path.iterdir()] == names[2:]


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    write_atomically(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "new" * 100_000 + "\udcff")
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.json"]


def test_files_are_readable_by_others_as_files_usually_are(tmp_path: Path) -> None:
    write_atomically(tmp_path / "report.md", "text")
    assert (tmp_path / "report.md").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize(
    ("content", "message"),
    [("{", "not a result of accelbench"), ("{}", "not a result of accelbench: case: Field required")],
)
def test_a_file_that_is_no_result_is_named_with_the_problem(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "result.json"
    path.write_text(content)
    with pytest.raises(UnreadableResultError) as refusal:
        load_result(path)
    assert str(refusal.value).startswith(f"{path}: {message}")


def test_a_directory_that_no_run_wrote_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnreadableResultError, match=r"no run\.json in it"):
        RunDirectory(tmp_path).load()


def test_a_file_that_cannot_be_read_is_named() -> None:
    with pytest.raises(UnreadableResultError, match="absent: No such file"):
        load_result(Path("absent"))


def test_an_empty_or_new_directory_is_reserved(tmp_path: Path) -> None:
    RunDirectory(tmp_path / "deep" / "new").reserve()
    (tmp_path / "empty").mkdir()
    RunDirectory(tmp_path / "empty").reserve()
    assert (tmp_path / "deep" / "new").is_dir()


def test_a_directory_with_results_is_never_reserved_again(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path)
    directory.write_record(record())
    with pytest.raises(OccupiedError, match=r"already holds the results of a run; .* give --out another name"):
        directory.reserve()


def test_a_directory_with_anything_else_is_not_reserved_either(tmp_path: Path) -> None:
    (tmp_path / "report.md").write_text("somebody's own")
    with pytest.raises(OccupiedError, match="is not empty"):
        RunDirectory(tmp_path).reserve()


def test_a_name_in_use_gets_the_next_number(tmp_path: Path) -> None:
    taken = [reserve_numbered(tmp_path / "results" / "chain").path.name for _ in range(3)]
    assert taken == ["chain", "chain-2", "chain-3"]
