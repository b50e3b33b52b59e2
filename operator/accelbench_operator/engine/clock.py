"""The API server's time: what is waited for began at a moment that the cluster wrote down, and ends by the same clock.

A machine whose own clock is wrong by minutes would otherwise give up cases that have only begun.
"""

import logging
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

logger = logging.getLogger(__name__)

NEGLIGIBLE = timedelta(seconds=5)
"""An answer takes a while to come, and says whole seconds."""


def local_time() -> datetime:
    """This machine's."""
    return datetime.now(UTC)


class ServerClock:
    """This machine's clock, set right by the `Date` of the API server's answers."""

    def __init__(self, local: Callable[[], datetime] = local_time) -> None:
        self._local = local
        self._ahead = timedelta()

    def __call__(self) -> datetime:
        """The API server's time."""
        return self._local() - self._ahead

    def heard(self, date: str) -> None:
        """An answer with that `Date` has just come; anything else than a date says nothing."""
        try:
            ahead = self._local() - parsedate_to_datetime(date)
        except ValueError:
            return
        if abs(ahead - self._ahead) > NEGLIGIBLE:
            self._ahead = ahead
            logger.warning("this machine's clock is %+.0f s off the API server's, which counts", ahead.total_seconds())
