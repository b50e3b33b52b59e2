"""Facts of work that was not done or not awaited fail, and those of honest launches pass."""

from typing import Any

import pytest

from accelbench.api.result import Check
from accelbench.launch.record import LaunchRecord
from accelbench.validity.certificate import certify
from accelbench.validity.evidence import Evidence
from judge.launches import BASELINE, VARIANT, a_case, a_launch, with_facts

STEP = 0.01
H100 = {"platform": "cuda", "name": "NVIDIA H100 80GB HBM3", "count": 1}
LIMITS = {"flops_per_second": 1e11, "bytes_per_second": 1e10}


def check(name: str, *launches: LaunchRecord, precision: str = "float32") -> Check:
    """Of the variant; limits are those that two launches measured."""
    if name == "impossible-speed" and len(launches) == 1:
        launches = (*launches, launches[0].model_copy(update={"round": 2}))
    certificate = certify(Evidence(case=a_case(precision=precision), launches=launches))
    return next(each for each in certificate.checks if each.name == name and each.variant in {VARIANT, None})


def computing(flops: float, **facts: Any) -> LaunchRecord:
    """Return a launch whose steps of 10 ms declare this many operations, and no bytes."""
    return a_launch(seconds=STEP, facts={"flopsPerUnit": flops, "bytesPerUnit": 0, "limits": LIMITS, **facts})


def moving(moved: float, working_set: int, cache: int | None) -> LaunchRecord:
    held = {"bytes": working_set, "cache_bytes": cache}
    return a_launch(seconds=STEP, facts={"flopsPerUnit": 0, "bytesPerUnit": moved, "workingSet": held})


@pytest.mark.parametrize(("gigas", "outcome"), [(90.0, "passed"), (140, "passed"), (160, "failed")])
def test_more_operations_than_the_measured_limit_allows_were_not_done(gigas: float, outcome: str) -> None:
    found = check("impossible-speed", computing(gigas * 1e9 * STEP))
    assert found.outcome == outcome
    assert f"{gigas} GFLOP/s, where the device reaches 100 GFLOP/s (measured)" in found.reading


@pytest.mark.parametrize(
    ("precision", "teras", "outcome"),
    [
        ("float32", 67, "passed"),
        ("float32", 70, "failed"),
        ("tf32", 490, "passed"),
        ("bfloat16", 980, "passed"),
        ("bfloat16", 1100, "failed"),
    ],
)
def test_a_data_sheet_is_applied_exactly_and_before_measured_limits(precision: str, teras: float, outcome: str) -> None:
    found = check("impossible-speed", computing(teras * 1e12 * STEP, device=H100), precision=precision)
    assert found.outcome == outcome
    assert "(data sheet)" in found.reading


def test_the_best_launch_of_the_case_sets_the_limit_of_the_device() -> None:
    slow = computing(1.6e11 * STEP)
    other = a_launch(BASELINE, facts={"limits": {"flops_per_second": 2e11, "bytes_per_second": 1e10}})
    assert check("impossible-speed", slow).outcome == "failed"
    assert check("impossible-speed", slow, other).outcome == "passed"


def test_a_limit_that_only_one_launch_measured_is_not_applied() -> None:
    quick = computing(3e11 * STEP)
    unmeasured = with_facts(quick, limits=None).model_copy(update={"round": 2})
    found = check("impossible-speed", quick, unmeasured)
    assert found.outcome == "untested"
    assert found.reading.endswith("only one launch measured that limit, which may be too low")


def test_one_impossible_launch_is_enough() -> None:
    honest, boasting = computing(0.5e11 * STEP), computing(0.5e11 * STEP)
    quick = boasting.model_copy(
        update={"round": 2, "blocks": tuple(b.model_copy(update={"seconds": b.seconds / 4}) for b in boasting.blocks)}
    )
    found = check("impossible-speed", honest, quick)
    assert found.outcome == "failed"
    assert found.reading.startswith("round 2: 200 GFLOP/s")


@pytest.mark.parametrize(("share", "outcome"), [(5.9, "passed"), (6.1, "failed")])
def test_convolutions_may_skip_three_quarters_of_the_direct_methods_operations(share: float, outcome: str) -> None:
    operations = {"declared": {"products": 0, "convolutions": 2}, "found": None, "source": None}
    found = check("impossible-speed", computing(share * LIMITS["flops_per_second"] * STEP, operations=operations))
    assert found.outcome == outcome


@pytest.mark.parametrize(
    ("working_set", "cache", "outcome"),
    [(401, 100, "failed"), (400, 100, "untested"), (400_000, None, "untested")],
)
def test_bytes_count_only_where_no_cache_can_hold_them(working_set: int, cache: int | None, outcome: str) -> None:
    assert check("impossible-speed", moving(2e10 * STEP, working_set, cache)).outcome == outcome


def test_bytes_that_memory_can_move_pass() -> None:
    found = check("impossible-speed", moving(0.9e10 * STEP, 401, 100))
    assert (found.outcome, found.reading) == ("passed", "9.00 GB/s, where the device reaches 10.0 GB/s (measured)")


def test_no_time_is_impossible_without_limits_or_declared_work() -> None:
    nothing = a_launch(facts={"flopsPerUnit": 0, "bytesPerUnit": 0})
    assert "declares neither" in check("impossible-speed", nothing).reading
    unknown = with_facts(computing(1e30), limits=None)
    assert check("impossible-speed", unknown).outcome == "untested"


def synchronised(late: float, *, of: float = 0.2, number: int = 1, ready: bool | None = True) -> LaunchRecord:
    runs = [{"seconds": 0.01, "late_seconds": 0.0}, {"seconds": of, "late_seconds": late}]
    return a_launch(number=number, facts={"synchronisation": {"runs": runs, "ready": ready}})


@pytest.mark.parametrize(
    ("late", "of", "outcome"),
    [(0.0, 0.2, "passed"), (0.009, 0.2, "passed"), (0.012, 0.2, "failed"), (0.004, 0.01, "passed"),
     (0.006, 0.01, "failed")],
)  # fmt: skip
def test_work_that_continues_after_the_clock_stopped_fails(late: float, of: float, outcome: str) -> None:
    found = check("unsynchronised", *(synchronised(late, of=of, number=number) for number in (1, 2)))
    assert found.outcome == outcome
    assert f"busy for {1000 * late:.3g} ms after {1000 * of:.3g} ms of calls" in found.reading or not late


def test_late_work_fails_only_if_it_is_in_every_launch() -> None:
    assert check("unsynchronised", synchronised(0.1)).outcome == "untested"
    late = [synchronised(0.1, number=number) for number in (1, 2)]
    assert check("unsynchronised", *late).outcome == "failed"
    assert check("unsynchronised", *late, synchronised(0.0, number=3)).outcome == "passed"


def test_an_output_that_is_not_ready_in_one_launch_fails() -> None:
    found = check("unsynchronised", synchronised(0.0), synchronised(0.0, number=2, ready=False))
    assert (found.outcome, found.reading) == ("failed", "an output was not ready after synchronisation")


@pytest.mark.parametrize(("least", "outcome"), [(0.99, "passed"), (1.5, "passed"), (0.5, "failed")])
def test_a_host_that_times_less_than_the_device_did_not_wait(least: float, outcome: str) -> None:
    found = check("unsynchronised", a_launch(facts={"hostOverDevice": {"least": least}}))
    assert found.outcome == outcome
    assert outcome == "passed" or "0.50 of the time between the device's events" in found.reading


def test_emulated_devices_check_mechanics_only() -> None:
    found = check("emulated", a_launch(facts={"emulated": "XLA makes 4 devices of one host's processor"}))
    assert (found.outcome, found.reading) == (
        "failed",
        "XLA makes 4 devices of one host's processor: mechanics only",
    )


@pytest.mark.parametrize("name", ["synchronisation", "emulated"])
def test_a_launch_that_does_not_report_late_work_has_no_verdict(name: str) -> None:
    found = check({"synchronisation": "unsynchronised"}.get(name, name), with_facts(a_launch(), **{name: None}))
    assert (found.outcome, "did not report" in found.reading) == ("failed", True)
