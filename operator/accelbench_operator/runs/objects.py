"""Read from the store what belongs to runs: Jobs, pods and results."""

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterator

from accelbench.api import labels
from accelbench.cluster_api.kinds import JOB, POD, RESULT
from accelbench_operator.engine.kinds import Key, Name, Owned, StoredObject
from accelbench_operator.engine.store import Store, name_of
from accelbench_operator.runs.attempts import Observed
from accelbench_operator.runs.failure import disruption_of
from accelbench_operator.runs.memory import RunMemory
from accelbench_operator.runs.observed import ObservedJob, ObservedPod, observe_job, observe_pod
from accelbench_operator.runs.summary import Summary, observe_result


def owned_by_runs(class_name: str) -> tuple[Owned, ...]:
    """Return the kinds that runs of that class own."""
    selector = f"{labels.MANAGED_BY}={labels.MANAGER},{labels.CLASS}={class_name},{labels.RUN_UID}"
    return (
        Owned(JOB, selector, observe_job),
        Owned(POD, selector, observe_pod),
        Owned(RESULT, selector, observe_result, immutable=True),
    )


class RunObjects:
    """Find in the store the objects of one run, and the latest results of all."""

    def __init__(
        self, store: Store, started: Callable[[ObservedJob | None, ObservedPod], None] = lambda _job, _pod: None
    ) -> None:
        """Call `started` for each pod whose container starts while it is held, with its Job."""
        self.store = store
        self._on_start = started
        self._disruptions: dict[Name, str] = {}
        """By the Job's namespace and name: the disruption of its pod, which is deleted."""
        self._latest: tuple[int, tuple[Summary, ...], int] | None = None
        store.subscribe(self._on_change)

    def observed(self, run: Key, memory: RunMemory | None = None) -> Observed:
        """Return the run's objects in its namespace, with `memory`; objects elsewhere with its labels are copies."""
        jobs: dict[str, ObservedJob] = {}
        pods: defaultdict[str, tuple[ObservedPod, ...]] = defaultdict(tuple)
        results: dict[str, Summary] = {}
        for held in self.store.owned(run.uid):
            if held.key.namespace != run.namespace:
                continue
            if isinstance(held, ObservedJob):
                jobs[held.key.name] = held
            elif isinstance(held, Summary):
                results[held.case] = held
            elif isinstance(held, ObservedPod):
                pods[held.job] += (held,)
        names = {job: (run.namespace, job) for job in jobs}
        disruptions = {job: self._disruptions[name] for job, name in names.items() if name in self._disruptions}
        memory = memory or RunMemory()
        return Observed(
            jobs, dict(pods), results, memory.failures, memory.obstacles, memory.queues, disruptions=disruptions
        )

    def has_jobs(self, run_uid: str) -> bool:
        """Return True if a Job of the run is held."""
        return any(isinstance(held, ObservedJob) for held in self.store.owned(run_uid))

    def pods(self) -> Iterator[ObservedPod]:
        """Return every pod that is held."""
        return (held for held in self.store.all(POD.name) if isinstance(held, ObservedPod))

    def summaries(self) -> Iterator[Summary]:
        """Iterate over the summaries of all results in the store, of every run."""
        return (held for held in self.store.all(RESULT.name) if isinstance(held, Summary))

    def latest(self, maximum: int) -> tuple[tuple[Summary, ...], int]:
        """Return the latest result of each namespace, series and case, and how many are left out.

        There are at most `maximum`, those that finished last. The tuple is the same object until a result changes.
        """
        if self._latest is None or self._latest[0] != maximum:
            latest = self._latest_of_each_case()
            newest = heapq.nlargest(maximum, latest, key=lambda result: result.finished_timestamp)
            self._latest = maximum, tuple(newest) if len(latest) > maximum else latest, len(latest) - len(newest)
        return self._latest[1:]

    def _latest_of_each_case(self) -> tuple[Summary, ...]:
        latest: dict[tuple[str, str, str], Summary] = {}
        for summary in self.summaries():
            key = (summary.namespace, summary.series, summary.case)
            if key not in latest or latest[key].finished_timestamp <= summary.finished_timestamp:
                latest[key] = summary
        return tuple(latest.values())

    def _on_change(self, before: StoredObject | None, after: StoredObject | None) -> None:
        """Drop stale latest results, keep the disruptions of deleted pods, and report a container's start."""
        held = after or before
        if isinstance(held, Summary):
            self._latest = None
        elif isinstance(held, ObservedJob) and after is None:
            self._disruptions.pop(name_of(held), None)
        elif isinstance(held, ObservedPod):
            job = self.store.get(JOB.name, (held.key.namespace, held.job))
            if after is None and held.disruption and job is not None:
                self._disruptions[name_of(job)] = disruption_of(held)
            if isinstance(before, ObservedPod) and after is not None and held.running and not before.running:
                self._on_start(job if isinstance(job, ObservedJob) else None, held)
