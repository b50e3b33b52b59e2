"""How long a launch may take, and whose limit that is: its own, that of a probe under way, or the whole case's.

Probes of accelbench's own have a limit of their own and count against no launch: a slow one makes no variant late.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

PROBE_SECONDS = 20.0
"""Where nothing hangs, no probe was seen to take 2 s; starting NVML for many GPUs takes several."""
HANG_FACTOR = 5.0
HANG_SECONDS = 30.0
"""A launch hangs that takes longer than this, and than five times the longest before it of the same variant. Time in
which others had the processors does not count: where they have 80 %, it takes five times as long."""
MOST_FACTOR = 5.0
"""Of its limit a launch gets no more than so many times, whatever others take: one that hangs asleep beside busy
neighbours leaves them all of the processors."""

WARM_FACTOR = 2.0
"""A warm probe hangs that takes longer than a probe may, and than so many times as long as starting cold did."""

Whose = Literal["launch", "probe", "case"]


class Limit(NamedTuple):
    """What a launch may take, and whose limit that is, for people."""

    seconds: float
    whose: str
    of_what_others_leave: bool = False
    """Time in which others had the processors does not count."""


def launch_limit(
    remaining: float, *, time_limit: float, of: int, left: int, rounds_min: int, before: Sequence[float]
) -> Limit:
    """What a launch may take itself; `left` launches of the `of` in its round are still to come, this one included.

    `before`: seconds of the same variant's launches in earlier rounds. A first launch gets its share of what remains,
    or what a launch could take at most if the least number of rounds is to be had; so one that hangs leaves time for
    the others. It never gets less than an even share of the whole, even where less remains: what others took, and our
    probes, makes it no late one; then the case's limit ends it.
    """
    if before:
        seconds = max(HANG_SECONDS, HANG_FACTOR * max(before))
        whose = f"its limit, as its longest launch before took {max(before):.3g} s"
        return Limit(seconds, whose, of_what_others_leave=True)
    share = max(time_limit / of, min(remaining, max(remaining / left, time_limit / rounds_min)))
    return Limit(share, f"its share of the case's time limit of {time_limit:g} s")


def warm_limit(cold_seconds: float, probe_seconds: float) -> Limit:
    """What a warm probe may take; `cold_seconds` from import to the first step took the launch before it."""
    return Limit(max(probe_seconds, WARM_FACTOR * cold_seconds), "the limit of a warm probe")


@dataclass
class Allowance:
    """What is left to one launch as it goes on."""

    own: Limit
    case_seconds: float
    """The whole case may take so much longer."""
    probe_seconds: float = PROBE_SECONDS
    others_share: Callable[[], float] = lambda: 0.0
    """Of the processors' time since the launch was started; asked once its limit is reached, as asking takes time."""
    clock: Callable[[], float] = time.monotonic
    granted: float = field(init=False)
    """What its own limit came to when last asked, with the time that others took."""
    used_up: Whose = field(default="launch", init=False)
    """Whose limit was the nearest when last asked."""
    _probed: float = field(default=0.0, init=False)
    _probe_began: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.granted = self.own.seconds

    def probe_began(self) -> None:
        """From now on the probe's limit holds, in place of the launch's."""
        self._probe_began = self.clock()

    def probe_ended(self) -> None:
        """The launch goes on where it was."""
        self._probed, self._probe_began = self.probed, None

    @property
    def probed(self) -> float:
        """Seconds that probes took so far."""
        return self._probed + (0.0 if self._probe_began is None else self.clock() - self._probe_began)

    def left(self, elapsed: float) -> float:
        """Seconds that the launch may still take, `elapsed` after it was started."""
        if self._probe_began is None:
            if self.own.of_what_others_leave and self.granted + self._probed <= elapsed:
                taken = (elapsed - self._probed) * self.others_share()
                self.granted = min(self.own.seconds + taken, MOST_FACTOR * self.own.seconds)
            nearest: tuple[float, Whose] = (self.granted + self._probed - elapsed, "launch")
        else:
            nearest = (self._probe_began + self.probe_seconds - self.clock(), "probe")
        seconds, self.used_up = min(nearest, (self.case_seconds - elapsed, "case"), key=lambda each: each[0])
        return seconds
