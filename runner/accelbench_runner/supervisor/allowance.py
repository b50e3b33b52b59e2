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
"""A launch counts as hung if it takes longer than both this and five times its variant's longest launch so far. The
limit is extended by processor time that others took: a launch that gets 20 % of the processors takes five times as
long."""
MAXIMUM_EXTENSION_FACTOR = 5.0
"""Maximum multiple to which other load extends a limit; without it, a launch that hangs asleep would never end."""

WARM_FACTOR = 2.0
"""Maximum multiple of the cold start that a warm probe may take, unless the limit of any probe is longer."""

LimitKind = Literal["launch", "probe", "case"]


class Limit(NamedTuple):
    """Hold the maximum seconds of a launch, and the reason for them."""

    seconds: float
    reason: str
    """Origin of the limit, for messages: `its share of the case's time limit of 60 s`."""
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
        rounds_min: Minimum number of rounds.
        earlier_seconds: Seconds of the same variant's earlier launches.

    With earlier launches, the limit is the time after which a launch counts as hung. A first launch gets an equal
    share of the remaining time, or the time limit divided by the minimum rounds if that is longer, but at most the
    remaining time: a launch that hangs leaves time for the others. It never gets less than an equal share of the whole
    time limit: if less is left, the case's limit ends it, and no variant is blamed for time that probes or other
    processes took.
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
    """Count down the seconds that a running launch may still take."""

    own: Limit
    """Limit of the launch itself."""
    case_seconds: float
    """Seconds left of the case's time limit when the launch starts."""
    probe_seconds: float = PROBE_SECONDS
    others_share: Callable[[], float] = lambda: 0.0
    """Returns the share of processor time that others took since the launch began. It is slow, so it is called only
    when the limit is reached."""
    clock: Callable[[], float] = time.monotonic
    granted_seconds: float = field(init=False)
    """The launch's own limit in seconds, with the extension for other load."""
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
