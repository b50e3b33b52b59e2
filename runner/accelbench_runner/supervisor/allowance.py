"""Limit how long a launch may take: by its own limit, the limit of a running probe, or the limit of the case.

Time that accelbench's own probes take does not count against the launch, so a slow probe makes no variant late.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

PROBE_SECONDS = 60.0
"""Maximum seconds of a probe. The slowest of accelbench's own probes took 2 s; starting NVML for many GPUs takes
several. But the probe `formula` runs the user's program: with a load of 8 to 15 on two processors, 20 s were not enough
for small programs."""
HANG_FACTOR = 5.0
HANG_SECONDS = 30.0
"""A launch counts as hung if it takes longer than both this and five times its variant's longest launch so far. The
limit is extended by CPU time that others took: a launch that gets 20 % of the CPUs takes five times as
long."""
MAXIMUM_EXTENSION_FACTOR = 5.0
"""Maximum multiple to which other load extends a limit; without it, a launch that hangs asleep would never end."""

WARM_FACTOR = 2.0
"""Limit of a warm probe, as a multiple of the seconds of the cold start, unless the limit of other probes is longer."""

LimitKind = Literal["launch", "probe", "case"]


class Limit(NamedTuple):
    """Hold the maximum seconds of a launch, and the reason for them."""

    seconds: float
    reason: str
    """Origin of the limit, for messages: `its share of the case's time limit of 60 s`."""
    extended_by_load: bool = False
    """True: CPU time that other processes took is added."""


def launch_limit(
    remaining_seconds: float,
    *,
    time_limit: float,
    round_launches: int,
    launches_left: int,
    rounds_min: int,
    earlier_seconds: Sequence[float],
) -> Limit:
    """Return the time limit of a launch, so that other launches still have time if this one hangs.

    Args:
        remaining_seconds: Seconds left of the case's time limit.
        time_limit: The case's time limit in seconds.
        round_launches: Number of launches in the round.
        launches_left: Number of launches in the round that have not finished, this one included.
        rounds_min: Minimum number of rounds.
        earlier_seconds: Seconds of the same variant's earlier launches.
    """
    if earlier_seconds:
        longest = max(earlier_seconds)
        reason = f"its limit, as its longest launch before took {longest:.3g} s"
        return Limit(max(HANG_SECONDS, HANG_FACTOR * longest), reason, extended_by_load=True)
    # A variant's first launch may take its share of the remaining time or the time of a whole round, if that is longer.
    share_of_remaining_time = remaining_seconds / launches_left
    seconds_per_round = time_limit / rounds_min
    available_seconds = min(remaining_seconds, max(share_of_remaining_time, seconds_per_round))
    # The limit is at least an equal share of the case's time, so that no variant is blamed for the time others took.
    equal_share = time_limit / round_launches
    seconds = max(equal_share, available_seconds)
    return Limit(seconds, f"its share of the case's time limit of {time_limit:g} s")


def warm_limit(cold_seconds: float, probe_seconds: float) -> Limit:
    """Return the time limit of a warm probe, which starts a variant again with the compile caches of an earlier start.

    `cold_seconds` is the time of that earlier start, from import to the end of the first step; `probe_seconds` is the
    limit of every other probe.
    """
    return Limit(max(probe_seconds, WARM_FACTOR * cold_seconds), "the limit of a warm probe")


@dataclass
class Allowance:
    """Count down the seconds that a running launch may still take."""

    launch_limit: Limit
    """Limit of the launch itself."""
    case_seconds: float
    """Seconds left of the case's time limit when the launch starts."""
    probe_limit_seconds: float = PROBE_SECONDS
    """Maximum seconds of a probe."""
    others_share: Callable[[], float] = lambda: 0.0
    """Returns the share of CPU time that other processes took since the launch began, 0 to 1.

    Because this takes long, it is called only when the limit is reached.
    """
    clock: Callable[[], float] = time.monotonic
    granted_seconds: float = field(init=False)
    """The launch's own limit in seconds, with the extension for other load."""
    nearest_limit: LimitKind = field(default="launch", init=False)
    """The limit that `seconds_left` returned last."""
    _ended_probes_seconds: float = field(default=0.0, init=False)
    _probe_began_at: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.granted_seconds = self.launch_limit.seconds  # until other load extends it

    def probe_began(self) -> None:
        """Replace the launch's time limit by the limit of probes until the probe ends."""
        self._probe_began_at = self.clock()

    def probe_ended(self) -> None:
        """Apply the launch's time limit again; the seconds that the probe took do not count against it."""
        self._ended_probes_seconds = self.total_probe_seconds
        self._probe_began_at = None

    @property
    def total_probe_seconds(self) -> float:
        """Return the seconds that all probes have taken so far, the running probe included."""
        if self._probe_began_at is None:
            return self._ended_probes_seconds
        return self._ended_probes_seconds + self.clock() - self._probe_began_at

    def seconds_left(self, elapsed: float) -> float:
        """Return the seconds until the nearest limit, negative after it, and store in `nearest_limit` which one it is.

        `elapsed` is the seconds since the launch began. Time that probes took does not count against the launch.
        """
        if self._probe_began_at is None:
            launch_seconds = elapsed - self._ended_probes_seconds
            if self.launch_limit.extended_by_load and self.granted_seconds <= launch_seconds:
                # Other processes made the launch slower, so the launch gets more time.
                extended = self.launch_limit.seconds + launch_seconds * self.others_share()
                self.granted_seconds = min(extended, MAXIMUM_EXTENSION_FACTOR * self.launch_limit.seconds)
            seconds = self.granted_seconds - launch_seconds
            self.nearest_limit = "launch"
        else:
            seconds = self._probe_began_at + self.probe_limit_seconds - self.clock()
            self.nearest_limit = "probe"
        case_seconds_left = self.case_seconds - elapsed
        if case_seconds_left < seconds:
            seconds = case_seconds_left
            self.nearest_limit = "case"
        return seconds
