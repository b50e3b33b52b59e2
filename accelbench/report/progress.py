"""Derive the progress of a case from the runner's events, and estimate its remaining time. Callers pass the time."""

import statistics
from collections.abc import Iterable
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
class Lane:
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
    """Bound the remaining seconds of a case: with the minimum and with the maximum of rounds."""

    least: float
    most: float


@dataclass(frozen=True)
class Progress:
    """Describe a running case; times are seconds of one monotonic clock."""

    case: Case
    lanes: tuple[Lane, ...]
    started: float
    round: int = 0
    """Number of the current round; 0 before the first."""
    rounds_complete: int = 0
    """Number of valid rounds."""
    quarantined: int = 0
    """Number of disturbed rounds, which are repeated."""
    disturbed: str = ""
    """Reason of the first disturbed round."""
    advice: str = ""
    """Advice about the first discarded round."""
    running: str | None = None
    """Variant of the current launch; None between launches."""
    launched: float = 0.0
    """Time at which the current launch began."""
    phase: Phase | None = None
    ended: float = 0.0
    """Time at which the last launch ended; 0: none has."""
    judging: tuple[float, ...] = ()
    """Seconds from the last launch to the end of each round."""


def begin(case: Case, now: float) -> Progress:
    """Return the progress before the first event."""
    return Progress(case=case, lanes=tuple(Lane(variant.name) for variant in case.variants), started=now)


def advance(progress: Progress, event: Event, now: float) -> Progress:
    """Return the progress after an event at the time `now`; events of unknown variants change nothing."""
    if isinstance(event, LaunchStarted):
        return replace(progress, round=event.round, running=event.variant, launched=now, phase=None)
    if isinstance(event, PhaseReached):
        return replace(progress, phase=event.phase)
    if isinstance(event, MachineSeen):
        return progress
    if isinstance(event, LaunchFinished):
        ended = None if event.unfinished else event.variant
        lanes = (_after_launch(lane, event) if lane.variant == ended else lane for lane in progress.lanes)
        return replace(progress, lanes=tuple(lanes), running=None, phase=None, ended=now)
    return _after_round(progress, event, now)


def _after_launch(lane: Lane, event: LaunchFinished) -> Lane:
    """Return the lane after one more launch."""
    return replace(
        lane,
        wall_seconds=(*lane.wall_seconds, float(event.wall_seconds)),
        last_round=event.round,
        failure=event.failure or lane.failure,
        launches=lane.launches + (event.failure is None),
    )


def _after_round(progress: Progress, event: RoundFinished, now: float) -> Progress:
    """Return the progress after a round is judged."""
    return replace(
        progress,
        lanes=tuple(_lane_after_round(lane, event) for lane in progress.lanes),
        rounds_complete=progress.rounds_complete + (not event.quarantined),
        quarantined=progress.quarantined + bool(event.quarantined),
        disturbed=progress.disturbed or next(iter((*event.quarantined, *event.noisy)), ""),
        advice=progress.advice or event.advice or "",
        running=None,
        judging=(*progress.judging, now - progress.ended) if progress.ended else progress.judging,
    )


def _lane_after_round(lane: Lane, event: RoundFinished) -> Lane:
    """Return the lane with the time and the comparison of the event, if the event has them."""
    comparison = next((item for item in event.comparisons if item.variant == lane.variant), lane.comparison)
    time = next((item for item in event.times if item.variant == lane.variant), None)
    if time is None:
        return replace(lane, comparison=comparison)
    seconds = None if time.seconds is None else float(time.seconds)
    return replace(lane, comparison=comparison, seconds=seconds, invalid=time.invalid)


def remaining(progress: Progress, now: float) -> Remaining | None:
    """Bound the remaining seconds of the case by what is left of its time limit; None before a launch has ended."""
    durations = [wall for lane in progress.lanes for wall in lane.wall_seconds]
    if not durations:
        return None
    active = [lane for lane in progress.lanes if lane.failure is None]
    expected = {lane.variant: statistics.fmean(lane.wall_seconds or durations) for lane in active}
    judge = statistics.fmean(progress.judging) if progress.judging else 0.0
    round_seconds = sum(expected.values()) + judge

    this_round = 0.0
    in_round = progress.rounds_complete + progress.quarantined < progress.round
    if in_round:
        this_round = judge + sum(expected[lane.variant] for lane in active if lane.last_round < progress.round)
        if progress.running in expected:
            this_round -= min(now - progress.launched, expected[progress.running])
    measurement = progress.case.measurement
    # A case for a target compiles each variant once.
    compiled = progress.case.accelerator.target is not None
    least, most = (1, 1) if compiled else (measurement.rounds_min, measurement.rounds_max)
    rounds = progress.rounds_complete + in_round
    limit = max(0.0, measurement.time_limit_seconds - (now - progress.started))
    return Remaining(
        least=min(limit, this_round + round_seconds * max(0, least - rounds)),
        most=min(limit, this_round + round_seconds * max(0, most - rounds)),
    )


def remaining_run(case: Remaining, elapsed: float, finished: Iterable[float], cases_left: int) -> Remaining:
    """Estimate the remaining time of a run.

    Args:
        case: The remaining time of the current case.
        elapsed: The seconds since the current case started.
        finished: The duration of each finished case; each further case is expected to take their mean.
        cases_left: The number of cases that have not started.
    """
    durations = tuple(finished)
    least = statistics.fmean(durations) if durations else elapsed + case.least
    most = statistics.fmean(durations) if durations else elapsed + case.most
    return Remaining(case.least + cases_left * least, case.most + cases_left * most)
