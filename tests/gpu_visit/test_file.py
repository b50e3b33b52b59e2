"""Files from another machine are read with care: incomplete lines, other documents, unsafe names."""

import json
import zipfile
from pathlib import Path

import pytest

from gpu_visit import attempts, machine
from gpu_visit.attempts import InvalidAttemptError, Setting, VisitAttempt
from gpu_visit.plan import Attempt

SETTING = Setting(device="NVIDIA H100 80GB HBM3", jax="0.11.2", torch="2.11.0")


def line(**changes: object) -> VisitAttempt:
    made = Attempt("item", "question", "2026-11-26T19:00:00Z", "measured", 3, 3, 61.5)
    attempt = VisitAttempt.of(made, setting=SETTING, began="2026-11-26T19:01:00Z", message="", files={"run.json": "{}"})
    return attempt.model_copy(update=changes)


def test_attempts_are_read_back_as_they_were_appended(tmp_path: Path) -> None:
    file = tmp_path / "out" / "visit.jsonl"
    assert attempts.read(file) == []
    written = [line(item="first"), line(item="second")]
    for each in written:
        attempts.append(file, each)
    assert attempts.read(file) == written
    assert written[0].planned == Attempt("first", "question", "2026-11-26T19:00:00Z", "measured", 3, 3, 61.5)


def test_an_incomplete_line_affects_no_other_line(tmp_path: Path) -> None:
    file = tmp_path / "visit.jsonl"
    attempts.append(file, line(item="first"))
    with file.open("ab") as half:
        half.write(b'{"format": "accelbench.dev/gpu-vi')
    attempts.append(file, line(item="second"))
    assert [attempt.item for attempt in attempts.read(file)] == ["first", "second"]


@pytest.mark.parametrize(
    ("field", "value"),
    [("files", {"../../escape": "x"}), ("files", {"/etc/passwd": "x"}), ("outcome", "perfect"), ("format", "other/v9")],
)
def test_an_invalid_line_is_refused_with_its_number_and_field(tmp_path: Path, field: str, value: object) -> None:
    document = json.loads(line().model_dump_json(by_alias=True)) | {field: value}
    file = tmp_path / "visit.jsonl"
    file.write_text(json.dumps(document) + "\n")
    with pytest.raises(InvalidAttemptError, match=f"line 1: {field}"):
        attempts.read(file)


def test_a_device_s_directory_is_its_name_in_one_word() -> None:
    assert SETTING.directory == "nvidia-h100-80gb-hbm3"
    assert Setting(device="NVIDIA A100-SXM4 (40GB)", jax="1", torch="2").directory == "nvidia-a100-sxm4-40gb"


def test_a_result_is_continued_with_another_driver_but_not_with_other_frameworks_or_devices() -> None:
    assert SETTING.continues(SETTING.model_copy(update={"driver": "580.1"}))
    for name in ("device", "jax", "torch"):
        assert not SETTING.continues(SETTING.model_copy(update={name: "another"}))


def test_wheels_that_are_missing_or_older_than_the_checkout_are_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(machine.CannotMakeEnvironmentError, match="make gpu-visit-wheels"):
        machine.make_environment(tmp_path, tmp_path / "work")
    with zipfile.ZipFile(tmp_path / "accelbench-0.1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("accelbench/document.py", "# an older form\n")
    with pytest.raises(machine.CannotMakeEnvironmentError, match=r"accelbench/document\.py"):
        machine.make_environment(tmp_path, tmp_path / "work")
