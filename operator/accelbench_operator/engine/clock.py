"""Follow the API server's clock: deadlines start at timestamps of the cluster, so they must end by the same clock.

Otherwise an operator on a machine whose clock is minutes off would give up cases that have just begun.
"""

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

logger = logging.getLogger(__name__)

NEGLIGIBLE_CHANGE = timedelta(seconds=5)
"""Maximum change of the offset that is ignored: `Date` has whole seconds, and a response takes time to arrive."""


def local_time() -> datetime:
    """Return the time of this machine's clock."""
    return datetime.now(UTC)


class ServerClock:
    """Correct this machine's clock by the `Date` header of the API server's responses."""

    def __init__(self, local: Callable[[], datetime] = local_time) -> None:
        self._local = local
        self._offset = timedelta()
        """How far the local clock is ahead of the API server's."""

    def __call__(self) -> datetime:
        """Return the API server's time."""
        return self._local() - self._offset

    def set_from_header(self, date: str) -> None:
        """Correct the clock by the `Date` header of a response that has just arrived."""
        try:
            offset = self._local() - parsedate_to_datetime(date)
        except ValueError:
            return
        if abs(offset - self._offset) > NEGLIGIBLE_CHANGE:
            self._offset = offset
            logger.warning(
                "the local clock differs from the API server's by %+.0f s; using the server's time",
                offset.total_seconds(),
            )
