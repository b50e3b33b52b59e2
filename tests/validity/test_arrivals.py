"""The checks of cases in which requests arrive: their generator is on time, and no variant is too slow for the rate."""

from typing import Any

import pytest

from accelbench.api.case import Arrivals, Case
from accelbench.api.result import Check
from accelbench.launch.record import Block, LaunchRecord
from accelbench.validity.certificate import certify
from accelbench.validity.evidence import Evidence
from accelbench.validity.quarantine import split_disturbed
from judge.launches import BASELINE, VARIANT, a_case, a_launch

ON_TIME = {"median_seconds": 1e-7, "p99_seconds": 2e-5}


def case_with_arrivals(rate: int = 100) -> Case:
    return a_case(protocol="arrivals", arrivals=Arrivals(rate_per_second=rate))


def requests(
    variant: str = VARIANT, number: int = 1, *, service: float = 0.002, response: float = 0.003, **facts: Any
) -> LaunchRecord:
    blocks = (Block(units=1, seconds=service, response_seconds=response),) * 100
    launch = a_launch(variant, number, facts={"protocol": "arrivals", "lateness": ON_TIME, **facts})
    return launch.model_copy(update={"blocks": blocks})


def checks_of(name: str, *launches: LaunchRecord, rate: int = 100) -> list[Check]:
    certificate = certify(Evidence(case=case_with_arrivals(rate), launches=launches))
    return [check for check in certificate.checks if check.name == name]


@pytest.mark.parametrize(
    ("service", "outcome", "reading"),
    [
        (0.0050, "passed", "busy for 50 % of the time at 100 requests a second"),
        (0.0090, "passed", "busy for 90 % of the time at 100 requests a second"),
        (0.0096, "failed", "busy for 96 % of the time at 100 requests a second; at most 93 a second would do"),
        (0.0200, "failed", "busy for 200 % of the time at 100 requests a second; at most 45 a second would do"),
        (2.0000, "failed", "busy for 20000 % of the time at 100 requests a second; even one a second is too many"),
    ],
)
def test_a_variant_that_is_busy_nearly_always_is_saturated_and_the_highest_rate_is_named(
    service: float, outcome: str, reading: str
) -> None:
    (check,) = checks_of("saturated", *(requests(number=number, service=service) for number in range(1, 4)))
    assert (check.variant, check.outcome, check.reading) == (VARIANT, outcome, reading)


def test_one_slow_launch_does_not_saturate_a_variant() -> None:
    launches = [requests(number=number, service=0.02 if number == 2 else 0.005) for number in range(1, 4)]
    (check,) = checks_of("saturated", *launches)
    assert check.outcome == "passed"


def test_the_other_variant_is_not_saturated() -> None:
    slow, fast = checks_of("saturated", requests(BASELINE, service=0.02), requests(service=0.001))
    assert (slow.variant, slow.outcome) == (BASELINE, "failed")
    assert (fast.variant, fast.outcome) == (VARIANT, "passed")


@pytest.mark.parametrize(("late_seconds", "outcome"), [(2.9e-5, "passed"), (3.1e-5, "failed")])
def test_a_hundredth_of_the_median_response_is_the_limit_of_lateness(late_seconds: float, outcome: str) -> None:
    lateness = {"median_seconds": 1e-6, "p99_seconds": late_seconds}
    (check,) = checks_of("generator-late", requests(lateness=lateness))
    assert check.outcome == outcome
    assert "of their time, median response 3.00 ms" in check.reading


@pytest.mark.parametrize("lateness", [None, {"median_seconds": -1.0, "p99_seconds": 0.0}, "soon"])
def test_lateness_that_no_launch_reports_does_not_pass(lateness: Any) -> None:
    (check,) = checks_of("generator-late", requests(lateness=lateness))
    assert check.outcome == "untested"


def test_a_round_with_a_late_generator_is_repeated() -> None:
    late = {"median_seconds": 0.0, "p99_seconds": 0.001}
    launches = [requests(name, number) for number in (1, 3) for name in (BASELINE, VARIANT)]
    launches += [requests(BASELINE, 2), requests(VARIANT, 2, lateness=late)]
    split = split_disturbed(case_with_arrivals(), launches)
    assert {launch.round for launch in split.quarantined} == {2}
    assert split.reasons[2][0].startswith(f"generator-late for {VARIANT}: 99 % of the requests began within 1.00 ms")


def test_a_server_that_waits_for_requests_is_not_idle_but_one_that_sleeps_in_them_is() -> None:
    def doubt(busy_seconds: float) -> str:
        idle = {"seconds": 10.0, "busy_seconds": busy_seconds}
        (check,) = checks_of("work-present", requests(service=0.002, idle=idle))
        return check.outcome

    assert doubt(0.2) == "passed", "100 services of 2 ms"
    assert doubt(0.02) == "untested"
