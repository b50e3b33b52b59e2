"""Take one step of a run: read it if needed, decide, write the status, then act."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from accelbench.api.metadata import API_VERSION
from accelbench.api.reasons import ConditionReason
from accelbench.api.run import DEFAULT_CLASS, Attempt, BenchmarkRunStatus
from accelbench.cluster_api.errors import ApiError, ConflictError, InvalidError, NotFoundError, TooLargeError
from accelbench.cluster_api.kinds import RUN
from accelbench.problem import Problem
from accelbench_operator.engine.kinds import Key, Manifest
from accelbench_operator.runs.accept import Plan, Refused, RunSettings, accept
from accelbench_operator.runs.actions import DeleteJob, DeleteRun
from accelbench_operator.runs.apply import Applier
from accelbench_operator.runs.attempts import Observed
from accelbench_operator.runs.cluster import Cluster
from accelbench_operator.runs.decide import Decision, decide
from accelbench_operator.runs.events import Transition, event_manifest, newly_failed, transitions
from accelbench_operator.runs.known import (
    KnownRun,
    KnownRuns,
    UnreadableStatusError,
    foreign_fields,
    is_idle,
    read_status,
)
from accelbench_operator.runs.objects import RunObjects, owned_by_runs
from accelbench_operator.runs.status import differs_only_in_progress, finished_at, shortened

logger = logging.getLogger(__name__)

UNFINISHED = {ConditionReason.QUEUED, ConditionReason.RUNNING, ConditionReason.SUSPENDED}

PROGRESS_DELAY = timedelta(seconds=2)
"""Maximum delay of a status that differs only in why cases wait, where they run and how long they ran."""


class Reconciler:
    """Reconcile BenchmarkRuns, where this replica leads; see `Controller`."""

    def __init__(
        self,
        cluster: Cluster,
        objects: RunObjects,
        applier: Applier,
        settings: RunSettings,
        clock: Callable[[], datetime],
        acted: Callable[[Key], None] = lambda _: None,
        failed: Callable[[Attempt], None] = lambda _: None,
        requeue: Callable[[Key, float], None] = lambda _key, _seconds: None,
    ) -> None:
        """Create a reconciler that reports to three callbacks.

        Args:
            cluster: The requests to the API server.
            objects: What the store has of runs.
            applier: What carries out actions.
            settings: The operator's settings for runs.
            clock: The API server's time.
            acted: Called after each action, because a run of many cases can take minutes.
            failed: Called with each failed attempt once that is written.
            requeue: Called with the seconds until another look at a run whose actions raise.
        """
        self.kind = RUN
        self.owns = owned_by_runs(settings.class_name)
        self._cluster = cluster
        self._objects = objects
        self._applier = applier
        self._settings = settings
        self._clock = clock
        self._on_action = acted
        self._on_failed_attempt = failed
        self._requeue = requeue
        self._known = KnownRuns()
        self._idle: set[Key] = set()
        """Finished runs for which nothing is left to do."""
        self._terminating: set[Key] = set()
        """Deleted runs that a finalizer holds back."""
        self.phases: dict[Key, str] = {}
        """The phase of every run that is known."""

    def changed(self, key: Key, manifest: Manifest) -> bool:
        """Note an event of the watch; return True if there may be something to do."""
        if not self._operates(manifest, key.uid):
            self.deleted(key)
            if not self._has_class(manifest, key.uid):
                return False
            self._terminating.add(key)
            return self._objects.has_jobs(key.uid)
        if is_idle(manifest) and not self._objects.has_jobs(key.uid):
            self._set_idle(key, manifest["status"].get("phase", ""))
            return False
        self._idle.discard(key)
        return self._known.on_event(key.uid, manifest)

    async def reconcile(self, key: Key) -> float | None:
        """Take one step of one run; return after how many seconds to look again, or None."""
        if key in self._terminating:
            await self._delete_jobs(key)
            return None
        return await self._step(key)

    async def _step(self, key: Key) -> float | None:
        """Read the run if needed, decide, write the status, then act; return as `reconcile` does."""
        if key in self._idle and not self._objects.has_jobs(key.uid):
            return None
        known = await self._load_run(key)
        if known is None:
            # The cluster deletes what the run owns.
            self.deleted(key)
            return None
        plan, now = known.plan, self._clock()
        observed = self._objects.observed(key, self._applier.memory(key.uid))
        decision = decide(plan, known.status, observed, now, known.generation)
        self.phases[key] = decision.status.phase
        finishes = finished_at(decision.status) is not None and finished_at(known.written) is None
        if finishes and isinstance(plan, Plan):
            measured = known.status.measured_cases
            if await self._applier.load_missing_results(plan, measured, observed):
                return 0.0
        known.status = decision.status
        wait = self._may_wait_until(known, now)
        written = wait is not None or await self._write_changes(key, known)
        if not written or (decision.actions and not known.confirmed):
            # The run has changed since, or may have: its version comes from an event.
            self._known.drop(key.uid)
            return 0.0
        try:
            await self._act(decision, plan, observed, key)
        except Exception:
            # The queue retries ever more rarely; deadlines are kept all the same.
            if decision.requeue_at and decision.requeue_at > now:
                self._requeue(key, (decision.requeue_at - now).total_seconds())
            raise
        if finishes:
            return 0.0  # to see what is left to do after the end
        next_look = self._next_look(decision, wait)
        if finished_at(known.status) and not decision.actions and next_look is None:
            self._set_idle(key, known.status.phase)
        return next_look

    async def _write_changes(self, key: Key, known: KnownRun) -> bool:
        """Write the status if it differs; return False if the run has changed or is deleted."""
        if known.status == known.written:
            return True
        try:
            await self._write(key, known)
        except (ConflictError, NotFoundError):
            return False
        return True

    async def _load_run(self, key: Key) -> KnownRun | None:
        """Return the run to decide on; None if it is deleted, or not for this operator. Raise UnreadableStatusError."""
        event, known = self._known.take_event(key.uid), self._known.get(key.uid)
        if event is None and known is not None:
            return known
        if event is not None and (known is None or not known.confirmed):
            run, confirmed = event, False
        else:
            # Resource versions have no reliable order, so the latest version is read from the API server.
            latest = await self._cluster.get_run(key.namespace, key.name)
            if latest is None:
                return None
            run, confirmed = latest, True
        if not self._operates(run, key.uid):
            return None
        try:
            status = read_status(run)
        except UnreadableStatusError as error:
            await self._post_event(key, Transition("Warning", "StatusUnreadable", str(error)))
            raise
        generation = run["metadata"]["generation"]
        same_plan = known is not None and (known.generation, known.written.runner) == (generation, status.runner)
        loaded = KnownRun(
            version=run["metadata"]["resourceVersion"],
            generation=generation,
            # In a thread: hundreds of cases take a while to plan, and the first run imports the catalogue.
            plan=known.plan if known is not None and same_plan else await asyncio.to_thread(self._plan, run, status),
            written=status,
            status=status,
            foreign=foreign_fields(run),
            confirmed=confirmed,
        )
        self._known.keep(key.uid, loaded)
        return loaded

    def _may_wait_until(self, known: KnownRun, now: datetime) -> datetime | None:
        """Return until when a status that differs only in progress may wait to be written; None if none has to wait."""
        if known.status == known.written or not differs_only_in_progress(known.written, known.status):
            known.unwritten_since = None
            return None
        known.unwritten_since = known.unwritten_since or now
        until = known.unwritten_since + PROGRESS_DELAY
        return until if now < until else None

    async def _act(self, decision: Decision, plan: Plan | Refused, observed: Observed, key: Key) -> None:
        """Carry out all actions, then raise the first error: an error of one case must not delay the others."""
        first_error: Exception | None = None
        for action in decision.actions:
            try:
                if isinstance(action, DeleteJob):
                    await self._applier.delete_job(action, key)
                elif isinstance(action, DeleteRun):
                    await self._cluster.delete_run(key.namespace, key.name, key.uid)
                elif isinstance(plan, Plan):
                    await self._applier.apply(action, plan, observed)
            except Exception as error:  # noqa: BLE001 - raised below
                first_error = first_error or error
            self._on_action(key)
        if first_error is not None:
            try:
                raise first_error
            finally:
                first_error = None  # else this frame and the traceback hold each other, and what they hold

    def _operates(self, run: Manifest, uid: str) -> bool:
        """Return True if the run is this operator's and not being deleted."""
        return self._has_class(run, uid) and not run["metadata"].get("deletionTimestamp")

    def _has_class(self, run: Manifest, uid: str) -> bool:
        """Return True if the run has that UID and this operator's class."""
        is_of_class = run["spec"].get("className", DEFAULT_CLASS) == self._settings.class_name
        return bool(run["metadata"]["uid"] == uid and is_of_class)

    async def _delete_jobs(self, key: Key) -> None:
        """Delete the Jobs of a run that waits for a finalizer; the cluster deletes them only after the run."""
        for job in self._objects.observed(key).jobs.values():
            await self._cluster.delete_job(key.namespace, job.key.name, job.key.uid)

    def cases(self) -> dict[tuple[str, ...], int]:
        """Return the number of cases by namespace, name and state, of runs that have not finished."""
        counts: dict[tuple[str, ...], int] = {}
        for key, phase in self.phases.items():
            known = self._known.get(key.uid) if phase in UNFINISHED else None
            if known:
                for state, count in known.status.cases.model_dump().items():
                    counts[key.namespace, key.name, state] = count
        return counts

    def in_progress(self) -> set[str]:
        """Return the UIDs of runs that have not finished."""
        return {key.uid for key, phase in self.phases.items() if phase in UNFINISHED}

    def _next_look(self, decision: Decision, wait: datetime | None) -> float | None:
        """Return after how many seconds to look again: 0 after an action that may have changed the store."""
        if any(not isinstance(action, DeleteJob | DeleteRun) for action in decision.actions):
            return 0.0
        next_look = min((time for time in (decision.requeue_at, wait) if time is not None), default=None)
        return None if next_look is None else max(0.0, (next_look - self._clock()).total_seconds())

    async def _write(self, key: Key, known: KnownRun) -> None:
        """Write the status, in a shorter form if it is refused; then report failed attempts and transitions."""
        before = known.written
        try:
            await self._put(key, known, known.foreign, known.status)
        except (InvalidError, TooLargeError) as error:
            # A CRD of another release may lack a field, and an API server accepts only so many bytes.
            await self._post_event(key, Transition("Warning", "StatusRefused", error.message))
            await self._put(key, known, {}, shortened(known.status))
        for _, attempt in newly_failed(before, known.status):
            self._on_failed_attempt(attempt)
        for transition in transitions(before, known.status):
            await self._post_event(key, transition)

    async def _put(self, key: Key, known: KnownRun, foreign: Manifest, status: BenchmarkRunStatus) -> None:
        """Write a status together with `foreign` fields, and keep what the API server has stored."""
        document = dict(foreign) | status.model_dump(mode="json", by_alias=True, exclude_none=True)
        stored = await self._cluster.put_run_status(status_manifest(key, known.version, document))
        # The API server drops fields that it does not know.
        written = status if stored["status"] == document else read_status(stored)
        known.version, known.confirmed = stored["metadata"]["resourceVersion"], True
        known.written, known.status, known.unwritten_since = written, status, None
        if finished_at(status):
            known.plan = Refused((), ttl_seconds=known.plan.ttl_seconds)
        self._known.keep(key.uid, known)

    async def _post_event(self, key: Key, transition: Transition) -> None:
        """Post an Event; ignore an API error, because only people read Events, and one may have been posted before."""
        event = event_manifest(transition, key.namespace, key.name, key.uid, self._clock())
        with contextlib.suppress(ApiError):
            await self._cluster.create_event(event)

    def _plan(self, run: Manifest, status: BenchmarkRunStatus) -> Plan | Refused:
        """Plan a run; of a finished one keep only its time to live, as thousands of plans would fill the memory."""
        if finished_at(status):
            return Refused((), ttl_seconds=run["spec"].get("runPolicy", {}).get("ttlSecondsAfterFinished"))
        try:
            return accept(
                run,
                self._settings.profiles,
                self._settings.runner_image,
                status.runner,
                pod_template=self._settings.pod_template,
            )
        except Exception as error:
            logger.exception("%s cannot be planned", Key.of(RUN.name, run))
            message = f"accelbench itself failed while planning, which is a bug: {type(error).__name__}: {error}"
            return Refused((Problem("", message),))

    def _set_idle(self, key: Key, phase: str) -> None:
        """Drop all that is known of a finished run but its phase, because nothing is left to do for it."""
        self.phases[key] = phase
        self._idle.add(key)
        self._known.forget(key.uid)
        self._applier.forget(key.uid)

    def deleted(self, key: Key) -> None:
        """Drop all that is known of a run."""
        self._known.forget(key.uid)
        self._applier.forget(key.uid)
        self._idle.discard(key)
        self._terminating.discard(key)
        self.phases.pop(key, None)

    def reset(self) -> None:
        """Drop what may be out of date, because another replica may have acted since."""
        self._known.forget_all()
        self._applier.forget_all()


def status_manifest(key: Key, version: str, status: Manifest) -> dict[str, Any]:
    """Return the body of a request that writes a run's status on top of a version."""
    metadata = {"namespace": key.namespace, "name": key.name, "uid": key.uid, "resourceVersion": version}
    return {"apiVersion": API_VERSION, "kind": RUN.name, "metadata": metadata, "status": dict(status)}
