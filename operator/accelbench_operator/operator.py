"""The parts together: reflectors fill the store, events and the store fill the queue, workers reconcile."""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from accelbench_operator.apply import Applier
from accelbench_operator.cluster import KubernetesCluster
from accelbench_operator.kubernetes_api import KubernetesApi
from accelbench_operator.lead import leading
from accelbench_operator.observed import observe_job, observe_pod, observe_result
from accelbench_operator.queue import KeyedQueue
from accelbench_operator.reconcile import Reconciler, RunKey
from accelbench_operator.reflector import Reflector
from accelbench_operator.retention import keep_deleting, surplus
from accelbench_operator.settings import Settings
from accelbench_operator.snapshot import QueueHealth, Snapshot, Summary
from accelbench_operator.store import Held, Kind, Store

WORKERS = 16
LAG_PERIOD_SECONDS = 1.0

KINDS: tuple[tuple[Kind, str, str, Callable[[Mapping[str, Any]], Held | None]], ...] = (
    ("Job", "/apis/batch/v1", "jobs", observe_job),
    ("Pod", "/api/v1", "pods", observe_pod),
    ("BenchmarkResult", "/apis/accelbench.dev/v1alpha1", "benchmarkresults", observe_result),
)


class Operator:
    """One operator process, apart from its watch of runs (`watch`) and its metrics server (`__main__`)."""

    def __init__(self, api: KubernetesApi, settings: Settings) -> None:
        self._loop = asyncio.get_running_loop()
        self._keys: dict[str, RunKey] = {}
        self._lag = 0.0
        self._store = Store(self._changed)
        self._retention = settings.retention
        self._cluster = cluster = KubernetesCluster(api)
        applier = Applier(cluster, self._store, _now)
        self._reconciler = Reconciler(cluster, self._store, applier, settings, _now, leading)
        self._queue: KeyedQueue[RunKey] = KeyedQueue(self._reconcile, self._loop.time)
        self._reflectors = [
            Reflector(api, self._store, kind, _path(group, plural, namespace), observe, settings.class_name, namespace)
            for kind, group, plural, observe in KINDS
            for namespace in settings.namespaces or (None,)
        ]

    def run_changed(self, key: RunKey) -> None:
        """A run is there, has changed or has gone."""
        self._keys[key.uid] = key
        self._queue.add(key)

    async def run(self) -> None:
        """Work until cancelled; nothing is decided before everything that is there has been listed."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._measure_lag())
            for reflector in self._reflectors:
                group.create_task(reflector.run())
            for reflector in self._reflectors:
                await reflector.synced.wait()
            group.create_task(self._queue.run(WORKERS))
            group.create_task(keep_deleting(self._surplus, self._delete))

    def longest_work_seconds(self) -> float:
        """For how long one key has been worked on: every request ends, so nothing should take minutes."""
        return self._queue.longest_work_seconds

    def lag_seconds(self) -> float:
        """How late the event loop last woke."""
        return self._lag

    def snapshot(self) -> Snapshot:
        """The operator now; called from the metrics server's thread, answered by the event loop."""
        return asyncio.run_coroutine_threadsafe(self._snapshot(), self._loop).result(timeout=10)

    async def _snapshot(self) -> Snapshot:
        runs = Counter((key.namespace, phase) for key, phase in self._reconciler.phases.items())
        queue = QueueHealth(
            depth=self._queue.depth,
            oldest_seconds=self._queue.oldest_seconds,
            loop_lag_seconds=self._lag,
            reconciled_total=self._queue.worked_total,
            failed_total=self._queue.failed_total,
        )
        return Snapshot(leading(), self._store.results(), runs, self._store.counts(), queue)

    async def _reconcile(self, key: RunKey) -> float | None:
        after = await self._reconciler(key)
        if key not in self._reconciler.phases:
            self._keys.pop(key.uid, None)
        return after

    def _surplus(self) -> tuple[Summary, ...]:
        if not leading():
            return ()
        unknown = self._keys.keys() - {key.uid for key in self._reconciler.phases}
        in_progress = self._reconciler.in_progress() | unknown
        return surplus(self._store.summaries(), self._retention, _now(), in_progress)

    async def _delete(self, result: Summary) -> None:
        await self._cluster.delete_result(result.namespace, result.name, result.uid)

    def _changed(self, run_uid: str) -> None:
        # Objects of a run that was not seen yet wait for it: the watch of runs begins with all of them.
        if key := self._keys.get(run_uid):
            self._queue.add(key)

    async def _measure_lag(self) -> None:
        while True:
            before = self._loop.time()
            await asyncio.sleep(LAG_PERIOD_SECONDS)
            self._lag = max(0.0, self._loop.time() - before - LAG_PERIOD_SECONDS)


def _path(group: str, plural: str, namespace: str | None) -> str:
    return f"{group}/namespaces/{namespace}/{plural}" if namespace else f"{group}/{plural}"


def _now() -> datetime:
    return datetime.now(UTC)
