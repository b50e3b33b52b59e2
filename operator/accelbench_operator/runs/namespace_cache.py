"""Answer requests about single objects from one list of their namespace, and reuse the list for a short time.

An API server reads all objects of a namespace for each such request. If a thousand objects wait, a request for each of
them would make it read them all a thousand times.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

from accelbench.cluster_api.errors import ApiError

MINIMUM_CACHE_TIME = timedelta(seconds=5)
"""Minimum time for which an answer is reused."""
CACHE_TIME_PER_DURATION = 20
"""Minimum time for which an answer is reused, as a multiple of the seconds that reading it took: it keeps load off the
API server."""

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class _Read(Generic[Answer]):
    """Hold the answer about one namespace, or the API server's refusal."""

    requested_at: datetime
    valid_until: datetime
    answer: Answer | ApiError

    def is_valid(self, now: datetime) -> bool:
        """Return True if the answer may be reused at the time `now`."""
        # If the clock was set back, `now` may be before the request.
        return self.requested_at <= now < self.valid_until


class NamespaceCache(Generic[Answer]):
    """Hold the latest answer about each namespace."""

    def __init__(self, read: Callable[[str], Awaitable[Answer]], clock: Callable[[], datetime]) -> None:
        """Create an empty cache; `read` returns the answer about a namespace, or raises ApiError."""
        self._read = read
        self._clock = clock
        self._reads: dict[str, _Read[Answer]] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """By namespace; a lock is dropped when no caller uses it."""

    async def get(self, namespace: str) -> Answer:
        """Return the answer about a namespace, cached or read anew; raise ApiError if the request failed."""
        # One caller at a time reads each namespace; those that wait then find the answer in the cache.
        async with self._locks.setdefault(namespace, asyncio.Lock()):
            now = self._clock()
            self._reads = {name: read for name, read in self._reads.items() if read.is_valid(now)}
            if namespace not in self._reads:
                self._reads[namespace] = await self._request(namespace, now)
            answer = self._reads[namespace].answer
        if isinstance(answer, ApiError):
            raise answer
        return answer

    async def _request(self, namespace: str, now: datetime) -> _Read[Answer]:
        """Read the answer about a namespace, and determine until when it may be reused."""
        answer: Answer | ApiError
        try:
            answer = await self._read(namespace)
        except ApiError as error:
            # Keep the error too, so that not every caller repeats a request that fails.
            answer = error
        read_at = self._clock()
        # The slower the requests, the longer the answer is reused.
        cache_time = max(MINIMUM_CACHE_TIME, CACHE_TIME_PER_DURATION * (read_at - now))
        return _Read(now, read_at + cache_time, answer)
