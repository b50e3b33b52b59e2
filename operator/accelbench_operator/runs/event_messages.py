"""Read from Events why Jobs and pods do not start, with one list for all objects of a namespace.

An API server has no index of Events by object: for each request it reads all Events of the namespace. With one request
for each of a thousand waiting pods, it would read them all a thousand times.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from accelbench.cluster_api.errors import ApiError
from accelbench_operator.engine.kinds import Manifest
from accelbench_operator.runs.cluster import Cluster
from accelbench_operator.runs.observed import describe

MINIMUM_CACHE_TIME = timedelta(seconds=5)
"""Minimum time for which a list is reused."""
CACHE_TIME_PER_DURATION = 20
"""Minimum ratio of that time to the duration of the list's requests, to keep load off the API server."""


class EventSummary(NamedTuple):
    """Summarize an Event. The greatest summary is the newest; of two with the same time, a warning is greater."""

    at: datetime
    is_warning: bool
    message: str


def summarize_event(event: Manifest) -> EventSummary:
    """Return the time, severity and message of an Event."""
    return EventSummary(_event_time(event), event.get("type") == "Warning", describe(event))


def _event_time(event: Manifest) -> datetime:
    """Return when the Event occurred last."""
    return datetime.fromisoformat(
        event.get("lastTimestamp") or event.get("eventTime") or event["metadata"]["creationTimestamp"]
    )


@dataclass(frozen=True)
class _NamespaceEvents:
    """Hold the latest Event about each object of a namespace, by the object's UID."""

    requested_at: datetime
    valid_until: datetime
    events: Mapping[str, EventSummary]

    def is_valid(self, now: datetime) -> bool:
        """Return True if the list may be reused now."""
        # The clock may have been set back since the request.
        return self.requested_at <= now < self.valid_until


class EventMessages:
    """Find the latest message about an object in a list of its namespace, and reuse each list for a short time."""

    def __init__(self, cluster: Cluster, clock: Callable[[], datetime]) -> None:
        self._cluster = cluster
        self._clock = clock
        self._cache: dict[str, _NamespaceEvents] = {}
        self._lock = asyncio.Lock()

    async def about(self, namespace: str, uid: str) -> str:
        """Return the message of the latest Event about an object, or an empty text."""
        # Only one caller at a time requests a list; callers that wait find it in the cache.
        async with self._lock:
            now = self._clock()
            self._cache = {name: events for name, events in self._cache.items() if events.is_valid(now)}
            if namespace not in self._cache:
                self._cache[namespace] = await self._read(namespace, now)
            event = self._cache[namespace].events.get(uid)
        return event.message if event else ""

    async def _read(self, namespace: str, now: datetime) -> _NamespaceEvents:
        """Read the latest Event about each object of a namespace."""
        events: dict[str, EventSummary] = {}
        # Only people read the messages, so an error changes nothing for a case.
        with suppress(ApiError):
            async for event in self._cluster.list_events(namespace):
                uid = event["involvedObject"].get("uid", "")
                summary = summarize_event(event)
                events[uid] = max(events.get(uid, summary), summary)
        read_at = self._clock()
        # The slower the requests, the longer the list is reused: that keeps load off the API server.
        cache_time = max(MINIMUM_CACHE_TIME, CACHE_TIME_PER_DURATION * (read_at - now))
        return _NamespaceEvents(now, read_at + cache_time, events)
