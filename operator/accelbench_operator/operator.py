"""Connect the components: reflectors fill the store, events and the store fill the queue, workers reconcile."""

import asyncio
import logging
from collections import Counter
from contextlib import AbstractAsyncContextManager, nullcontext

from accelbench.api.run import Attempt
from accelbench.cluster_api.errors import ApiError
from accelbench.cluster_api.kinds import RUN
from accelbench_operator.engine.api import KubernetesApi
from accelbench_operator.engine.controllers import Controllers
from accelbench_operator.engine.election import Election, always_leads, take_part
from accelbench_operator.engine.health import MAXIMUM_LAG_SECONDS, MAXIMUM_STEP_SECONDS, Readings
from accelbench_operator.engine.kinds import Key
from accelbench_operator.engine.store import Store
from accelbench_operator.metrics.live import LiveCases
from accelbench_operator.metrics.snapshot import QueueHealth, Snapshot
from accelbench_operator.metrics.telemetry import Telemetry
from accelbench_operator.runs.apply import Applier
from accelbench_operator.runs.cluster import Cluster
from accelbench_operator.runs.objects import RunObjects
from accelbench_operator.runs.observed import ObservedJob, ObservedPod
from accelbench_operator.runs.reconcile import Reconciler
from accelbench_operator.runs.retention import keep_deleting, results_to_delete
from accelbench_operator.settings import Settings
from accelbench_operator.skew import find_missing_kinds, find_skew

logger = logging.getLogger(__name__)

LAG_PERIOD_SECONDS = 1.0
SKEW_PERIOD_SECONDS = 10.0
"""Seconds between two checks whether the CRDs fit, until they do."""
SERVED_PERIOD_SECONDS = 30.0
"""Seconds between two checks whether the CRDs still exist."""
MAXIMUM_RUNS = 500
"""Maximum number of unfinished runs whose cases the metrics count. Each has four series, which end with the run."""


class Operator:
    """Run one operator process, without its watch of runs (`watch`) and its metrics server (`__main__`)."""

    def __init__(self, api: KubernetesApi, settings: Settings, identity: str = "") -> None:
        """Create an operator; `identity` is the unique name of this replica in the Lease."""
        self._loop = asyncio.get_running_loop()
        self._lag_seconds = 0.0
        self._api = api
        self._skew = "the CRDs have not been checked yet"
        """Why the CRDs do not fit this release; empty if they fit."""
        self.crds_fit = asyncio.Event()
        """Set once the cluster's CRDs have fitted this release."""
        self.synced = asyncio.Event()
        """Set once all objects that may be listed have been listed."""
        self.telemetry = Telemetry()
        api.observe_duration = self._observe_request
        self.store = Store()
        self._objects = RunObjects(self.store, self._record_waits)
        self._series = settings.metrics_series
        self._retention = settings.retention
        self._election = (
            Election(api.client, settings.lease, identity, self._leading_changed, self._loop.time)
            if settings.lease
            else None
        )
        self._leading = self._election.leading if self._election else always_leads
        self._cluster = Cluster(api, self._leading)
        self.controllers = Controllers(
            api, self.store, settings.namespaces, self._leading, self._loop.time, self.telemetry.reconcile.time
        )
        self._runs = Reconciler(
            self._cluster,
            self._objects,
            Applier(self._cluster, self._objects, api.clock),
            settings,
            api.clock,
            on_action=self.controllers.queue.record_step,
            on_failed_attempt=self._count_failed_attempt,
            requeue=self.controllers.queue.add,
        )
        self.controllers.add(self._runs)
        self._live = LiveCases(api, self._objects.pods, self._runs.running_case, self._leading)

    async def run(self) -> None:
        """Run all tasks until cancelled; start the controllers once the CRDs fit and the first lists were answered."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._measure_lag())
            group.create_task(self._check_crds())
            for reflector in self.controllers.reflectors:
                group.create_task(reflector.run())
            await self.crds_fit.wait()
            for reflector in self.controllers.reflectors:
                await reflector.answered.wait()
            self.synced.set()
            async with self._election_context(), asyncio.TaskGroup() as work:
                work.create_task(self.controllers.run())
                work.create_task(keep_deleting(self._find_surplus, self._delete))
                work.create_task(self._live.run())

    async def _check_crds(self) -> None:
        """Keep `_skew` up to date: set `crds_fit` once the CRDs fit, then check that nobody deletes them.

        While they are deleted, nothing can be reconciled. The process continues, and retries its watches and lists.
        """
        while True:
            # Once the CRDs fit, only their deletion is checked, which is one small request.
            find_problem = find_skew if self._skew else find_missing_kinds
            try:
                problem = await find_problem(self._api)
            except (ApiError, KeyError, ValueError) as error:
                # An API server that does not answer is no reason to doubt CRDs that fitted before.
                problem = f"the CRDs cannot be checked: {error}" if self._skew else ""
            if problem:
                logger.error("%s", problem)
            elif self._skew:
                logger.info("the CRDs fit this release")
                self.crds_fit.set()
            self._skew = problem
            await asyncio.sleep(SKEW_PERIOD_SECONDS if problem else SERVED_PERIOD_SECONDS)

    def _election_context(self) -> AbstractAsyncContextManager[None]:
        """Return a context that takes part in the election while it is open."""
        return take_part(self._election) if self._election else nullcontext()

    def readiness_problems(self) -> tuple[str, ...]:
        """Return why this replica is not ready; empty if it is ready."""
        reasons = []
        # A namespace that is gone must not keep this replica from serving the others.
        excused = self.controllers.unlisted_namespaces
        unlisted_paths = [
            str(reflector)
            for reflector in self.controllers.reflectors
            if not reflector.synced.is_set() and reflector.namespace not in excused
        ]
        if unlisted_paths:
            reasons.append(f"not listed yet: {', '.join(unlisted_paths)}")
        if self._skew:
            reasons.append(self._skew)
        if self._election and self._election.refusal:
            reasons.append(self._election.refusal)
        return tuple(reasons)

    def readings(self) -> Readings:
        """Return durations by name, each with the maximum above which the kubelet restarts this process."""
        return {
            "loop-lag-seconds": (self._lag_seconds, MAXIMUM_LAG_SECONDS),
            "longest-work-seconds": (self.controllers.queue.longest_step_seconds, MAXIMUM_STEP_SECONDS),
        }

    def snapshot(self) -> Snapshot:
        """Return the current state of the operator for its metrics. Call this in the thread of the event loop."""
        is_leading = self._leading()
        # Only the leader reconciles, so another replica's phases and counts of cases are outdated: leave them out.
        phases = self._runs.phases if is_leading else {}
        runs = Counter((key.namespace, phase) for key, phase in phases.items())
        queue = QueueHealth(
            depth=self.controllers.queue.depth,
            oldest_seconds=self.controllers.queue.oldest_seconds,
            loop_lag_seconds=self._lag_seconds,
            reconciled_total=self.controllers.queue.handled_total,
            failed_total=self.controllers.queue.failed_total,
        )
        results, omitted = self._objects.latest(self._series)
        cases, runs_omitted = self._runs.case_counts(MAXIMUM_RUNS) if is_leading else ({}, 0)
        return Snapshot(
            leading=is_leading,
            results=results,
            runs=runs,
            stored_objects=self.controllers.counts(),
            queue=queue,
            requests=dict(self._api.requests),
            cases=cases,
            runs_omitted=runs_omitted,
            live=self._live.progress,
            live_omitted=self._live.omitted,
            omitted=omitted,
            limit=self._series,
            unlisted_namespaces=self.controllers.unlisted_namespaces,
        )

    def _observe_request(self, verb: str, resource: str, seconds: float) -> None:
        """Add the duration of a request to the metrics."""
        self.telemetry.request.labels(verb, resource).observe(seconds)

    def _record_waits(self, job: ObservedJob, pod: ObservedPod) -> None:
        """Add to the metrics how long the Job waited for its pod, and the pod for its container."""
        # Timestamps are whole seconds of clocks that may differ, so a difference can be negative.
        if pod.started_at:
            self.telemetry.start.observe(max(0.0, (pod.started_at - pod.created_at).total_seconds()))
        self.telemetry.queue.observe(max(0.0, (pod.created_at - job.created_at).total_seconds()))

    def _count_failed_attempt(self, attempt: Attempt) -> None:
        """Count a failed attempt by its reason and by whether it is retried."""
        retried_label = "false" if attempt.finished else "true"  # `finished`: no result will come, so no retry either
        self.telemetry.failed_attempts.labels(attempt.reason or "", retried_label).inc()

    def _leading_changed(self, leads: bool) -> None:
        """Reset the controllers if this replica has become the leader."""
        if leads:
            self.controllers.reset()

    async def _find_surplus(self) -> tuple[Key, ...]:
        """Return the runs and results beyond the limits of the history; none if this replica does not lead."""
        if not self._leading():
            return ()
        # Results of runs in progress are kept. A run without a phase has not been reconciled, and may be in progress.
        uids_without_phase = self.controllers.keys.keys() - {key.uid for key in self._runs.phases}
        in_progress = frozenset(self._runs.in_progress() | uids_without_phase)
        summaries = tuple(self._objects.summaries())
        # In a thread: sorting tens of thousands of results would block the event loop.
        now = self._api.clock()
        results = await asyncio.to_thread(results_to_delete, summaries, self._retention, now, in_progress)
        return (*self._runs.history.beyond_limit(), *(result.key for result in results))

    async def _delete(self, key: Key) -> None:
        """Delete a run or a result; raise ConflictError for a run that somebody has changed since it finished.

        A run that the history has forgotten is not deleted.
        """
        if key.kind != RUN.name:
            await self._cluster.delete_result(key.namespace, key.name, key.uid)
        elif version := self._runs.history.version(key):
            await self._cluster.delete_run(key.namespace, key.name, key.uid, version)

    async def _measure_lag(self) -> None:
        """Measure at regular times how late the event loop wakes a task."""
        while True:
            before = self._loop.time()
            await asyncio.sleep(LAG_PERIOD_SECONDS)
            elapsed_seconds = self._loop.time() - before
            self._lag_seconds = max(0.0, elapsed_seconds - LAG_PERIOD_SECONDS)
