"""How far cases under way have come: their runners tell it in their logs, a few of which are followed as they grow.

It is for people who watch; nothing is decided by it. Anyone can write into a log, so what is read of one is bounded.
"""

import asyncio
import contextlib
import heapq
import logging
import math
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import replace
from datetime import timedelta

from accelbench.api.run import MAXIMUM_VARIANTS
from accelbench.cluster_api.errors import ApiError
from accelbench.cluster_api.kinds import POD
from accelbench.delivery.log import (
    MAXIMUM_LINE_BYTES,
    MAXIMUM_LOG_BYTES,
    Event,
    LaunchFinished,
    LaunchStarted,
    PhaseReached,
    RoundFinished,
    parse_event,
)
from accelbench_operator.engine.api import KubernetesApi
from accelbench_operator.engine.kinds import Key
from accelbench_operator.metrics.snapshot import LiveCase
from accelbench_operator.runs.observed import ObservedPod
from accelbench_operator.runs.pod_template import CONTAINER

logger = logging.getLogger(__name__)
FOLLOWED = 32
"""Cases at a time, those that have run longest first: each holds a connection to the API server."""
LOOK_SECONDS = 2.0
AFTER = timedelta(seconds=10)
"""A case that is shorter needs no follower."""
FOLLOW_SECONDS = 3600
AGAIN_SECONDS = 30.0
AT_A_TIME = 100
"""Lines that are read before others get their turn: a pod may print megabytes at once."""


class LiveCases:
    """Follows the logs of cases under way; `now` is what they have told."""

    def __init__(
        self,
        api: KubernetesApi,
        pods: Callable[[], Iterable[ObservedPod]],
        run_of: Callable[[str], str | None],
        leading: Callable[[], bool],
    ) -> None:
        """`pods` are all that are held, `run_of` names the run of a UID; who does not lead follows nothing."""
        self._api = api
        self._pods = pods
        self._run_of = run_of
        self._leading = leading
        self._cases: dict[str, LiveCase] = {}
        """By the pod's UID."""
        self.omitted = 0
        """Cases under way that are not followed, because there are more than `FOLLOWED`."""

    @property
    def now(self) -> tuple[LiveCase, ...]:
        """Cases that are followed, as far as they have come."""
        return tuple(self._cases.values())

    async def run(self) -> None:
        """Follow until cancelled."""
        followers: dict[str, asyncio.Task[None]] = {}
        try:
            while True:
                wanted = {pod.key.uid: pod for pod in self._wanted()}
                for uid in followers.keys() - wanted.keys():
                    followers.pop(uid).cancel()
                    self._cases.pop(uid, None)
                for uid, pod in wanted.items():
                    if uid not in followers and len(followers) < FOLLOWED:
                        followers[uid] = asyncio.create_task(self._follow(pod))
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            for task in followers.values():
                task.cancel()
            await asyncio.gather(*followers.values(), return_exceptions=True)
            self._cases.clear()

    def _wanted(self) -> Iterable[ObservedPod]:
        """The longest-running first, so that a follower is kept until its case ends."""
        self.omitted = 0
        if not self._leading():
            return ()
        latest = self._api.clock() - AFTER
        running = [
            (pod.running, pod.key.uid, pod)
            for pod in self._pods()
            if pod.running and pod.running <= latest and not pod.is_over and not pod.deleted
            if self._run_of(pod.owner)
        ]
        self.omitted = max(0, len(running) - FOLLOWED)
        return [pod for _, _, pod in heapq.nsmallest(FOLLOWED, running)]

    async def _follow(self, pod: ObservedPod) -> None:
        key = pod.key
        self._cases[key.uid] = LiveCase(key.namespace, self._run_of(pod.owner) or "", pod.case)
        try:
            await self._read(key)
        except Exception:
            logger.exception("%s/%s: its log is no longer followed", key.namespace, key.name)
            self._cases.pop(key.uid, None)

    async def _read(self, key: Key) -> None:
        path = f"{POD.path(key.namespace)}/{key.name}/log"
        query: dict[str, object] = {"container": CONTAINER, "follow": "true", "limitBytes": MAXIMUM_LOG_BYTES}
        heard = None
        while True:
            if heard is not None:
                # What was read is not read again: a log has many MB, and may have more than are read at a time.
                query["sinceSeconds"] = math.ceil((self._api.clock() - heard).total_seconds()) + 1
            with contextlib.suppress(ApiError):
                lines = self._api.lines(path, query, FOLLOW_SECONDS, MAXIMUM_LINE_BYTES)
                async for number, line in _numbered(lines):
                    heard = self._api.clock()
                    if number % AT_A_TIME == 0:
                        await asyncio.sleep(0)
                    if event := parse_event(line):
                        self._cases[key.uid] = after(self._cases[key.uid], event)
            # It ended, or was rotated away, or its node is busy.
            await asyncio.sleep(AGAIN_SECONDS)


async def _numbered(lines: AsyncIterator[str]) -> AsyncIterator[tuple[int, str]]:
    number = 0
    async for line in lines:
        number += 1
        yield number, line


def after(case: LiveCase, event: Event) -> LiveCase:
    """Where the case stands once that was told."""
    if isinstance(event, LaunchStarted):
        return replace(case, variant=event.variant, phase="")
    if isinstance(event, PhaseReached):
        return replace(case, phase=event.phase)
    if isinstance(event, LaunchFinished):
        return replace(case, variant="", phase="")
    if isinstance(event, RoundFinished):
        return replace(case, round=event.round, comparisons=event.comparisons[:MAXIMUM_VARIANTS])
    return case
