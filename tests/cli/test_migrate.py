"""`accelbench migrate`: a result of an older accelbench says the same in today's format."""

import json
from pathlib import Path
from typing import Any

import pytest

from accelbench.api.numbers import Numbers
from accelbench.api.result import Result
from accelbench.cli.migrate import migrated
from accelbench.local.directory import RunRecord
from cli.command import ROOT, accelbench
from report import sample

NUMBERS = Numbers(
    units_per_call=4,
    parity="0.5",
    flops_per_unit="2000000",
    flops_per_second="2000000000",
    bytes_per_second="1000000",
    share_of_limit="0.5",
    limit_flops_per_second="4000000000",
    peak_memory_bytes=7,
    cpu_joules_per_unit="0.25",
    kernels_per_call=3,
    products_per_call=5,
)


def today() -> Result:
    variants = (sample.variant(use, "0.001").model_copy(update={"numbers": NUMBERS}) for use in sample.USES)
    return sample.result(variants=tuple(variants))


def as_it_was(result: Result, *, median: float = 1.0) -> dict[str, Any]:
    """The document as an older accelbench wrote it, whose rates are of the median: so many times today's time."""
    document: dict[str, Any] = json.loads(result.to_json()) | {"stopped": "target-met"}
    for variant in document["variants"]:
        numbers = variant.pop("numbers")
        time = variant["seconds"].pop("geometricMeanSeconds")
        variant["seconds"]["medianSeconds"] = str(float(time) * median)
        for launch in variant["launches"]:
            launch["stepsPerBlock"] = launch.pop("unitsPerBlock")
        variant["executable"] = {"kernelsPerCall": numbers.pop("kernelsPerCall")}
        cost = {name: numbers.pop(name) for name in ("flopsPerUnit", "bytesPerSecond", "limitFlopsPerSecond")}
        cost |= {"flopsPerSecond": numbers["flopsPerSecond"], "share": numbers.pop("shareOfLimit")}
        cost |= {"joulesPerUnit": numbers.pop("cpuJoulesPerUnit"), "energySource": "rapl"}
        cost |= {name: variant.pop(name) for name in ("bound", "limits")}
        variant |= {**numbers, "cost": cost}
    return document


def test_every_number_is_where_it_is_today() -> None:
    assert Result.model_validate(migrated(as_it_was(today()))) == today()


def test_what_is_in_todays_format_stays_as_it_is() -> None:
    document = json.loads(today().to_json())
    assert migrated(document) == document


def test_rates_of_the_median_become_rates_of_the_time() -> None:
    [first, *_] = Result.model_validate(migrated(as_it_was(today(), median=2.0))).variants
    assert first.seconds is not None
    assert first.seconds.geometric_mean_seconds == "0.001"
    assert (first.numbers.flops_per_second, first.numbers.share_of_limit) == ("4000000000", "1")
    assert first.numbers.cpu_joules_per_unit == "0.125"


def test_without_every_launch_there_is_no_time_and_a_note_says_so() -> None:
    document = as_it_was(today())
    for variant in document["variants"]:
        variant["launches"] = variant["launches"][::4]
    found = Result.model_validate(migrated(document))
    assert {variant.seconds for variant in found.variants} == {None}
    assert {variant.numbers.flops_per_second for variant in found.variants} == {None}
    assert "no time of a variant is known" in found.notes[-1]


def test_a_directory_is_rewritten_in_its_place_once(tmp_path: Path) -> None:
    old = tmp_path / "claims" / "all.result.json"
    old.parent.mkdir()
    old.write_text(json.dumps(as_it_was(today())))
    record = tmp_path / "run.json"
    stored = (ROOT / "docs/results/claims/cpu/28-xor-with-nn/run.json").read_text()
    now = json.loads(RunRecord.model_validate_json(stored).to_json())
    record.write_text(json.dumps({**now, "run": {**now["run"], "status": {"cases": {"succeeded": 0}}}}))
    assert accelbench("migrate", str(tmp_path), cwd=tmp_path).stdout == "2 rewritten\n"
    assert json.loads(record.read_text()) == now
    assert Result.model_validate_json(old.read_text()) == today()
    assert accelbench("migrate", str(old), cwd=tmp_path).stdout == "0 rewritten\n"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"variants": 1, "rounds": 2}', '{"variants": [], "rounds": 2}'])
def test_what_is_no_result_is_left_alone(tmp_path: Path, text: str) -> None:
    file = tmp_path / "mine.json"
    file.write_text(text)
    done = accelbench("migrate", str(file), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert f"{file}: " in done.stderr
    assert file.read_text() == text
