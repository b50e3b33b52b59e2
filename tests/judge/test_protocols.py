"""Test that the protocol decides what is compared, and what the checks require."""

import math
from typing import Any

import pytest

from accelbench.api.case import Arrivals
from accelbench.api.result import Check
from accelbench.launch.record import Block, LaunchRecord
from accelbench_runner.judge.assessment import judge
from accelbench_runner.judge_protocol import Assessment, JudgeRequest
from accelbench_runner.supervisor.assemble import CaseTiming, assemble
from judge.launches import BASELINE, VARIANT, a_case, a_launch

CLOCK = {"resolution_seconds": 5e-8, "reading_seconds": 5e-8, "drift": 0.0}


def a_latency_launch(variant: str, number: int, *, typical: float, slow: float, **facts: Any) -> LaunchRecord:
    """Return a launch in which 98 % of the calls are typical and 2 % slow, slightly different in every round."""
    near = 1 + 0.0005 * math.sin(number * (2 if variant == VARIANT else 3))
    calls = [typical * near] * 980 + [slow * near] * 20
    return a_launch(variant, number, facts={"protocol": "latency", "clock": CLOCK, **facts}).model_copy(
        update={"blocks": tuple(Block(units=1, seconds=seconds) for seconds in calls)}
    )


def latency_rounds(count: int = 5) -> list[LaunchRecord]:
    return [
        launch
        for number in range(1, count + 1)
        for launch in (
            a_latency_launch(BASELINE, number, typical=0.002, slow=0.010),
            a_latency_launch(VARIANT, number, typical=0.001, slow=0.020),
        )
    ]


def assess(launches: list[LaunchRecord], **choices: Any) -> Assessment:
    return judge(JudgeRequest(case=a_case(**choices), launches=tuple(launches), directory="/nowhere"))


def check_of(assessment: Assessment, name: str, variant: str = VARIANT) -> Check:
    return next(each for each in assessment.certificate.checks if each.name == name and each.variant in {variant, None})


def test_the_median_decides_and_the_tail_is_compared_too() -> None:
    found = assess(latency_rounds())
    (middle,), (tail,) = found.comparisons, found.tail_comparisons
    assert (middle.quantity, middle.verdict, tail.quantity, tail.verdict) == ("p50", "faster", "p99", "slower")
    assert float(middle.lower or 0) < 2 < float(middle.upper or 0)
    assert float(tail.lower or 0) < 0.5 < float(tail.upper or 0)
    assert (middle.sentence.partition(":")[0], tail.sentence.partition(":")[0]) == ("p50", "p99")


def test_median_and_tail_share_the_error_of_their_pair() -> None:
    found = assess(latency_rounds(), comparisons=3)
    confidences = [float(each.confidence) for each in (*found.comparisons, *found.tail_comparisons)]
    assert confidences == pytest.approx([1 - 0.05 / 6] * 2)


def test_a_steady_case_has_no_tail_and_the_whole_error() -> None:
    found = assess([a_launch(name, number) for number in (1, 2) for name in (BASELINE, VARIANT)])
    assert found.tail_comparisons == ()
    assert found.comparisons[0].quantity is None
    assert found.comparisons[0].confidence == "0.95"


def test_the_result_holds_the_protocol_and_each_launches_tail() -> None:
    launches = latency_rounds()
    timing = CaseTiming(
        started="2026-01-01T00:00:00Z", finished="2026-01-01T00:00:01Z", total_seconds=1, judge_seconds=0
    )
    result = assemble(a_case(), launches, assess(launches), timing)
    assert result.protocol == "latency"
    assert [each.quantity for each in result.tail_comparisons] == ["p99"]
    launch = result.variants[1].launches[0]
    assert float(launch.seconds) == pytest.approx(0.001, rel=1e-3)
    assert float(launch.p99_seconds or 0) == pytest.approx(0.020, rel=1e-3)


def test_an_episode_counts_every_call() -> None:
    def pass_of(variant: str, number: int, first: float) -> LaunchRecord:
        calls = (first, 0.001, 0.001, 0.001)
        return a_launch(variant, number, facts={"protocol": "episode", "clock": CLOCK, "recompilations": 3}).model_copy(
            update={"blocks": tuple(Block(units=1, seconds=seconds + number * 1e-6) for seconds in calls)}
        )

    found = assess(
        [launch for n in range(1, 6) for launch in (pass_of(BASELINE, n, 0.013), pass_of(VARIANT, n, 0.005))]
    )
    assert float(found.comparisons[0].speedup or 0) == pytest.approx(2, rel=1e-2)
    assert check_of(found, "recompiled").outcome == "passed"
    assert "3 in the episode" in check_of(found, "recompiled").reading


def test_steady_and_latency_are_never_compared() -> None:
    launches = [
        launch
        for number in range(1, 6)
        for launch in (
            a_launch(BASELINE, number, facts={"protocol": "steady"}),
            a_latency_launch(VARIANT, number, typical=0.001, slow=0.02),
        )
    ]
    found = assess(launches)
    assert found.comparisons[0].invalid == ("same-protocol",)
    assert check_of(found, "same-protocol").reading == "latency and steady"


def test_requests_have_their_response_times_and_other_calls_their_service_times() -> None:
    launches = rounds_of_requests()
    found = assess(launches, protocol="arrivals", arrivals=Arrivals(rate_per_second=100))
    (middle,), (tail,) = found.comparisons, found.tail_comparisons
    assert (middle.quantity, middle.verdict, tail.quantity) == ("p50", "faster", "p99")
    assert float(middle.speedup or 0) == pytest.approx(0.006 / 0.002, rel=1e-2)
    assert middle.pays_back is None, "no request more is served because another one was served faster"
    spread = found.spread[VARIANT]
    assert float(spread.lower_p99_seconds or 0) < 0.008 < float(spread.upper_p99_seconds or 0)
    rate = check_of(found, "impossible-speed").reading.partition(",")[0]
    assert rate == "1.00 GFLOP/s", "1 MFLOP in a service of 1 ms, however long it waits"


def rounds_of_requests() -> list[LaunchRecord]:
    """Return rounds with services of 1 ms in responses of 6 or 2 ms; two in a hundred take four times as long."""
    launches = []
    for number in range(1, 6):
        for variant, response in ((BASELINE, 0.006), (VARIANT, 0.002)):
            near = 1 + 0.0005 * math.sin(number * (2 if variant == VARIANT else 3))
            responses = [response * near] * 980 + [4 * response * near] * 20
            facts = {
                "protocol": "arrivals",
                "clock": CLOCK,
                "lateness": {"median_seconds": 0.0, "p99_seconds": 1e-6},
                "unit": "request",
            }
            blocks = tuple(Block(units=1, seconds=0.001, response_seconds=seconds) for seconds in responses)
            launches.append(a_launch(variant, number, facts=facts).model_copy(update={"blocks": blocks}))
    return launches


def test_requests_without_a_response_have_no_time() -> None:
    launches = [
        launch.model_copy(update={"blocks": (Block(units=1, seconds=0.001),) * 100}) for launch in rounds_of_requests()
    ]
    found = assess(launches, protocol="arrivals", arrivals=Arrivals(rate_per_second=100))
    assert found.comparisons[0].speedup is None


def test_a_launch_must_report_a_known_protocol() -> None:
    found = assess([a_launch(name, 1, facts={"protocol": ["latency"]}) for name in (BASELINE, VARIANT)])
    assert found.comparisons[0].speedup is None


@pytest.mark.parametrize(
    ("call_seconds", "clock", "outcome"),
    [
        (20e-6, CLOCK, "passed"),
        (10e-6, CLOCK, "failed"),
        (20e-6, {**CLOCK, "resolution_seconds": 1e-6}, "failed"),
        (20e-6, {**CLOCK, "drift": 0.002}, "failed"),
        (20e-6, {**CLOCK, "drift": -0.0005}, "passed"),
    ],
)
def test_a_call_is_compared_with_the_clock_that_timed_it(
    call_seconds: float, clock: dict[str, float], outcome: str
) -> None:
    launches = [a_latency_launch(name, 1, typical=call_seconds, slow=1e-3, clock=clock) for name in (BASELINE, VARIANT)]
    assert check_of(assess(launches), "clock").outcome == outcome


def test_a_block_is_compared_with_more_than_a_call() -> None:
    short = [a_launch(name, 1, seconds=1e-4, block_seconds=1e-4) for name in (BASELINE, VARIANT)]
    assert check_of(assess(short), "clock").outcome == "failed"
