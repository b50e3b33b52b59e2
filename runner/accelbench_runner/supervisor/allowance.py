"""Limit how long a launch may take: by its own limit, that of a running probe, or the whole case's.

Time that accelbench's own probes take does not count against the launch, so a slow probe makes no variant late.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

PROBE_SECONDS = 20.0
"""The slowest probe that was measured without a hang took 2 s; starting NVML for many GPUs takes several."""
HANG_FACTOR = 5.0
HANG_SECONDS = 30.0
"""A launch that takes longer than this, and five times its variant's longest launch so far, counts as hung. Processor
time that others took is subtracted: a launch that gets 20 % of the processors takes five times as long."""
MAXIMUM_EXTENSION_FACTOR = 5.0
"""A limit is extended for other load to at most this multiple, or a launch that hangs asleep would never end."""

WARM_FACTOR = 2.0
"""A warm probe may take this multiple of the cold start, and at least as long as any probe."""

LimitKind = Literal["launch", "probe", "case"]


class Limit(NamedTuple):
    """Hold what a launch may take."""

    seconds: float
    reason: str
    """Where the limit comes from, for people: `its share of the case's time limit of 60 s`."""
    extended_by_load: bool = False
    """True: processor time that other processes took is added."""


def launch_limit(
    remaining: float,
    *,
    time_limit: float,
    round_launches: int,
    launches_left: int,
    rounds_min: int,
    earlier_seconds: Sequence[float],
) -> Limit:
    """Return the limit of a launch.

    Args:
        remaining: Seconds left of the case's time limit.
        time_limit: The case's time limit in seconds.
        round_launches: Number of launches in the round.
        launches_left: Number of them that have not run yet, this one included.
        rounds_min: The least number of rounds.
        earlier_seconds: Seconds of the same variant's earlier launches.

    A first launch gets a share of the remaining time, or the most that a launch can take if the least number of rounds
    is to fit, so that a launch that hangs leaves time for the others. It never gets less than an even share of the
    whole time limit: then the case's limit ends it, and no variant is blamed for what probes or other processes took.
    """
    if earlier_seconds:
        longest = max(earlier_seconds)
        reason = f"its limit, as its longest launch before took {longest:.3g} s"
        return Limit(max(HANG_SECONDS, HANG_FACTOR * longest), reason, extended_by_load=True)
    even_share = time_limit / round_launches
    share = max(even_share, min(remaining, max(remaining / launches_left, time_limit / rounds_min)))
    return Limit(share, f"its share of the case's time limit of {time_limit:g} s")


def warm_limit(cold_seconds: float, probe_seconds: float) -> Limit:
    """Return the limit of a warm probe after a cold start that took `cold_seconds` from import to first step."""
    return Limit(max(probe_seconds, WARM_FACTOR * cold_seconds), "the limit of a warm probe")


@dataclass
class Allowance:
    """Count down what a running launch may still take."""

    own: Limit
    case_seconds: float
    """What is left of the case's time limit at the start of the launch."""
    probe_seconds: float = PROBE_SECONDS
    others_share: Callable[[], float] = lambda: 0.0
    """Share of processor time that others took since the launch began. Slow, so it is read at the limit only."""
    clock: Callable[[], float] = time.monotonic
    granted_seconds: float = field(init=False)
    """The launch's own limit, with the extension for other load."""
    nearest: LimitKind = field(default="launch", init=False)
    """The limit that was the nearest at the last call of `seconds_left`."""
    _ended_probes_seconds: float = field(default=0.0, init=False)
    _probe_began: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.granted_seconds = self.own.seconds

    def probe_began(self) -> None:
        """Apply the probe's limit in place of the launch's."""
        self._probe_began = self.clock()

    def probe_ended(self) -> None:
        """Apply the launch's limit again, without the time that the probe took."""
        self._ended_probes_seconds, self._probe_began = self.probes_seconds, None

    @property
    def probes_seconds(self) -> float:
        """Return the seconds that probes took so far."""
        return self._ended_probes_seconds + (0.0 if self._probe_began is None else self.clock() - self._probe_began)

    def seconds_left(self, elapsed: float) -> float:
        """Return the seconds that the launch may still take, `elapsed` seconds after its start."""
        if self._probe_began is None:
            measured = elapsed - self._ended_probes_seconds
            if self.own.extended_by_load and self.granted_seconds <= measured:
                extended = self.own.seconds + measured * self.others_share()
                self.granted_seconds = min(extended, MAXIMUM_EXTENSION_FACTOR * self.own.seconds)
            limit: tuple[float, LimitKind] = (self.granted_seconds - measured, "launch")
        else:
            limit = (self._probe_began + self.probe_seconds - self.clock(), "probe")
        case: tuple[float, LimitKind] = (self.case_seconds - elapsed, "case")
        seconds, self.nearest = min(limit, case, key=lambda pair: pair[0])
        return seconds
