from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelbench.api.result import SpeedupEstimate
from accelbench.delivery.log import (
    Event,
    LaunchFinished,
    LaunchStarted,
    PhaseReached,
    RoundFinished,
    TimeSoFar,
)
from accelbench.report.progress import Progress, advance, begin, remaining_time_of_case, remaining_time_of_run
from report import sample

CASE = sample.case(("pytorch/eager", "jax/jit"))  # at least 5 rounds, at most 8, 600 s


def after(*steps: tuple[float, Event]) -> Progress:
    progress = begin(CASE, 0.0)
    for at, event in steps:
        progress = advance(progress, event, at)
    return progress


def start(variant: str, number: int = 1, position: int = 1) -> LaunchStarted:
    return LaunchStarted(variant=variant, round=number, position=position, of=2)


def end(variant: str, wall: float, number: int = 1, **more: Any) -> LaunchFinished:
    return LaunchFinished(variant=variant, round=number, wall_seconds=f"{wall:.3f}", **more)


def test_nothing_is_estimated_before_the_first_launch_has_ended() -> None:
    assert remaining_time_of_case(begin(CASE, 0.0), 5.0) is None
    assert remaining_time_of_case(after((0.0, start("jax/jit"))), 5.0) is None


def test_the_estimate_spans_from_the_minimum_to_the_maximum_of_rounds() -> None:
    progress = after(
        (0, start("jax/jit")), (4, end("jax/jit", 4)), (4, start("pytorch/eager")), (10, end("pytorch/eager", 6)),
        (12, RoundFinished(round=1)),
    )  # fmt: skip
    left = remaining_time_of_case(progress, 12.0)
    assert left is not None
    assert left.minimum_seconds == pytest.approx(4 * (4 + 6 + 2))
    assert left.maximum_seconds == pytest.approx(7 * (4 + 6 + 2))


def test_the_estimate_shrinks_by_the_time_spent_in_the_current_launch() -> None:
    progress = after((0, start("jax/jit")), (4, end("jax/jit", 4)), (4, start("pytorch/eager")))
    early, late = remaining_time_of_case(progress, 4.0), remaining_time_of_case(progress, 7.0)
    assert early is not None
    assert late is not None
    assert early.minimum_seconds - late.minimum_seconds == pytest.approx(3.0)


def test_the_estimate_includes_a_launch_that_is_repeated() -> None:
    progress = after((0, start("jax/jit")), (9, end("jax/jit", 9, unfinished="probe")))
    assert remaining_time_of_case(progress, 9.0) is None
    assert [state.launches for state in progress.states] == [0, 0]


def test_the_estimate_never_exceeds_the_time_limit() -> None:
    progress = after((0, start("jax/jit")), (300, end("jax/jit", 300)))
    left = remaining_time_of_case(progress, 300.0)
    assert left is not None
    assert left.maximum_seconds == pytest.approx(300.0)


def test_the_estimate_does_not_include_a_failed_variant() -> None:
    progress = after(
        (0, start("jax/jit")), (4, end("jax/jit", 4, failure="Raised")),
        (4, start("pytorch/eager")), (10, end("pytorch/eager", 6)), (10, RoundFinished(round=1)),
    )  # fmt: skip
    left = remaining_time_of_case(progress, 10.0)
    assert left is not None
    assert left.minimum_seconds == pytest.approx(4 * 6)
    assert progress.states[1].failure == "Raised"


def test_phases_launches_and_comparisons_are_assigned_to_their_variants() -> None:
    now = SpeedupEstimate(variant="jax/jit", verdict="faster", speedup="2", lower="1.9", upper="2.1")
    progress = after((0, start("jax/jit")), (1, PhaseReached(phase="compile")))
    assert (progress.running_variant, progress.phase, progress.round) == ("jax/jit", "compile", 1)
    progress = advance(progress, end("jax/jit", 4), 4.0)
    assert (progress.running_variant, progress.phase) == (None, None)
    assert [state.seconds for state in progress.states] == [None, None]
    times = (TimeSoFar(variant="pytorch/eager", invalid=("parity",)), TimeSoFar(variant="jax/jit", seconds="0.001"))
    progress = advance(progress, RoundFinished(round=1, times=times, comparisons=(now,)), 5.0)
    assert progress.rounds_complete == 1
    assert [state.comparison for state in progress.states] == [None, now]
    assert [(state.seconds, state.invalid) for state in progress.states] == [(None, ("parity",)), (0.001, ())]


def test_cases_that_have_not_begun_are_expected_to_take_as_long_as_the_finished_ones() -> None:
    progress = after((0, start("jax/jit")), (4, end("jax/jit", 4)))
    left = remaining_time_of_case(progress, 4.0)
    assert left is not None
    whole = remaining_time_of_run(left, 4.0, [50.0, 70.0], 2)
    assert whole.minimum_seconds == pytest.approx(left.minimum_seconds + 120)
    unknown = remaining_time_of_run(left, 4.0, [], 1)
    assert unknown.maximum_seconds == pytest.approx(left.maximum_seconds + 4 + left.maximum_seconds)


events = st.one_of(
    st.builds(start, st.sampled_from(["pytorch/eager", "jax/jit", "other"]), st.integers(1, 8)),
    st.builds(PhaseReached, phase=st.sampled_from(list(sample.PHASE_SECONDS))),
    st.builds(end, st.sampled_from(["pytorch/eager", "jax/jit", "other"]), st.floats(0, 900), st.integers(1, 8)),
    st.builds(RoundFinished, round=st.integers(1, 8)),
)


@given(st.lists(st.tuples(st.floats(0, 5), events), max_size=30))
def test_the_estimate_is_a_sensible_range_for_any_events_of_a_runner(steps: list[tuple[float, Event]]) -> None:
    now, progress = 0.0, begin(CASE, 0.0)
    for wait, event in steps:
        now += wait
        progress = advance(progress, event, now)
        left = remaining_time_of_case(progress, now)
        assert left is None or 0 <= left.minimum_seconds <= left.maximum_seconds <= 600
