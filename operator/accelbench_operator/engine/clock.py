"""Follow the API servers' clock: deadlines start at timestamps of the cluster, so they must end by the same clock.

Otherwise an operator on a machine whose clock is minutes off would give up cases that have just begun. One of several
API servers may be wrong itself, so the median of many answers counts.
"""

import logging
import random
import time
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from statistics import median_low
from typing import NamedTuple

logger = logging.getLogger(__name__)

NEGLIGIBLE_SECONDS = 5.0
"""Maximum change that is ignored: `Date` has whole seconds, and a response takes time to arrive."""
WINDOW_SECONDS = 300.0
"""Age up to which answers count. A replica with a Lease gets 150 answers in this time. If one of three API servers has
a wrong clock, the probability that it sends more than half of 150 answers is below 1 in 100,000."""
MINIMUM_ANSWERS = 101
"""Number of latest answers that count whatever their age: an operator without a Lease sends few requests."""
MAXIMUM_ANSWERS = 300
"""Maximum number of answers that are kept. Once there are so many, only one answer of each `SAMPLE_SECONDS` is kept. It
is chosen at random, because the first answer of each burst might always come from the same API server."""
SAMPLE_SECONDS = 1.0
"""Length of the intervals of which one answer each is kept."""


def local_time() -> datetime:
    """Return the time of this machine's clock."""
    return datetime.now(UTC)


class _Answer(NamedTuple):
    """Describe the `Date` of one response."""

    arrived_at: float
    """Time of the monotonic clock."""
    offset: float
    """How far the `Date`, in seconds since 1970, is ahead of the monotonic clock."""


class ServerClock:
    """Compute the API servers' time: a monotonic clock, plus the median offset of the `Date` of recent responses.

    A monotonic clock cannot be set, so setting this machine's clock has no effect.
    """

    def __init__(
        self, local: Callable[[], datetime] = local_time, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """Use the time of this machine's clock, `local`, until responses arrive."""
        self._monotonic = monotonic
        self._offset = local().timestamp() - monotonic()
        self._answers: deque[_Answer] = deque(maxlen=MAXIMUM_ANSWERS)
        self._skipped = 0
        """Number of answers in the current interval of `SAMPLE_SECONDS` after the first one."""

    def __call__(self) -> datetime:
        """Return the API servers' time."""
        return datetime.fromtimestamp(self._monotonic() + self._offset, UTC)

    def add_answer(self, date: str) -> None:
        """Correct the time by the `Date` header of a response that has just arrived."""
        try:
            server_time = parsedate_to_datetime(date)
        except ValueError:
            return  # no `Date`, or an invalid one
        if server_time.tzinfo is None:
            # The zone -0000 means UTC, but Python returns a time without a zone for it.
            server_time = server_time.replace(tzinfo=UTC)
        now = self._monotonic()
        self._sample(_Answer(now, server_time.timestamp() - now))
        while len(self._answers) > MINIMUM_ANSWERS and now - self._answers[0].arrived_at > WINDOW_SECONDS:
            self._answers.popleft()
        # The median, because one of several API servers may have a wrong clock.
        median = median_low(answer.offset for answer in self._answers)
        change = median - self._offset
        if abs(change) > NEGLIGIBLE_SECONDS:
            self._offset = median
            logger.warning("most responses of the API server say that it is %+.0f s later; using that time", change)

    def _sample(self, answer: _Answer) -> None:
        """Store the answer; once there are enough, store only one of each `SAMPLE_SECONDS`, chosen at random."""
        has_enough = len(self._answers) >= MAXIMUM_ANSWERS
        if not has_enough or answer.arrived_at - self._answers[-1].arrived_at >= SAMPLE_SECONDS:
            self._answers.append(answer)
            self._skipped = 0
            return
        # Reservoir sampling: each answer of the interval is kept with the same probability. `arrived_at` stays that of
        # the first, so that the interval ends in time.
        self._skipped += 1
        if random.randint(0, self._skipped) == 0:  # noqa: S311 - keeps no secret
            self._answers[-1] = self._answers[-1]._replace(offset=answer.offset)
