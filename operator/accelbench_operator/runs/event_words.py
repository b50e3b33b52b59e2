"""Why objects do not go on, in the words of their Events: one question answers for all that wait in a namespace.

An API server keeps no events at hand: it reads all of a namespace's, whichever object it is asked about. A thousand
pods that wait would have it do so a thousand times.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from accelbench.cluster_api.errors import ApiError
from accelbench_operator.runs.cluster import Cluster
from accelbench_operator.runs.observed import Told, told_by

FRESH = timedelta(seconds=5)
TIMES_AS_LONG = 20
"""An answer that took long is kept for so many times as long: questions are to be a small part of the server's work."""


@dataclass(frozen=True)
class _Answer:
    """What the events of one namespace tell, by the UID of what they are about."""

    since: datetime
    until: datetime
    told: Mapping[str, Told]

    def holds(self, now: datetime) -> bool:
        """Whether it need not be asked for anew; a clock that was put back does not make it hold for longer."""
        return self.since <= now < self.until


class EventWords:
    """The newest words about any object, as old as `FRESH` or as an answer that took long."""

    def __init__(self, cluster: Cluster, clock: Callable[[], datetime]) -> None:
        self._cluster = cluster
        self._clock = clock
        self._answers: dict[str, _Answer] = {}
        self._asking = asyncio.Lock()

    async def of(self, namespace: str, uid: str) -> str:
        """The words about the object of that UID; empty where there are none, or none can be had."""
        async with self._asking:
            now = self._clock()
            self._answers = {each: answer for each, answer in self._answers.items() if answer.holds(now)}
            if namespace not in self._answers:
                self._answers[namespace] = await self._ask(namespace, now)
            told = self._answers[namespace].told.get(uid)
        return told.words if told else ""

    async def _ask(self, namespace: str, now: datetime) -> _Answer:
        told: dict[str, Told] = {}
        # Events are for people: where they cannot be had, cases wait without their words.
        with suppress(ApiError):
            async for event in self._cluster.list_events(namespace):
                uid, words = event["involvedObject"].get("uid", ""), told_by(event)
                told[uid] = max(told.get(uid, words), words)
        ended = self._clock()
        return _Answer(now, ended + max(FRESH, TIMES_AS_LONG * (ended - now)), told)
