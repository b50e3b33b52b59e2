"""Derive the progress of a case from the runner's events, and estimate its remaining time. Callers pass the time."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from accelbench.api.case import Case
from accelbench.api.reasons import FailureReason
from accelbench.api.result import Phase, SpeedupEstimate
from accelbench.delivery.log import (
    Event,
    LaunchFinished,
    LaunchStarted,
    MachineSeen,
    PhaseReached,
    RoundFinished,
)


@dataclass(frozen=True)
class VariantState:
    """Hold the launches of one variant so far."""

    variant: str
    seconds: float | None = None
    """Time over the valid rounds."""
    invalid: tuple[str, ...] = ()
    """Failed checks, because of which there is no time."""
    wall_seconds: tuple[float, ...] = ()
    """Duration of each launch in seconds."""
    last_round: int = 0
    failure: FailureReason | None = None
    comparison: SpeedupEstimate | None = None
    launches: int = 0
    """Launches that did not fail."""


@dataclass(frozen=True)
class Remaining:
    """Hold the estimated remaining seconds of a case, for the minimum and for the maximum number of rounds."""

    minimum_seconds: float
    maximum_seconds: float


@dataclass(frozen=True)
class Progress:
    """Describe a running case; times are seconds of one monotonic clock."""

    case: Case
    states: tuple[VariantState, ...]
    started: float
    round: int = 0
    """Number of the current round; 0 before the first."""
    rounds_complete: int = 0
    """Number of valid rounds."""
    discarded_rounds: int = 0
    """Number of disturbed rounds that do not count and are repeated."""
    first_disturbance: str = ""
    """Reason of the first disturbed round."""
    advice: str = ""
    """Advice about the first discarded round."""
    running_variant: str | None = None
    """Variant of the current launch; None between launches."""
    launch_started: float = 0.0
    """Time at which the current launch began."""
    phase: Phase | None = None
    last_launch_ended: float = 0.0
    """Time at which the last launch ended; 0 if no launch has ended."""
    judge_durations: tuple[float, ...] = ()
    """Seconds from the end of the last launch to the end of the round, for each round."""


def begin(case: Case, now: float) -> Progress:
    """Return the progress of a case that has just started: no launch and no round yet."""
    return Progress(case=case, states=tuple(VariantState(variant.name) for variant in case.variants), started=now)


def advance(progress: Progress, event: Event, now: float) -> Progress:
    """Return the progress after an event of the runner; `now` is the time of the event on the progress's clock."""
    if isinstance(event, LaunchStarted):
        return replace(progress, round=event.round, running_variant=event.variant, launch_started=now, phase=None)
    if isinstance(event, PhaseReached):
        return replace(progress, phase=event.phase)
    if isinstance(event, MachineSeen):  # it comes before the first launch, and changes nothing
        return progress
    if isinstance(event, LaunchFinished):
        states = progress.states
        if not event.unfinished:  # an unfinished launch does not count
            states = tuple(_after_launch(state, event) if state.variant == event.variant else state for state in states)
        return replace(progress, states=states, running_variant=None, phase=None, last_launch_ended=now)
    # The only other kind of event is `RoundFinished`.
    return _after_round(progress, event, now)


def _after_launch(state: VariantState, event: LaunchFinished) -> VariantState:
    """Return a variant's state after one more of its launches has ended."""
    return replace(
        state,
        wall_seconds=(*state.wall_seconds, float(event.wall_seconds)),
        last_round=event.round,
        failure=event.failure or state.failure,
        launches=state.launches if event.failure else state.launches + 1,
    )


def _after_round(progress: Progress, event: RoundFinished, now: float) -> Progress:
    """Return the progress after a round has been judged: it counts, unless it is quarantined (discarded).

    `event.quarantined` has the disturbances because of which the round is discarded; `event.noisy` has those despite
    which it counts, because the case accepts noise.
    """
    rounds_complete, discarded_rounds = progress.rounds_complete, progress.discarded_rounds
    if event.quarantined:
        discarded_rounds += 1
    else:
        rounds_complete += 1
    first_disturbance = progress.first_disturbance
    disturbances = [*event.quarantined, *event.noisy]
    if disturbances and not first_disturbance:
        first_disturbance = disturbances[0]
    judge_durations = progress.judge_durations
    if progress.last_launch_ended:  # a round is judged after its last launch has ended
        judge_durations = (*judge_durations, now - progress.last_launch_ended)
    return replace(
        progress,
        states=tuple(_state_after_round(state, event) for state in progress.states),
        rounds_complete=rounds_complete,
        discarded_rounds=discarded_rounds,
        first_disturbance=first_disturbance,
        advice=progress.advice or event.advice or "",
        running_variant=None,
        judge_durations=judge_durations,
    )


def _state_after_round(state: VariantState, event: RoundFinished) -> VariantState:
    """Return a variant's state with its time and comparison from a finished round; each stays if the event lacks it."""
    comparison = next((item for item in event.comparisons if item.variant == state.variant), state.comparison)
    time = next((item for item in event.times if item.variant == state.variant), None)
    if time is None:
        return replace(state, comparison=comparison)
    seconds = None if time.seconds is None else float(time.seconds)
    return replace(state, comparison=comparison, seconds=seconds, invalid=time.invalid)


def remaining_time_of_case(progress: Progress, now: float) -> Remaining | None:
    """Estimate the times until a case has its minimum and its maximum of rounds; None before the first launch ends.

    A case ends at its time limit, so neither time is longer than what is left until then.
    """
    durations = [seconds for state in progress.states for seconds in state.wall_seconds]
    if not durations:
        return None
    active_states = [state for state in progress.states if state.failure is None]
    # Until a variant has been launched, expect it to take as long as the launches of other variants.
    launch_seconds = {state.variant: statistics.fmean(state.wall_seconds or durations) for state in active_states}
    judge_seconds = statistics.fmean(progress.judge_durations) if progress.judge_durations else 0.0
    round_seconds = sum(launch_seconds.values()) + judge_seconds

    current_round_seconds = 0.0
    started_rounds = progress.rounds_complete
    # `progress.round` is the number of the latest round, and each finished round is complete or discarded.
    is_in_round = progress.rounds_complete + progress.discarded_rounds < progress.round
    if is_in_round:
        started_rounds += 1
        current_round_seconds = _remaining_launch_seconds(progress, now, launch_seconds) + judge_seconds
    measurement = progress.case.measurement
    rounds_min, rounds_max = measurement.rounds_min, measurement.rounds_max
    if progress.case.accelerator.target is not None:
        rounds_min = rounds_max = 1  # a case for a target compiles each variant once
    seconds_to_limit = max(0.0, measurement.time_limit_seconds - (now - progress.started))
    minimum_seconds = current_round_seconds + round_seconds * max(0, rounds_min - started_rounds)
    maximum_seconds = current_round_seconds + round_seconds * max(0, rounds_max - started_rounds)
    return Remaining(min(seconds_to_limit, minimum_seconds), min(seconds_to_limit, maximum_seconds))


def _remaining_launch_seconds(progress: Progress, now: float, expected_seconds: Mapping[str, float]) -> float:
    """Estimate the seconds until the launches of the current round have ended.

    `expected_seconds` is the expected duration of a launch, by variant. It lacks the variants that have failed, which
    are not launched again.
    """
    unfinished = [state.variant for state in progress.states if state.last_round < progress.round]
    remaining_seconds = sum(expected_seconds[variant] for variant in unfinished if variant in expected_seconds)
    running = progress.running_variant
    if running is not None and running in expected_seconds:
        # If the current launch has already taken longer than expected, assume that it ends now.
        remaining_seconds -= min(now - progress.launch_started, expected_seconds[running])
    return remaining_seconds


def remaining_time_of_run(
    case_remaining: Remaining, elapsed_seconds: float, case_durations: Sequence[float], cases_left: int
) -> Remaining:
    """Estimate the remaining seconds of a run: the rest of the current case, and the `cases_left` cases after it.

    A later case is expected to take as long as finished cases on average (`case_durations`, in seconds). If no case has
    finished, it is expected to take as long as the whole current case, which began `elapsed_seconds` ago.
    """
    if case_durations:
        shortest_seconds = longest_seconds = statistics.fmean(case_durations)
    else:
        shortest_seconds = elapsed_seconds + case_remaining.minimum_seconds
        longest_seconds = elapsed_seconds + case_remaining.maximum_seconds
    return Remaining(
        minimum_seconds=case_remaining.minimum_seconds + cases_left * shortest_seconds,
        maximum_seconds=case_remaining.maximum_seconds + cases_left * longest_seconds,
    )
