"""Follow the logs of running cases, to export their progress.

No decision depends on the progress. A runner can write anything into its log, so reading is limited in size, rate and
number.
"""

import asyncio
import contextlib
import logging
import math
from collections.abc import AsyncIterator, Callable, Container, Iterable
from dataclasses import replace
from datetime import timedelta

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
from accelbench_operator.engine.fair_share import fair_share
from accelbench_operator.engine.kinds import Key
from accelbench_operator.metrics.snapshot import LiveCase
from accelbench_operator.runs.observed import ObservedPod
from accelbench_operator.runs.pod_template import CONTAINER
from accelbench_operator.runs.running_case import RunningCase

logger = logging.getLogger(__name__)
MAXIMUM_FOLLOWED = 32
"""Most cases that are followed at a time: each holds a connection to the API server."""
POLL_SECONDS = 2.0
"""Seconds between checks for pods to follow."""
MINIMUM_AGE = timedelta(seconds=10)
"""Time that a container must have run before its log is followed."""
FOLLOW_SECONDS = 3600
"""Longest time of one request for a log."""
RETRY_SECONDS = 30.0
"""Seconds until a log whose request has ended is requested again."""
LINES_PER_TURN = 100
"""Lines read before other tasks get a turn: a pod may print megabytes at once."""


class LiveCases:
    """Follow the logs of running cases; `progress` is what they have logged."""

    def __init__(
        self,
        api: KubernetesApi,
        pods: Callable[[], Iterable[ObservedPod]],
        find_case: Callable[[ObservedPod], RunningCase | None],
        is_leading: Callable[[], bool],
    ) -> None:
        """Create a follower of the pods of running cases.

        Args:
            api: reads the logs.
            pods: returns all pods in the store.
            find_case: returns the case that a pod measures; None if the pod's attempt has finished or is unknown.
            is_leading: returns True while this replica leads; only the leader follows logs.
        """
        self._api = api
        self._pods = pods
        self._find_case = find_case
        self._is_leading = is_leading
        self._cases: dict[str, LiveCase] = {}
        """By the UID of the pod."""
        self.omitted = 0
        """Running cases that are not followed, because there are more than `MAXIMUM_FOLLOWED`."""

    @property
    def progress(self) -> tuple[LiveCase, ...]:
        """Return the progress of every case that is followed."""
        return tuple(self._cases.values())

    async def run(self) -> None:
        """Follow the logs of the selected pods until cancelled."""
        followers: dict[str, asyncio.Task[None]] = {}
        try:
            while True:
                pods_by_uid = {pod.key.uid: pod for pod in self._select_pods()}
                for uid in followers.keys() - pods_by_uid.keys():
                    followers.pop(uid).cancel()
                    self._cases.pop(uid, None)
                for uid, pod in pods_by_uid.items():
                    if uid not in followers:
                        followers[uid] = asyncio.create_task(self._follow(pod))
                await asyncio.sleep(POLL_SECONDS)
        finally:
            for task in followers.values():
                task.cancel()
            await asyncio.gather(*followers.values(), return_exceptions=True)
            self._cases.clear()

    def _select_pods(self) -> Iterable[ObservedPod]:
        """Return the pods whose logs to follow: the pods that have run longest, equally many of each namespace.

        Set `omitted` to the number of running pods that are left out; no pod is followed unless this replica leads.
        """
        self.omitted = 0
        if not self._is_leading():
            return ()
        latest_start = self._api.clock() - MINIMUM_AGE
        candidates = []
        for pod in self._pods():
            has_run_long_enough = pod.started_at is not None and pod.started_at <= latest_start
            has_ended = pod.is_runner_over or pod.deletion_time
            if has_run_long_enough and not has_ended and self._find_case(pod):
                # The UID decides between equal times, because pods have no order.
                candidates.append((pod.started_at, pod.key.uid, pod))
        self.omitted = max(0, len(candidates) - MAXIMUM_FOLLOWED)
        # The oldest of a namespace stay selected, so a case is followed until it ends.
        oldest_first = [pod for _start_time, _uid, pod in sorted(candidates, key=lambda entry: entry[:2])]
        return fair_share(oldest_first, lambda pod: pod.key.namespace, MAXIMUM_FOLLOWED)

    async def _follow(self, pod: ObservedPod) -> None:
        """Keep the progress of the pod's case up to date until cancelled; after an error, stop exporting it."""
        key = pod.key
        running_case = self._find_case(pod)
        if running_case is None:
            return  # the case has ended since its pod was selected
        self._cases[key.uid] = LiveCase(key.namespace, running_case.run, running_case.case)
        try:
            await self._apply_events(key, running_case.variants)
        except Exception:
            logger.exception(
                "cannot follow the log of pod %s/%s; its progress is not exported", key.namespace, key.name
            )
            self._cases.pop(key.uid, None)

    async def _apply_events(self, key: Key, variants: Container[str]) -> None:
        """Follow the log of a pod until cancelled, and update the progress of its case at each event.

        `variants` are the names of the case's variants; what the log says of other names is ignored.
        """
        path = f"{POD.path(key.namespace)}/{key.name}/log"
        query: dict[str, object] = {"container": CONTAINER, "follow": "true", "limitBytes": MAXIMUM_LOG_BYTES}
        last_read_time = None
        while True:
            if last_read_time is not None:
                # Ask for the lines since the last line that was read, in whole seconds, and for one second more: a
                # repeated line does no harm. Older lines that `limitBytes` has cut off are never read, but later
                # events correct the progress.
                elapsed = self._api.clock() - last_read_time
                query["sinceSeconds"] = math.ceil(elapsed.total_seconds()) + 1
            with contextlib.suppress(ApiError):
                lines = self._api.lines(path, query, FOLLOW_SECONDS, MAXIMUM_LINE_BYTES)
                async for line_number, line in _enumerate_lines(lines):
                    last_read_time = self._api.clock()
                    if line_number % LINES_PER_TURN == 0:
                        await asyncio.sleep(0)  # let other tasks run
                    event = parse_event(line)
                    if event:
                        self._cases[key.uid] = advance(self._cases[key.uid], event, variants)
            # The log ended or was rotated, or its node is busy.
            await asyncio.sleep(RETRY_SECONDS)


async def _enumerate_lines(lines: AsyncIterator[str]) -> AsyncIterator[tuple[int, str]]:
    """Yield each line with its number, counted from 1."""
    number = 0
    async for line in lines:
        number += 1
        yield number, line


def advance(case: LiveCase, event: Event, variants: Container[str]) -> LiveCase:
    """Return the progress of `case` after an event of its log.

    Names that are not in `variants` are ignored: a program can write any name into its log, and each would become a new
    series in Prometheus.
    """
    if isinstance(event, LaunchStarted):
        if event.variant not in variants:
            return case
        return replace(case, variant=event.variant, phase="")
    if isinstance(event, PhaseReached):
        return replace(case, phase=event.phase)
    if isinstance(event, LaunchFinished):
        return replace(case, variant="", phase="")
    if isinstance(event, RoundFinished):
        comparisons = tuple(estimate for estimate in event.comparisons if estimate.variant in variants)
        return replace(case, round=event.round, comparisons=comparisons)
    return case  # other events are no progress
