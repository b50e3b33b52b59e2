"""Requests that arrive by a schedule: what they wait is known from Lindley's recursion, in simulated time.

D. V. Lindley, "The theory of queues with a single server", Mathematical Proceedings of the Cambridge Philosophical
Society 48(2), 1952: a request waits for what the wait and the service of the one before it leave of the interval.
"""

import itertools
import statistics
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelbench.stats.arrivals import arrival_times
from accelbench.stats.summary import quantile
from accelbench_runner.clock import MonotonicClock
from accelbench_runner.launch import blocks
from accelbench_runner.launch.open_loop import Request, serve
from launch.simulation import Simulated

PAUSE = 500
"""One call in so many takes 50 ms, and all others 1 ms."""
SERVICES = [0.050 if number % PAUSE == PAUSE - 1 else 0.001 for number in range(2000)]
ARRIVALS = arrival_times(
    rate_per_second=455, process="poisson", requests=len(SERVICES), seed=0, case="all", round_number=1
)
"""At this rate the server is busy for half of the time."""


def lindley(arrivals: Sequence[float], services: Sequence[float]) -> list[float]:
    """Return the responses of a queue with one server."""
    waits = [0.0]
    for interval, service in zip(itertools.starmap(_interval, itertools.pairwise(arrivals)), services, strict=False):
        waits.append(max(0.0, waits[-1] + service - interval))
    return [wait + service for wait, service in zip(waits, services, strict=True)]


def _interval(earlier: float, later: float) -> float:
    return later - earlier


def served(arrivals: Sequence[float], services: Sequence[float], **machine: float) -> tuple[Request, ...]:
    simulated = Simulated(list(services), now=0.0, **machine)  # type: ignore[arg-type]
    return serve(simulated.work(), arrivals, simulated, blocks.ignore_result)


def assert_as_in_a_queue(time_of: Callable[[Request], float]) -> None:
    """Fail unless the requests' times, by `time_of`, are the responses of the queue."""
    found = [time_of(request) for request in served(ARRIVALS, SERVICES)]
    assert found == pytest.approx(lindley(ARRIVALS, SERVICES))


def test_responses_in_an_open_loop_are_those_of_lindleys_recursion() -> None:
    assert_as_in_a_queue(lambda request: request.response_seconds)


def test_timing_from_the_start_of_service_would_be_detected() -> None:
    with pytest.raises(AssertionError):
        assert_as_in_a_queue(lambda request: request.service_seconds)


def test_a_closed_loop_hides_the_wait_that_an_open_loop_shows_of_the_same_service() -> None:
    machine = Simulated(SERVICES, now=0.0)
    plan = blocks.BlockPlan(calls=1, blocks=len(SERVICES), collects_garbage=False, budget=1e9)
    closed = list(blocks.measure(machine.work(), plan, machine))
    requests = served(ARRIVALS, SERVICES)
    assert [request.service_seconds for request in requests] == pytest.approx(closed)
    assert quantile(closed, 99) == pytest.approx(0.001), "one call in 500 is slow: fewer than one in a hundred"
    assert quantile([request.response_seconds for request in requests], 99) > 0.025
    assert statistics.median(request.response_seconds for request in requests) < 0.002


def test_a_pause_delays_every_request_that_arrives_during_it() -> None:
    constant = [0.002 * number for number in range(1, 101)]
    services = [0.001] * 9 + [0.050] + [0.001] * 90
    found = [request.response_seconds for request in served(constant, services)]
    assert found[:9] == pytest.approx([0.001] * 9)
    assert found[9:59] == pytest.approx([0.050 - 0.001 * later for later in range(50)])
    assert found[59:] == pytest.approx([0.001] * 41)


@given(
    st.lists(
        st.tuples(st.floats(min_value=1e-5, max_value=0.1), st.floats(min_value=1e-5, max_value=0.1)),
        min_size=1,
        max_size=50,
    )
)
def test_waiting_times_of_any_schedule_are_those_of_a_queue(pairs: list[tuple[float, float]]) -> None:
    arrivals = list(itertools.accumulate(interval for interval, _ in pairs))
    services = [service for _, service in pairs]
    requests = served(arrivals, services)
    assert [request.response_seconds for request in requests] == pytest.approx(lindley(arrivals, services))
    assert [request.service_seconds for request in requests] == pytest.approx(services)
    assert [request.late_seconds for request in requests] == pytest.approx([0.0] * len(pairs), abs=1e-9)


def test_a_late_generator_is_distinguished_from_a_busy_server() -> None:
    constant = [0.010, 0.020, 0.021, 0.050]
    requests = served(constant, [0.002] * 4, wakes_late_seconds=0.0005)
    assert [request.late_seconds for request in requests] == pytest.approx([0.0005, 0.0005, 0.0, 0.0005])
    assert [request.response_seconds for request in requests] == pytest.approx([0.0025, 0.0025, 0.0035, 0.0025])


def test_each_request_gets_the_state_that_the_previous_one_returned() -> None:
    machine = Simulated([0.001], now=0.0)
    results: list[object] = []
    serve(machine.work(), [0.01, 0.02, 0.03], machine, results.append)
    assert results == [(3, None)]
    assert machine.events == ["fresh", *["synchronise"] * 4]


def test_a_wait_ends_at_its_moment_or_later_and_not_before() -> None:
    clock = MonotonicClock()
    for seconds in (-1.0, 0.0, 1e-4, 3e-3):
        moment = clock.seconds() + seconds
        clock.wait_until(moment)
        assert clock.seconds() >= moment
