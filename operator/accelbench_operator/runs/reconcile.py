"""Take one step of a run: read the run if needed, decide, write the status, then carry out the actions."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any

from accelbench.api.metadata import API_VERSION
from accelbench.api.reasons import ConditionReason
from accelbench.api.run import DEFAULT_CLASS, Attempt, BenchmarkRunStatus, CaseCounts, UsedRunner
from accelbench.cluster_api.errors import (
    ApiError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    TooLargeError,
)
from accelbench.cluster_api.kinds import RUN
from accelbench.plan.names import attempt_name
from accelbench.problem import Problem
from accelbench_operator.engine.fair_share import fair_share
from accelbench_operator.engine.fair_slots import FairSlots
from accelbench_operator.engine.kinds import Key, Manifest
from accelbench_operator.runs.accept import FinishedRun, Plan, Refused, RunRetention, RunSettings, accept
from accelbench_operator.runs.actions import CreateJob, DeleteJob, DeleteRun, ReadEvents
from accelbench_operator.runs.apply import Applier
from accelbench_operator.runs.attempts import Observed
from accelbench_operator.runs.cluster import Cluster
from accelbench_operator.runs.decide import Decision, decide
from accelbench_operator.runs.deletion import Deletion
from accelbench_operator.runs.events import Transition, event_manifest, newly_failed, transitions
from accelbench_operator.runs.failure import explain_time_to_live
from accelbench_operator.runs.history import RunHistory
from accelbench_operator.runs.job import attempted_case
from accelbench_operator.runs.kept_jobs import is_quota_of_objects, oldest_kept_job
from accelbench_operator.runs.known import (
    KnownRun,
    KnownRuns,
    UnreadableStatusError,
    foreign_fields,
    is_idle,
    needed_fields,
    read_status,
)
from accelbench_operator.runs.memory import RunMemory
from accelbench_operator.runs.objects import RunObjects, owned_by_runs
from accelbench_operator.runs.observed import ObservedPod
from accelbench_operator.runs.running_case import RunningCase
from accelbench_operator.runs.same_case import digest_document
from accelbench_operator.runs.status import (
    before_refusal,
    differs_only_in_progress,
    finished_at,
    may_be_corrected,
    shortened_status,
)

logger = logging.getLogger(__name__)

UNFINISHED = {ConditionReason.QUEUED, ConditionReason.RUNNING, ConditionReason.SUSPENDED}
"""Phases of runs that have not finished."""

LOADS_AT_A_TIME = 4
"""Maximum number of runs that are read and planned at once; each may have megabytes of metadata."""
PROGRESS_DELAY = timedelta(seconds=2)
"""Maximum delay before a status is written that differs only in progress; see `differs_only_in_progress`."""


class Reconciler:
    """Reconcile BenchmarkRuns, as the `Controller` of their kind."""

    def __init__(
        self,
        cluster: Cluster,
        objects: RunObjects,
        applier: Applier,
        settings: RunSettings,
        clock: Callable[[], datetime],
        # Called after each action, because the actions of a large run can take minutes.
        on_action: Callable[[Key], None] = lambda _: None,
        # Called for each failed attempt, after the status with the failure was written.
        on_failed_attempt: Callable[[Attempt], None] = lambda _: None,
        # Called with the seconds until the next step, if an action raises.
        requeue: Callable[[Key, float], None] = lambda _key, _seconds: None,
    ) -> None:
        self.kind = RUN
        self.owns = owned_by_runs(settings.class_name)
        self._cluster = cluster
        self._objects = objects
        self._applier = applier
        self._settings = settings
        self._clock = clock
        self._on_action = on_action
        self._on_failed_attempt = on_failed_attempt
        self._requeue = requeue
        self._known = KnownRuns()
        self._loads: FairSlots[str] = FairSlots(LOADS_AT_A_TIME)
        self._idle: set[Key] = set()
        """Finished runs for which nothing is left to do."""
        self._terminating: dict[Key, Deletion] = {}
        """Runs that are being deleted, and that a finalizer keeps."""
        self.phases: dict[Key, str] = {}
        """The latest phase of each run."""
        self._case_counts: dict[Key, CaseCounts] = {}
        """The latest counts of the cases of each run that has not finished."""
        self.history = RunHistory(settings.history_limit)

    def changed(self, key: Key, manifest: Manifest) -> bool:
        """Handle a run that a watch reports as new or changed; return True if the run needs a step."""
        if not self._is_of_this_operator(manifest, key.uid):
            self.deleted(key)
            return False
        if manifest["metadata"].get("deletionTimestamp"):
            self.deleted(key)
            # While a finalizer keeps the run, its Jobs still have to be deleted.
            self._terminating[key] = Deletion.of(manifest)
            return True
        self.history.record(key, manifest)
        if is_idle(manifest) and not self._objects.has_jobs(key):
            self._set_idle(key, manifest["status"].get("phase", ""))
            return False
        self._idle.discard(key)
        return self._known.on_event(key.uid, manifest)

    async def reconcile(self, key: Key) -> float | None:
        """Take one step of a run, and return the seconds until the next step.

        None means that no step is needed before something changes.
        """
        if deletion := self._terminating.get(key):
            return await self._continue_deletion(key, deletion)
        return await self._step(key)

    async def _step(self, key: Key) -> float | None:
        """Load the run, decide, write the status, then carry out the actions.

        Return the seconds until the next step; None if none is planned.
        """
        if key in self._idle and not self._objects.has_jobs(key):
            return None  # the run has finished, and its Jobs are deleted
        known_run = await self._load_run(key)
        if known_run is None:
            # The cluster deletes the objects that the run owns.
            self.deleted(key)
            return None
        plan, now = known_run.plan, self._clock()
        observed = self._observed_objects(key, known_run)
        decision = decide(plan, known_run.status, observed, now, known_run.generation)
        self._record_progress(key, decision.status)
        has_just_finished = finished_at(decision.status) is not None and finished_at(known_run.written_status) is None
        if has_just_finished and isinstance(plan, Plan):
            measured_cases = known_run.status.measured_cases
            if await self._applier.load_missing_results(plan, measured_cases, observed):
                return 0.0  # the store lacked a result: the next step decides with it
        known_run.status = decision.status
        write_at = self._delay_write_until(known_run, now)
        is_delayed = write_at is not None
        is_up_to_date = is_delayed or await self._write_changes(key, known_run)
        would_act_unconfirmed = bool(decision.actions) and not known_run.is_confirmed
        if not is_up_to_date or would_act_unconfirmed:
            # The run may have changed: read it again before acting.
            self._known.drop(key.uid)
            return 0.0
        await self._warn_of_times_to_live(observed, key)
        try:
            await self._act(decision, plan, observed, key, known_run.version)
        except Exception:
            # The queue retries after ever longer delays, so the time of the next step may come before the retry.
            if decision.requeue_at and decision.requeue_at > now:
                self._requeue(key, (decision.requeue_at - now).total_seconds())
            raise
        if has_just_finished:
            # The next step deletes Jobs that are no longer needed, and waits for the run's time to live.
            return 0.0
        delay_seconds = self._seconds_until_next_step(decision, write_at)
        if finished_at(known_run.status) and not decision.actions and delay_seconds is None:
            self._set_idle(key, known_run.status.phase)
        return delay_seconds

    def _observed_objects(self, key: Key, known_run: KnownRun) -> Observed:
        """Return the run's objects, and what this process remembers of the run.

        First remember which case document each Job in flight must have: another process may have created the Job.
        """
        memory = self._applier.memory(key.uid)
        if isinstance(known_run.plan, Plan):
            _remember_documents(memory, known_run.plan, known_run.status.attempts)
        return self._objects.observed(key, memory)

    def _record_progress(self, key: Key, status: BenchmarkRunStatus) -> None:
        """Remember the run's phase and, until it has finished, its case counts."""
        self.phases[key] = status.phase
        if status.phase in UNFINISHED:
            self._case_counts[key] = status.cases

    async def _write_changes(self, key: Key, known_run: KnownRun) -> bool:
        """Write the status if it has changed; return False if somebody else has changed or deleted the run."""
        if known_run.status == known_run.written_status:
            return True
        try:
            await self._write(key, known_run)
        except (ConflictError, NotFoundError):
            return False
        return True

    async def _load_run(self, key: Key) -> KnownRun | None:
        """Return the run from memory, from an event or from the API server.

        None if the run is deleted or being deleted, or if it belongs to another operator.
        """
        event, known_run = self._known.take_event(key.uid), self._known.get(key.uid)
        if event is None and known_run is not None:
            return known_run
        async with self._loads.slot(key.namespace):
            return await self._load(key, event, known_run)

    async def _load(self, key: Key, event: Manifest | None, known_run: KnownRun | None) -> KnownRun | None:
        """Return the run with its plan, from an event or from the API server.

        None if the run is deleted or being deleted, or if it belongs to another operator.
        """
        knows_confirmed_version = known_run is not None and known_run.is_confirmed
        if event is not None and not knows_confirmed_version:
            run, is_confirmed = event, False
        else:
            # Read the run: an event may be older than the confirmed version, and no order of versions is reliable.
            latest = await self._cluster.get_run(key.namespace, key.name)
            if latest is None:
                return None
            run, is_confirmed = needed_fields(latest), True
        if not self._is_of_this_operator(run, key.uid) or run["metadata"].get("deletionTimestamp"):
            return None
        try:
            status = read_status(run)
        except UnreadableStatusError as error:
            await self._post_event(key, Transition("Warning", "StatusUnreadable", str(error)))
            raise
        generation = run["metadata"]["generation"]
        if may_be_corrected(status, generation):
            status = before_refusal(status)
        plan: Plan | Refused | FinishedRun
        if finished_at(status):
            plan = FinishedRun(RunRetention.read(run))
        elif known_plan := _reusable_plan(known_run, generation, status.runner):
            plan = known_plan
        else:
            # In a thread: hundreds of cases take a while to plan, and the first run imports the catalogue.
            plan = await asyncio.to_thread(self._plan, run, status.runner)
        loaded = KnownRun(
            version=run["metadata"]["resourceVersion"],
            generation=generation,
            plan=plan,
            written_status=status,
            status=status,
            foreign_fields=foreign_fields(run),
            is_confirmed=is_confirmed,
        )
        self._known.keep(key.uid, loaded)
        return loaded

    def _delay_write_until(self, known_run: KnownRun, now: datetime) -> datetime | None:
        """Return the end of the delay before the status is written; None to write it now, or if it has not changed.

        Progress that a restarted operator would derive again waits for `PROGRESS_DELAY`; other changes do not wait.
        """
        is_unchanged = known_run.status == known_run.written_status
        if is_unchanged or not differs_only_in_progress(known_run.written_status, known_run.status):
            known_run.unwritten_since = None
            return None
        known_run.unwritten_since = known_run.unwritten_since or now
        write_at = known_run.unwritten_since + PROGRESS_DELAY
        return write_at if now < write_at else None

    async def _act(
        self, decision: Decision, plan: Plan | Refused | FinishedRun, observed: Observed, key: Key, version: str
    ) -> None:
        """Carry out all actions, then raise the first error. `version` is the resource version of the run."""
        first_error: Exception | None = None
        for action in decision.actions:
            try:
                if isinstance(action, DeleteJob):
                    await self._applier.delete_job(action, key)
                elif isinstance(action, DeleteRun):
                    # With the version, this fails if the run was just changed: its time to live may be longer now.
                    await self._cluster.delete_run(key.namespace, key.name, key.uid, version)
                elif isinstance(plan, Plan):  # always: without a plan, `decide` returns only deletions
                    await self._applier.apply(action, plan, observed)
                    if isinstance(action, ReadEvents):
                        # The Events may show that a full quota holds back the Job's pod.
                        await self._make_room(key, action.attempt.job, observed, decision.status)
            except Exception as error:  # noqa: BLE001 - raised below
                # One case's error must not delay the other cases.
                first_error = first_error or error
                if isinstance(action, CreateJob) and isinstance(plan, Plan):
                    # A full quota may have refused the Job.
                    job = attempt_name(key.name, key.uid, action.case, action.attempt)
                    await self._make_room(key, job, observed, decision.status)
                if isinstance(action, DeleteJob) and isinstance(error, ForbiddenError):
                    # The Job's pod may still hold a device, and the status of a finished run does not show that.
                    message = f"Job {action.name} cannot be deleted, and its pod may hold a device: {error.message}"
                    await self._post_event(key, Transition("Warning", "DeletionRefused", message))
            self._on_action(key)
        if first_error is not None:
            try:
                raise first_error
            finally:
                # Otherwise this frame and the error's traceback would refer to each other, and stay in memory.
                first_error = None

    async def _make_room(self, key: Key, job: str, observed: Observed, status: BenchmarkRunStatus) -> None:
        """If a full quota holds back this Job of the run, delete the oldest Job that is kept only for its log.

        One deletion for each try is enough: the next try shows whether the quota still is full.
        """
        obstacle = self._applier.memory(key.uid).obstacles.get(job)
        if obstacle is None or not is_quota_of_objects(obstacle.message):
            return
        finished_runs = {
            other.uid: other
            for other, phase in self.phases.items()
            if other.namespace == key.namespace and phase not in UNFINISHED
        }
        ended_jobs = self._objects.ended_jobs(key.namespace)
        oldest = oldest_kept_job(ended_jobs, key.uid, status.attempts, finished_runs)
        if oldest is None:
            return
        # `observed` has the results of this run only.
        result = observed.results.get(oldest.case) if oldest.owner == key.uid else None
        deletion = DeleteJob(oldest.key.name, oldest.key.uid, result.name if result else None)
        owner = finished_runs.get(oldest.owner, key)
        with contextlib.suppress(ApiError):  # the next try deletes it
            await self._applier.delete_job(deletion, owner)
            message = (
                f"Job {oldest.key.name} of a failed case was deleted with its log before its time: a quota is full"
            )
            await self._post_event(key, Transition("Normal", "MadeRoom", message))

    async def _warn_of_times_to_live(self, observed: Observed, key: Key) -> None:
        """Create an Event for each Job that has a `ttlSecondsAfterFinished`, once, and remember that it has one."""
        times_to_live = self._applier.memory(key.uid).times_to_live
        for name, job in observed.jobs.items():
            if job.time_to_live is None or name in times_to_live:
                continue
            times_to_live[name] = job.time_to_live
            await self._post_event(key, Transition("Warning", "JobExpires", explain_time_to_live(job)))

    def _is_of_this_operator(self, run: Manifest, uid: str) -> bool:
        """Return True if the run has this operator's class, and `uid`: a later run of the same name has another UID."""
        has_class = run["spec"].get("className", DEFAULT_CLASS) == self._settings.class_name
        return bool(run["metadata"]["uid"] == uid and has_class)

    async def _continue_deletion(self, key: Key, deletion: Deletion) -> float:
        """Delete the Jobs of a run that is being deleted; create an Event if something delays its deletion.

        Return the seconds until the next step.
        """
        observed = self._objects.observed(key)
        refusals: dict[str, str] = {}
        # The garbage collector would delete the Jobs only once the finalizers of the run are removed.
        for job in observed.jobs.values():
            try:
                await self._cluster.delete_job(key.namespace, job.key.name, job.key.uid)
            except ApiError as error:
                if error.is_temporary:
                    raise
                refusals[job.key.name] = error.message
        now = self._clock()
        message = deletion.explain(observed, refusals, now)
        if message:
            await self._post_event(key, Transition("Warning", "DeletionHeld", message))
        return deletion.next_check(now).total_seconds()

    def case_counts(self, maximum: int) -> tuple[dict[tuple[str, ...], int], int]:
        """Return the case counts of at most `maximum` unfinished runs, and the number of other unfinished runs.

        The counts are by (namespace, run, state).
        """
        unfinished = [key for key in self._case_counts if self.phases[key] in UNFINISHED]
        shown = fair_share(unfinished, lambda key: key.namespace, maximum)
        counts: dict[tuple[str, ...], int] = {}
        for key in shown:
            for state, count in self._case_counts[key].model_dump().items():
                counts[key.namespace, key.name, state] = count
        return counts, len(unfinished) - len(shown)

    def running_case(self, pod: ObservedPod) -> RunningCase | None:
        """Return the case that the pod measures; None if the pod is of no recorded attempt of an unfinished run."""
        known_run = self._known.get(pod.owner)
        if known_run is None or not isinstance(known_run.plan, Plan) or not pod.job_uid:
            return None
        for attempt in known_run.status.attempts:
            if attempt.job_uid == pod.job_uid:
                expected = self._applier.memory(pod.owner).documents.get(attempt.job, frozenset())
                # A pod with another case document prints the progress of another case.
                return RunningCase(known_run.plan, attempt.case) if pod.document in expected else None
        return None

    def in_progress(self) -> set[str]:
        """Return the UIDs of runs that have not finished."""
        return {key.uid for key, phase in self.phases.items() if phase in UNFINISHED}

    def _seconds_until_next_step(self, decision: Decision, write_at: datetime | None) -> float | None:
        """Return the seconds until the run's next step; None if none is planned."""
        # Actions other than deletions may have changed the store, so decide again at once.
        if any(not isinstance(action, DeleteJob | DeleteRun) for action in decision.actions):
            return 0.0
        times = [time for time in (decision.requeue_at, write_at) if time is not None]
        if not times:
            return None
        return max(0.0, (min(times) - self._clock()).total_seconds())

    async def _write(self, key: Key, known_run: KnownRun) -> None:
        """Write the status, then count new failures of attempts and create an Event for each transition."""
        before = known_run.written_status
        try:
            await self._put_status(key, known_run, known_run.foreign_fields, known_run.status)
        except (InvalidError, TooLargeError) as error:
            # The CRD may be of another release and lack a field, or the status may be too large for the API server:
            # write less of it.
            await self._post_event(key, Transition("Warning", "StatusRefused", error.message))
            await self._put_status(key, known_run, {}, shortened_status(known_run.status))
        for _, attempt in newly_failed(before, known_run.status):
            self._on_failed_attempt(attempt)
        for transition in transitions(before, known_run.status):
            await self._post_event(key, transition)

    async def _put_status(
        self, key: Key, known_run: KnownRun, foreign_fields: Manifest, status: BenchmarkRunStatus
    ) -> None:
        """Write the status, keep the `foreign_fields` of another release in it, and remember what the server stored."""
        document = dict(foreign_fields) | status.model_dump(mode="json", by_alias=True, exclude_none=True)
        stored = await self._cluster.put_run_status(status_manifest(key, known_run.version, document))
        # The API server may have dropped fields that its CRD does not define.
        written = status if stored["status"] == document else read_status(stored)
        known_run.version = stored["metadata"]["resourceVersion"]
        known_run.is_confirmed = True
        known_run.written_status = written
        known_run.status = status
        known_run.unwritten_since = None
        if finished_at(status):
            # A finished run starts no further case, so its plan only takes memory.
            known_run.plan = FinishedRun(known_run.plan.retention)
        self._known.keep(key.uid, known_run)

    async def _post_event(self, key: Key, transition: Transition) -> None:
        """Create an Event that reports a transition of the run, and ignore errors of the API server."""
        event = event_manifest(transition, key.namespace, key.name, key.uid, self._clock())
        # The Event may exist already, and no run depends on an Event.
        with contextlib.suppress(ApiError):
            await self._cluster.create_event(event)

    def _plan(self, run: Manifest, runner: UsedRunner | None) -> Plan | Refused:
        """Return the plan of a run that has not finished, or why it is refused.

        `runner` is the one that the run's status records; None before the first step of the run.
        """
        try:
            return accept(
                run,
                self._settings.profiles,
                self._settings.runner_image,
                runner,
                pod_template=self._settings.pod_template,
            )
        except Exception as error:
            logger.exception("%s cannot be planned", Key.of(RUN.name, run))
            message = f"accelbench itself failed while planning, which is a bug: {type(error).__name__}: {error}"
            return Refused((Problem("", message),))

    def _set_idle(self, key: Key, phase: str) -> None:
        """Forget a finished run for which nothing is left to do, except its phase, which the metrics show."""
        self.phases[key] = phase
        self._case_counts.pop(key, None)
        self._idle.add(key)
        self._known.forget(key.uid)
        self._applier.forget(key.uid)

    def deleted(self, key: Key) -> None:
        """Forget a run that is deleted, or that another operator reconciles."""
        self._known.forget(key.uid)
        self._applier.forget(key.uid)
        self._idle.discard(key)
        self._terminating.pop(key, None)
        self.history.forget(key)
        self.phases.pop(key, None)
        self._case_counts.pop(key, None)

    def reset(self) -> None:
        """Forget all runs when this replica becomes the leader: another replica may have acted on them."""
        self._known.forget_all()
        self._applier.forget_all()


def _reusable_plan(known_run: KnownRun | None, generation: int, runner: UsedRunner | None) -> Plan | Refused | None:
    """Return the known plan if it still applies, else None: only the generation and the runner determine a plan.

    `generation` and `runner` are those of the latest version of the run.
    """
    if known_run is None or isinstance(known_run.plan, FinishedRun):
        return None
    is_current = known_run.generation == generation and known_run.written_status.runner == runner
    return known_run.plan if is_current else None


def _remember_documents(memory: RunMemory, plan: Plan, attempts: Iterable[Attempt]) -> None:
    """Remember the digests of the case documents that Jobs in flight must have."""
    for attempt in attempts:
        if attempt.job and not attempt.finished and attempt.job not in memory.documents:
            document = attempted_case(plan.case(attempt.case), attempt.number).to_json()
            memory.documents[attempt.job] = frozenset({digest_document(document)})


def status_manifest(key: Key, version: str, status: Manifest) -> dict[str, Any]:
    """Return the body of a request that writes a run's status.

    The API server refuses the request if `version` is outdated.
    """
    metadata = {"namespace": key.namespace, "name": key.name, "uid": key.uid, "resourceVersion": version}
    return {"apiVersion": API_VERSION, "kind": RUN.name, "metadata": metadata, "status": dict(status)}
