"""Read the Jobs, pods and results of runs from the store."""

import itertools
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import NamedTuple

from accelbench.api import labels
from accelbench.cluster_api.kinds import JOB, POD, RESULT
from accelbench_operator.engine.fair_share import fair_share
from accelbench_operator.engine.kinds import Key, Name, Owned, StoredObject
from accelbench_operator.engine.store import Store, name_of
from accelbench_operator.runs.attempts import Observed
from accelbench_operator.runs.failure import Removal, removal_of
from accelbench_operator.runs.memory import RunMemory
from accelbench_operator.runs.observed import ObservedJob, ObservedPod, observe_job, observe_pod
from accelbench_operator.runs.summary import Summary, observe_result


def owned_by_runs(class_name: str) -> tuple[Owned, ...]:
    """Return the kinds of objects that the runs of a class own, and how to select and store them."""
    selector = f"{labels.MANAGED_BY}={labels.MANAGER},{labels.CLASS}={class_name},{labels.RUN_UID}"
    return (
        Owned(JOB, selector, observe_job),
        Owned(POD, selector, observe_pod),
        Owned(RESULT, selector, observe_result, immutable=True),
    )


class _LatestResults(NamedTuple):
    """Hold the latest results of cases, at most `maximum`, and the number of results that are left out."""

    maximum: int
    results: tuple[Summary, ...]
    omitted: int


class RunObjects:
    """Find the objects of one run in the store, and the latest results of all runs."""

    def __init__(
        self, store: Store, on_start: Callable[[ObservedJob, ObservedPod], None] = lambda _job, _pod: None
    ) -> None:
        """Subscribe to changes of the store, and call `on_start` when the runner's container of a pod starts."""
        self.store = store
        self._on_start = on_start
        self._removals: dict[Name, Removal] = {}
        """Why the cluster ended pods that have been deleted, by namespace and name of their Job."""
        self._latest: _LatestResults | None = None
        store.subscribe(self._on_change)

    def observed(self, run: Key, memory: RunMemory | None = None) -> Observed:
        """Return a run's objects, and what this process remembers of the run."""
        jobs: dict[str, ObservedJob] = {}
        stored_pods: list[ObservedPod] = []
        results: dict[str, Summary] = {}
        removals: dict[str, Removal] = {}
        for stored in self.store.owned(run.uid):
            # An object that somebody copied into another namespace may still have the run's labels.
            if stored.key.namespace != run.namespace:
                continue
            if isinstance(stored, ObservedJob):
                jobs[stored.key.name] = stored
                removal = self._removals.get(name_of(stored))
                if removal is not None:
                    removals[stored.key.name] = removal
            elif isinstance(stored, Summary):
                results[stored.case] = stored
            elif isinstance(stored, ObservedPod):
                stored_pods.append(stored)
        memory = memory or RunMemory()
        stored_uids = {pod.key.uid for pod in stored_pods}
        pods: defaultdict[str, tuple[ObservedPod, ...]] = defaultdict(tuple)
        for pod in memory.with_unwatched_pods(stored_pods, {job.key.uid for job in jobs.values()}):
            pods[pod.job] += (pod,)
        return Observed(
            jobs=jobs,
            pods=dict(pods),
            results=results,
            failures=memory.failures,
            obstacles=memory.obstacles,
            queues=memory.queues,
            removals=removals,
            own_jobs=memory.own_jobs,
            documents=memory.documents,
            # The store lacks these pods, because no watch reports them.
            next_reads={uid: memory.next_reads.get(uid) for uid in memory.pods.keys() - stored_uids},
        )

    def has_jobs(self, run: Key) -> bool:
        """Return True if a Job of the run is in the store."""
        return any(
            isinstance(stored, ObservedJob) and stored.key.namespace == run.namespace
            for stored in self.store.owned(run.uid)
        )

    def ended_jobs(self, namespace: str) -> Iterator[ObservedJob]:
        """Yield the Jobs of a namespace that have ended."""
        for stored in self.store.all(JOB.name):
            if isinstance(stored, ObservedJob) and stored.key.namespace == namespace and stored.has_ended:
                yield stored

    def uids(self, namespace: str) -> frozenset[str]:
        """Return the UIDs of the namespace's Jobs and pods."""
        objects = itertools.chain(self.store.all(JOB.name), self.store.all(POD.name))
        return frozenset(stored.key.uid for stored in objects if stored.key.namespace == namespace)

    def pods(self) -> Iterator[ObservedPod]:
        """Return an iterator over the pods of all runs."""
        return (stored for stored in self.store.all(POD.name) if isinstance(stored, ObservedPod))

    def summaries(self) -> Iterator[Summary]:
        """Return an iterator over the summaries of the results of all runs."""
        return (stored for stored in self.store.all(RESULT.name) if isinstance(stored, Summary))

    def latest(self, maximum: int) -> tuple[tuple[Summary, ...], int]:
        """Return the latest result of each case, and how many are left out.

        There are at most `maximum` results in total, divided fairly among the namespaces. Until a result changes, the
        tuple is the same object, so that metrics can be reused.
        """
        if self._latest is None or self._latest.maximum != maximum:
            results = self._latest_of_each_case()
            omitted = max(0, len(results) - maximum)
            if omitted:
                newest_first = sorted(results, key=_storage_order, reverse=True)
                results = fair_share(newest_first, lambda result: result.namespace, maximum)
            self._latest = _LatestResults(maximum, results, omitted)
        return self._latest.results, self._latest.omitted

    def _latest_of_each_case(self) -> tuple[Summary, ...]:
        """Return the latest result of each case, for every namespace and series."""
        latest: dict[tuple[str, str, str], Summary] = {}
        for summary in self.summaries():
            key = (summary.namespace, summary.series, summary.case)
            if key not in latest or _storage_order(latest[key]) < _storage_order(summary):
                latest[key] = summary
        return tuple(latest.values())

    def _on_change(self, before: StoredObject | None, after: StoredObject | None) -> None:
        """Update what this object derives from the store, and call `on_start` if a runner's container has started.

        `before` is None for a new object, and `after` for a removed one.
        """
        changed = after or before
        if isinstance(changed, Summary):
            self._latest = None
        elif isinstance(changed, ObservedJob) and after is None:
            self._removals.pop(name_of(changed), None)
        elif isinstance(changed, ObservedPod):
            job = self.store.get(JOB.name, (changed.key.namespace, changed.job))
            # The pod may belong to an earlier Job with the same name.
            if not isinstance(job, ObservedJob) or job.key.uid != changed.job_uid:
                return
            # Keep the reason why the cluster removed a pod: it explains the failure of the pod's Job.
            removal = removal_of(changed) if after is None else None
            if removal is not None:
                self._removals[name_of(job)] = removal
            if isinstance(before, ObservedPod) and isinstance(after, ObservedPod):
                has_started = after.started_at is not None and before.started_at is None
                if has_started:
                    self._on_start(job, after)


def _storage_order(result: Summary) -> tuple[float, str]:
    """Return a sort key that grows with the time of storage, by the API server's clock, which no tenant sets."""
    # Times are whole seconds, so the name decides between equal times.
    return result.created_timestamp, result.name
