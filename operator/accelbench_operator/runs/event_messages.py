"""Read from Events why objects are held up, with one list for all objects of a namespace.

An API server has no index of Events by object: it reads all Events of the namespace for each request. With a request
for each object, a thousand waiting pods would make it do so a thousand times.
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
"""Minimum time that a list is reused."""
CACHE_TIME_PER_DURATION = 20
"""Minimum ratio of the time that a list is reused to the time that it took, to keep load off the API server."""


class EventSummary(NamedTuple):
    """Summarize an Event, so that the greatest summary is the newest, or the warning among those of the same second."""

    at: datetime
    is_warning: bool
    message: str


def summarize_event(event: Manifest) -> EventSummary:
    """Return time, severity and message of an Event."""
    return EventSummary(_event_time(event), event.get("type") == "Warning", describe(event))


def _event_time(event: Manifest) -> datetime:
    return datetime.fromisoformat(
        event.get("lastTimestamp") or event.get("eventTime") or event["metadata"]["creationTimestamp"]
    )


@dataclass(frozen=True)
class _NamespaceEvents:
    """Hold the latest Event about each object of a namespace, by the object's UID."""

    since: datetime
    until: datetime
    events: Mapping[str, EventSummary]

    def is_fresh(self, now: datetime) -> bool:
        """Return True if it need not be read again; a clock that was set back does not extend its time."""
        return self.since <= now < self.until


class EventMessages:
    """Return the latest message about an object, from a list of its namespace that is reused for a short time."""

    def __init__(self, cluster: Cluster, clock: Callable[[], datetime]) -> None:
        self._cluster = cluster
        self._clock = clock
        self._cache: dict[str, _NamespaceEvents] = {}
        self._lock = asyncio.Lock()

    async def about(self, namespace: str, uid: str) -> str:
        """Return the message about the object with that UID; empty if there is none, or Events cannot be read."""
        async with self._lock:
            now = self._clock()
            self._cache = {name: answer for name, answer in self._cache.items() if answer.is_fresh(now)}
            if namespace not in self._cache:
                self._cache[namespace] = await self._read(namespace, now)
            event = self._cache[namespace].events.get(uid)
        return event.message if event else ""

    async def _read(self, namespace: str, now: datetime) -> _NamespaceEvents:
        """List the Events of a namespace; after an error, use those that were listed before it."""
        events: dict[str, EventSummary] = {}
        # Events are for people: if they cannot be read, cases wait without a message.
        with suppress(ApiError):
            async for event in self._cluster.list_events(namespace):
                uid, summary = event["involvedObject"].get("uid", ""), summarize_event(event)
                events[uid] = max(events.get(uid, summary), summary)
        read_at = self._clock()
        return _NamespaceEvents(
            now, read_at + max(MINIMUM_CACHE_TIME, CACHE_TIME_PER_DURATION * (read_at - now)), events
        )
