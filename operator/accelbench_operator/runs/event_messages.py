"""Read from Events why Jobs and pods do not start, with one list for all objects of a namespace.

An API server has no index of Events by object: for each request it reads all Events of the namespace.
"""

from collections.abc import Callable, Container, Mapping
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

from accelbench.cluster_api.errors import ApiError
from accelbench_operator.engine.kinds import Manifest
from accelbench_operator.runs.cluster import Cluster
from accelbench_operator.runs.namespace_cache import NamespaceCache
from accelbench_operator.runs.observed import describe

MAXIMUM_EVENTS = 20_000
"""Maximum number of Events of a namespace that are read; a pod that restarts all the time has a few each hour."""


class EventSummary(NamedTuple):
    """Summarize an Event. The greatest summary is the newest; of two with the same time, a warning is greater."""

    at: datetime
    is_warning: bool
    message: str


def summarize_event(event: Manifest) -> EventSummary:
    """Return the time, severity and message of an Event."""
    return EventSummary(_event_time(event), event.get("type") == "Warning", describe(event))


def _event_time(event: Manifest) -> datetime:
    """Return when the Event occurred for the last time."""
    return datetime.fromisoformat(
        event.get("lastTimestamp") or event.get("eventTime") or event["metadata"]["creationTimestamp"]
    )


class EventMessages:
    """Find the latest message about an object in a list of its namespace, and reuse each list for a short time."""

    def __init__(
        self, cluster: Cluster, clock: Callable[[], datetime], find_uids: Callable[[str], Container[str]]
    ) -> None:
        """Read Events from `cluster`; keep only those about objects whose UIDs `find_uids` returns for a namespace."""
        self._cluster = cluster
        self._find_uids = find_uids
        self._events: NamespaceCache[Mapping[str, EventSummary]] = NamespaceCache(self._read, clock)

    async def latest_message(self, namespace: str, uid: str) -> str:
        """Return the message of the latest Event about an object; empty if there is none."""
        event = (await self._events.get(namespace)).get(uid)
        return event.message if event else ""

    async def _read(self, namespace: str) -> Mapping[str, EventSummary]:
        """Read the latest Event about each stored Job and pod of a namespace; return them by the object's UID."""
        uids = self._find_uids(namespace)
        events: dict[str, EventSummary] = {}
        count = 0
        # The messages only explain a wait to people: after an error of the API server, those read so far are enough.
        with suppress(ApiError):
            async for event in self._cluster.list_events(namespace):
                uid = event["involvedObject"].get("uid", "")
                if uid in uids:
                    summary = summarize_event(event)
                    # The greatest summary is the newest.
                    events[uid] = max(events.get(uid, summary), summary)
                count += 1
                if count >= MAXIMUM_EVENTS:
                    break
        return events
