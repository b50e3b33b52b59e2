"""Where a case stands, from the runner's events, and how long it may still take. Pure: time is passed in."""

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
    """One variant: what its launches gave so far."""

    variant: str
    seconds: float | None = None
    """Its time over the rounds that are judged and count."""
    invalid: tuple[str, ...] = ()
    """The checks for which it has no time."""
    walls: tuple[float, ...] = ()
    """Wall seconds of its launches."""
    last_round: int = 0
    failure: FailureReason | None = None
    comparison: SpeedupEstimate | None = None
    launches: int = 0
    """Those that did not fail."""


@dataclass(frozen=True)
class Remaining:
    """Seconds until the case is done: if it stops as soon as it may, and if it needs every round."""

    least: float
    most: float


@dataclass(frozen=True)
class Progress:
    """A case under way; times are of one monotonic clock."""

    case: Case
    lanes: tuple[Lane, ...]
    started: float
    round: int = 0
    """The round under way, from 1; 0 before the first."""
    rounds_complete: int = 0
    """Those that count."""
    quarantined: int = 0
    """Rounds that were disturbed, and are measured again."""
    disturbed: str = ""
    """What disturbed the first round that was."""
    advice: str = ""
    """What to do about the first round that was discarded."""
    running: str | None = None
    launched: float = 0.0
    phase: Phase | None = None
    ended: float = 0.0
    """When the last launch ended."""
    judging: tuple[float, ...] = ()
    """Seconds between a round's last launch and the round's end."""


def begin(case: Case, now: float) -> Progress:
    """Before the first event."""
    return Progress(case=case, lanes=tuple(Lane(variant.name) for variant in case.variants), started=now)


def advance(progress: Progress, event: Event, now: float) -> Progress:
    """After `event`, which arrived at `now`; events of variants that the case does not have change nothing."""
    if isinstance(event, LaunchStarted):
        return replace(progress, round=event.round, running=event.variant, launched=now, phase=None)
    if isinstance(event, PhaseReached):
        return replace(progress, phase=event.phase)
    if isinstance(event, MachineSeen):
        return progress
    if isinstance(event, LaunchFinished):
        ended = None if event.unfinished else event.variant
        lanes = (_launched(lane, event) if lane.variant == ended else lane for lane in progress.lanes)
        return replace(progress, lanes=tuple(lanes), running=None, phase=None, ended=now)
    return _rounded(progress, event, now)


def _launched(lane: Lane, event: LaunchFinished) -> Lane:
    return replace(
        lane,
        walls=(*lane.walls, float(event.wall_seconds)),
        last_round=event.round,
        failure=event.failure or lane.failure,
        launches=lane.launches + (event.failure is None),
    )


def _rounded(progress: Progress, event: RoundFinished, now: float) -> Progress:
    return replace(
        progress,
        lanes=tuple(_judged(lane, event) for lane in progress.lanes),
        rounds_complete=progress.rounds_complete + (not event.quarantined),
        quarantined=progress.quarantined + bool(event.quarantined),
        disturbed=progress.disturbed or next(iter((*event.quarantined, *event.noisy)), ""),
        advice=progress.advice or event.advice or "",
        running=None,
        judging=(*progress.judging, now - progress.ended) if progress.ended else progress.judging,
    )


def _judged(lane: Lane, event: RoundFinished) -> Lane:
    compared = next((each for each in event.comparisons if each.variant == lane.variant), lane.comparison)
    time = next((each for each in event.times if each.variant == lane.variant), None)
    if time is None:
        return replace(lane, comparison=compared)
    seconds = None if time.seconds is None else float(time.seconds)
    return replace(lane, comparison=compared, seconds=seconds, invalid=time.invalid)


def remaining(progress: Progress, now: float) -> Remaining | None:
    """From the launches so far; None before the first one has ended."""
    seen = [wall for lane in progress.lanes for wall in lane.walls]
    if not seen:
        return None
    active = [lane for lane in progress.lanes if lane.failure is None]
    expected = {lane.variant: statistics.fmean(lane.walls or seen) for lane in active}
    judge = statistics.fmean(progress.judging) if progress.judging else 0.0
    round_seconds = sum(expected.values()) + judge

    this_round = 0.0
    under_way = progress.rounds_complete + progress.quarantined < progress.round
    if under_way:
        this_round = judge + sum(expected[lane.variant] for lane in active if lane.last_round < progress.round)
        if progress.running in expected:
            this_round -= min(now - progress.launched, expected[progress.running])
    measurement = progress.case.measurement
    # What is compiled is compiled once.
    once = progress.case.accelerator.target is not None
    least, most = (1, 1) if once else (measurement.rounds_min, measurement.rounds_max)
    rounds = progress.rounds_complete + under_way
    limit = max(0.0, measurement.time_limit_seconds - (now - progress.started))
    return Remaining(
        least=min(limit, this_round + round_seconds * max(0, least - rounds)),
        most=min(limit, this_round + round_seconds * max(0, most - rounds)),
    )


def of_the_run(remaining_here: Remaining, elapsed: float, finished: Iterable[float], cases_left: int) -> Remaining:
    """With the cases that have not begun, each expected to take as long as the finished ones, or as this one."""
    known = tuple(finished)
    least = statistics.fmean(known) if known else elapsed + remaining_here.least
    most = statistics.fmean(known) if known else elapsed + remaining_here.most
    return Remaining(remaining_here.least + cases_left * least, remaining_here.most + cases_left * most)
