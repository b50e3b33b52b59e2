"""Carry out the actions of a run. Each can be repeated: the process may be killed before and after each request.

Before a Job is created and before an attempt fails, this module asks the API server whether the case has a result. It
also asks before a Job is deleted, unless this process has stored the result itself. A Job belongs to the attempt only
if this operator has created it, which its UID shows, or if it is as this operator would create it (`adoption`). A pod
belongs to the attempt only if its controller is that Job, by UID. Each deletion names the UID of the object.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial

from accelbench.api.result import Result
from accelbench.api.run import Attempt
from accelbench.cluster_api.async_client import Manifest
from accelbench.cluster_api.errors import ApiError, ConflictError, InvalidError, NotFoundError, TooLargeError
from accelbench.cluster_api.kinds import CLAIM_TEMPLATE, JOB, POD, RESULT, RUN
from accelbench.delivery.log import LogDocuments
from accelbench.document import timestamp
from accelbench.plan.names import attempt_name, result_name
from accelbench_operator.engine.fair_slots import FairSlots
from accelbench_operator.engine.kinds import Key, controller_uid
from accelbench_operator.engine.queue import RetryError
from accelbench_operator.engine.store import name_of
from accelbench_operator.runs.accept import Plan
from accelbench_operator.runs.actions import (
    Action,
    Collect,
    ConfirmFailure,
    CreateJob,
    DeleteJob,
    ReadEvents,
    ReadPods,
    ReadQueue,
)
from accelbench_operator.runs.adoption import is_as_created
from accelbench_operator.runs.attempts import Observed
from accelbench_operator.runs.benchmark_result import build_result
from accelbench_operator.runs.cluster import Cluster
from accelbench_operator.runs.collect import read_outcome
from accelbench_operator.runs.event_messages import EventMessages
from accelbench_operator.runs.failure import (
    AttemptFailure,
    case_changed,
    job_deleted,
    job_refused,
    log_unreadable,
    pod_gone,
    result_refused,
    unknown_end,
)
from accelbench_operator.runs.job import (
    NotServedError,
    attempted_case,
    build_claim_template,
    build_job,
    watched_labels,
)
from accelbench_operator.runs.kueue import Queues
from accelbench_operator.runs.memory import RunMemory
from accelbench_operator.runs.objects import RunObjects
from accelbench_operator.runs.observed import ObservedPod, observe_job, observe_pod, reporting_pod
from accelbench_operator.runs.same_case import digest_document, document_of, find_changes
from accelbench_operator.runs.summary import observe_result
from accelbench_operator.runs.waits import Wait

logger = logging.getLogger(__name__)

LOGS_AT_A_TIME = 2
"""Maximum number of logs in memory at once; each takes up to `MAXIMUM_READ_BYTES`."""


class ForeignObjectError(RetryError):
    """Report an object under a name that the run needs; the object has another owner or cannot be read."""


class Applier:
    """Carry out actions in the cluster, and put what was written into the store."""

    def __init__(self, cluster: Cluster, objects: RunObjects, clock: Callable[[], datetime]) -> None:
        self._cluster = cluster
        self._store = objects.store
        self._clock = clock
        self._memories: dict[str, RunMemory] = {}
        self._events = EventMessages(cluster, clock, objects.uids)
        self._queues = Queues(cluster, clock, objects.uids)
        self._log_slots: FairSlots[str] = FairSlots(LOGS_AT_A_TIME)

    def memory(self, run_uid: str) -> RunMemory:
        """Return what this process remembers of a run."""
        return self._memories.setdefault(run_uid, RunMemory())

    def forget(self, run_uid: str) -> None:
        """Drop what this process remembers of a run."""
        self._memories.pop(run_uid, None)

    def forget_all(self) -> None:
        """Forget all runs when this replica becomes the leader: another replica may have acted on them."""
        self._memories.clear()

    async def apply(self, action: Action, plan: Plan, observed: Observed) -> None:
        """Carry out an action other than a deletion."""
        match action:
            case CreateJob():
                await self._create_job(action, plan)
            case Collect():
                await self._collect(action, plan, observed)
            case ConfirmFailure():
                await self._confirm_failure(action, plan, observed)
            case ReadQueue():
                await self._read_queue(action, plan, observed)
            case ReadEvents():
                await self._read_events(action, plan)
            case ReadPods():
                await self._read_pods(action, plan)

    async def load_missing_results(self, plan: Plan, measured_cases: Iterable[str], observed: Observed) -> bool:
        """Load results of measured cases that the store lacks; return True if at least one was loaded.

        Call this before a run finishes: the store may be behind the API server.
        """
        has_loaded = False
        for case in measured_cases:
            if case in observed.results:
                continue
            try:
                has_loaded |= await self._load_result(plan, case)
            except ForeignObjectError:
                # The object that has the name of the result is not the result, so the result was deleted.
                continue
        return has_loaded

    async def delete_job(self, action: DeleteJob, run: Key) -> None:
        """Delete a Job, unless the API server lacks the result that must exist before the deletion."""
        memory = self.memory(run.uid)
        if action.uid in memory.deleted_jobs:  # the watch has not reported the deletion yet
            return
        if action.result is not None and not await self._result_exists(action.result, run):
            # The store was outdated. This removal makes the run due, so the next step decides without the result.
            self._store.remove(RESULT.name, (run.namespace, action.result))
            return
        await self._cluster.delete_job(run.namespace, action.name, action.uid)
        memory.deleted_jobs.add(action.uid)

    async def _result_exists(self, result: str, run: Key) -> bool:
        """Return True if this process has stored the BenchmarkResult, or if the API server has it."""
        if result in self.memory(run.uid).stored_results:
            return True
        return await self._cluster.get_result(run.namespace, result) is not None

    async def _create_job(self, action: CreateJob, plan: Plan) -> None:
        """Create the Job of an attempt, unless the case has a result."""
        metadata = plan.metadata
        name = attempt_name(metadata.name, metadata.uid, action.case, action.attempt)
        with self._record_obstacle(Wait.CREATE_JOB, plan, name):
            # Before the first attempt no result can exist.
            has_result = not action.is_first and await self._load_result(plan, action.case)
            if has_result:
                return
            if plan.profile.device_class:
                await self._ensure_claim_template(plan)
            job = build_job(plan.run, plan.case(action.case), action.attempt, plan.runner)
            stored: Manifest | None
            try:
                stored = await self._cluster.create_job(job)
            except ConflictError:
                stored = await self._adopt_job(job, metadata.uid)
            except InvalidError as error:
                await self._note_failure(plan, action.case, name, job_refused(error.message))
                return
            # A Job that caused a conflict may have been deleted since; the next step creates another.
            if stored is not None:
                memory = self.memory(metadata.uid)
                # A Job or pod with another case document is examined before its result counts.
                memory.documents[name] = frozenset({digest_document(document_of(job["spec"]["template"]))})
                self._put_job(stored, metadata.uid)
                memory.own_jobs[name] = stored["metadata"]["uid"]

    async def _adopt_job(self, job: Manifest, run_uid: str) -> Manifest | None:
        """Return the existing Job with the name of `job`; None if it is gone.

        If somebody else created the existing Job, raise ForeignObjectError. If that Job names this run as its owner,
        delete it first, so that a later step can create `job`.
        """
        namespace, name = job["metadata"]["namespace"], job["metadata"]["name"]
        existing = await self._cluster.get_job(namespace, name)
        if existing is None:
            return None
        uid = existing["metadata"]["uid"]
        if controller_uid(existing, RUN) != run_uid:
            raise ForeignObjectError(f"Job {name} exists and does not belong to this run: delete it")
        is_known = self.memory(run_uid).own_jobs.get(name) == uid
        if is_known or await is_as_created(self._cluster, JOB, job, existing):
            return existing
        await self._cluster.delete_job(namespace, name, uid)
        raise ForeignObjectError(f"Job {name} was not created by this operator, which has deleted it")

    async def _ensure_claim_template(self, plan: Plan) -> None:
        """Create the run's ResourceClaimTemplate, unless it exists as this operator would create it.

        Raises NotServedError if the cluster has no such kind, and ForeignObjectError if another object has its name.
        """
        template = build_claim_template(plan.run, plan.profile)
        metadata = template["metadata"]
        try:
            await self._cluster.create_claim_template(template)
        except NotFoundError as error:
            raise NotServedError(plan.profile, error.message) from error
        except ConflictError:
            existing = await self._cluster.get_claim_template(metadata["namespace"], metadata["name"])
            if existing is None:
                raise  # it was deleted after it had caused the conflict: the next try creates it
            is_of_run = controller_uid(existing, RUN) == plan.metadata.uid
            if not is_of_run or not await is_as_created(self._cluster, CLAIM_TEMPLATE, template, existing):
                raise ForeignObjectError(
                    f"ResourceClaimTemplate {metadata['name']} exists and does not belong to this run: delete it"
                ) from None

    async def _collect(self, action: Collect, plan: Plan, observed: Observed) -> None:
        """Store the result of an attempt that has ended, or note its failure."""
        attempt, job = action.attempt, action.attempt.job
        pod_or_failure: ObservedPod | AttemptFailure | None
        try:
            with self._record_obstacle(Wait.FIND_POD, plan, job):
                if observed.has_other_case(attempt):
                    pod_or_failure = await self._examine_case(attempt, plan, observed)
                else:
                    pod_or_failure = await self._ended_pod(attempt, plan, observed)
        except (ApiError, ForeignObjectError) as error:
            if not self._may_give_up(Wait.FIND_POD, plan, job):
                raise
            pod_or_failure = unknown_end(_error_message(error))
        # None means that the store was outdated: the next step decides again.
        if isinstance(pod_or_failure, ObservedPod):
            await self._store_outcome(action, plan, pod_or_failure)
        elif pod_or_failure is not None:
            await self._note_failure(plan, attempt.case, job, pod_or_failure)

    async def _ended_pod(self, attempt: Attempt, plan: Plan, observed: Observed) -> ObservedPod | AttemptFailure | None:
        """Return the pod of an attempt that has ended, or a failure if its Job or pod is gone.

        If the store was outdated, correct it and return None.
        """
        metadata = plan.metadata
        job, pod = observed.job(attempt), observed.pod(attempt)
        if job is None:
            job_body = await self._get_own_job(attempt, plan, observed)
            if job_body is None:
                # A pod that still runs shows that the Job had not ended, so that its time to live did not count yet.
                had_ended = pod is None or pod.is_over
                time_to_live = self.memory(metadata.uid).times_to_live.get(attempt.job)
                return job_deleted(attempt.job, time_to_live if had_ended else None)
            self._put_job(job_body, metadata.uid)
            return None
        if pod and pod.is_runner_over:
            return pod
        # The Job has ended, so its pod has too. After an outage, the watch of pods may be behind the watch of Jobs.
        current_pods = await self._load_pods(attempt, plan, observed)
        if not current_pods:
            return pod_gone(job, observed.removals.get(attempt.job))
        store_was_current = pod == reporting_pod(current_pods)
        return pod if store_was_current else None

    async def _examine_case(self, attempt: Attempt, plan: Plan, observed: Observed) -> AttemptFailure | None:
        """Return a failure if the attempt's Job or one of its pods runs another case than the operator wrote.

        Otherwise remember their case documents as accepted, update the store, and return None.
        """
        template = self._pod_template(attempt, plan)
        job = await self._get_own_job(attempt, plan, observed)
        pods = await self._list_own_pods(attempt, plan, observed)
        examined: list[tuple[str, Manifest]] = []  # the name of the Job or pod, and its pod template
        if job:
            examined.append((f"Job {attempt.job}", job["spec"]["template"]))
        # A pod has the fields of a pod template, so the two can be compared.
        examined += [(f"pod {pod['metadata']['name']}", pod) for pod in pods]
        for name, body in examined:
            changes = find_changes(template, body)
            if changes:
                return case_changed(name, changes)
        if job:
            self._put_job(job, plan.metadata.uid)
        else:
            self._store.remove(JOB.name, (plan.metadata.namespace, attempt.job))
        self._keep_pods(pods, attempt, plan, observed)
        documents = [document_of(template), *(document_of(body) for _, body in examined)]
        self.memory(plan.metadata.uid).documents[attempt.job] = frozenset(map(digest_document, documents))
        return None

    def _pod_template(self, attempt: Attempt, plan: Plan) -> Manifest:
        """Return the pod template that this operator makes for the attempt."""
        job = build_job(plan.run, plan.case(attempt.case), attempt.number, plan.runner)
        template: Manifest = job["spec"]["template"]
        return template

    async def _get_own_job(self, attempt: Attempt, plan: Plan, observed: Observed) -> Manifest | None:
        """Read the Job that this operator created for the attempt; return None if it is gone or replaced by another."""
        job = await self._cluster.get_job(plan.metadata.namespace, attempt.job)
        return job if job and job["metadata"]["uid"] == observed.job_uid(attempt) else None

    async def _load_pods(self, attempt: Attempt, plan: Plan, observed: Observed) -> list[ObservedPod]:
        """Read the pods of the attempt's own Job, keep them as `_keep_pods` does, and return them."""
        return self._keep_pods(await self._list_own_pods(attempt, plan, observed), attempt, plan, observed)

    async def _list_own_pods(self, attempt: Attempt, plan: Plan, observed: Observed) -> list[Manifest]:
        """Read the pods of the attempt's own Job: those with its label, and those that were seen earlier."""
        own_uid = observed.job_uid(attempt)
        bodies = await self._cluster.list_pods(plan.metadata.namespace, attempt.job)
        # Without a known UID, no pod counts as one of its own.
        pods = [body for body in bodies if own_uid and controller_uid(body, JOB) == own_uid]
        listed_uids = {body["metadata"]["uid"] for body in pods}
        for pod in observed.pods_of(attempt):
            if pod.key.uid not in listed_uids:  # somebody may have removed the label with the Job's name
                body = await self._cluster.get_pod(pod.key.namespace, pod.key.name, pod.key.uid)
                if body is not None:
                    pods.append(body)
        return pods

    def _keep_pods(
        self, bodies: Sequence[Manifest], attempt: Attempt, plan: Plan, observed: Observed
    ) -> list[ObservedPod]:
        """Keep the attempt's current pods: in the store, or in memory if no watch reports them. Return them."""
        memory = self.memory(plan.metadata.uid)
        current_uids = {body["metadata"]["uid"] for body in bodies}
        for pod in observed.pods_of(attempt):
            if pod.key.uid not in current_uids:
                memory.forget_pod(pod.key.uid)
                self._remove_pod(pod)
        watched = watched_labels(plan.run).items()
        pods = []
        for body in bodies:
            pod = _observe_own_pod(body, attempt, plan, observed)
            if watched <= (body["metadata"].get("labels") or {}).items():
                self._store.put(pod, fresh=True)
            else:
                # The watch no longer selects the pod, but may not have reported that yet.
                self._remove_pod(pod)
                memory.keep_unwatched_pod(pod, self._clock())
            pods.append(pod)
        return pods

    def _remove_pod(self, pod: ObservedPod) -> None:
        """Remove the pod from the store, unless the store has another pod with its name."""
        stored = self._store.get(POD.name, name_of(pod))
        if stored is not None and stored.key.uid == pod.key.uid:
            self._store.remove(POD.name, name_of(pod))

    async def _read_pods(self, action: ReadPods, plan: Plan) -> None:
        """Read pods that no watch reports, and forget those that are gone."""
        memory = self.memory(plan.metadata.uid)
        for pod in action.pods:
            body = await self._cluster.get_pod(pod.key.namespace, pod.key.name, pod.key.uid)
            if body is None:
                memory.forget_pod(pod.key.uid)
            else:
                memory.keep_unwatched_pod(observe_pod(body), self._clock())

    async def _store_outcome(self, action: Collect, plan: Plan, pod: ObservedPod) -> None:
        """Read the pod's log, then store its result or note the failure."""
        attempt = action.attempt
        case = attempted_case(plan.case(attempt.case), attempt.number)
        async with self._log_slots.slot(plan.metadata.namespace):
            log = await self._read_log(plan, attempt.job, pod)
            now = timestamp(self._clock())
            outcome_of = partial(read_outcome, case, pod, retries=action.retries, now=now)
            # The pod is read after its log: if the pod still exists now, the log was its own.
            current = await self._read_pod(pod, attempt, plan)
            if isinstance(current, AttemptFailure):
                log = None  # else it would be in memory while the failure is noted
                await self._note_failure(plan, attempt.case, attempt.job, current)
                return
            try:
                # In a thread: inflating and reading documents would block the event loop.
                outcome = await asyncio.to_thread(outcome_of, log)
                if isinstance(outcome, Result) and outcome.complete and current is None:
                    # The pod is gone. Its log was read by name, so another pod of that name may have written it, and
                    # nothing shows any more which case this pod ran.
                    outcome = outcome_of(None)
                body = build_result(outcome, plan, pod) if isinstance(outcome, Result) else None
            except Exception as error:
                logger.exception("%s: the log of its pod cannot be read; the attempt fails", attempt.job)
                outcome = log_unreadable(error)
                body = None
            del log  # else the traceback of a later error would keep many MB in memory
        if body is not None:
            await self._store_result(body, attempt, plan)
        elif isinstance(outcome, AttemptFailure):
            await self._note_failure(plan, attempt.case, attempt.job, outcome)

    async def _read_pod(self, pod: ObservedPod, attempt: Attempt, plan: Plan) -> Manifest | AttemptFailure | None:
        """Read the pod that has ended; None if it is gone.

        Return a failure if the pod ran another case than the operator wrote, or if it could not be read for so long
        that the operator may give up.
        """
        try:
            with self._record_obstacle(Wait.FIND_POD, plan, attempt.job):
                current = await self._cluster.get_pod(pod.key.namespace, pod.key.name, pod.key.uid)
        except ApiError as error:
            if not self._may_give_up(Wait.FIND_POD, plan, attempt.job):
                raise
            return unknown_end(_error_message(error))
        if current is None:
            return None
        changes = find_changes(self._pod_template(attempt, plan), current)
        if changes:
            return case_changed(f"pod {pod.key.name}", changes)
        return current

    async def _read_queue(self, action: ReadQueue, plan: Plan, observed: Observed) -> None:
        """Read from Kueue why it does not admit the attempt's Job, if there is one; remember the answer."""
        job = observed.job(action.attempt)
        if job is not None:
            report = await self._queues.report(job)
            self.memory(plan.metadata.uid).queues[job.key.name] = report

    async def _read_events(self, action: ReadEvents, plan: Plan) -> None:
        """Read the latest Event about the attempt's Job or pod, and remember its message for the next decision."""
        message = await self._events.latest_message(plan.metadata.namespace, action.events.about_uid)
        self.memory(plan.metadata.uid).record(action.attempt.job, action.events.wait, message, self._clock())

    async def _confirm_failure(self, action: ConfirmFailure, plan: Plan, observed: Observed) -> None:
        """Note a suspected failure if the store agrees with the API server; else update the store's Job and pods."""
        attempt, metadata = action.attempt, plan.metadata
        job_body = await self._get_own_job(attempt, plan, observed)
        bodies = await self._list_own_pods(attempt, plan, observed)
        current_pods = [_observe_own_pod(body, attempt, plan, observed) for body in bodies]
        current_job = observe_job(job_body) if job_body else None
        has_same_job = current_job == observed.job(attempt)
        has_same_pod = reporting_pod(current_pods) == observed.pod(attempt)
        if has_same_job and has_same_pod:
            await self._note_failure(plan, attempt.case, attempt.job, action.failure)
            return
        if job_body:
            self._put_job(job_body, metadata.uid)
        else:
            self._store.remove(JOB.name, (metadata.namespace, attempt.job))
        self._keep_pods(bodies, attempt, plan, observed)

    async def _read_log(self, plan: Plan, job: str, pod: ObservedPod) -> LogDocuments | None:
        """Return the documents in the pod's log; None if there is no log, or if reading it has failed for too long.

        Until it has failed for too long, raise ApiError.
        """
        if pod.started_at is None:
            return None  # a container that never started has no log
        try:
            with self._record_obstacle(Wait.READ_LOG, plan, job):
                return await self._cluster.read_log(pod.key.namespace, pod.key.name)
        except NotFoundError:
            # A kubelet also answers 404 for a pod that it does not know yet.
            key = pod.key
            pod_exists = await self._cluster.get_pod(key.namespace, key.name, key.uid) is not None
            if not pod_exists or self._may_give_up(Wait.READ_LOG, plan, job):
                return None
            raise
        except ApiError:
            # The node may only be busy or restarting.
            if self._may_give_up(Wait.READ_LOG, plan, job):
                return None
            raise

    async def _store_result(self, body: Manifest, attempt: Attempt, plan: Plan) -> None:
        """Create the BenchmarkResult, or note that the API server refuses it.

        Until the limit of tries and time, raise ApiError for an error that a later try may not have; after the limit,
        note that one too as a refusal.
        """
        case, job, run_uid = attempt.case, attempt.job, plan.metadata.uid
        try:
            with self._record_obstacle(Wait.STORE_RESULT, plan, job):
                stored = await self._cluster.create_result(body)
        except (InvalidError, TooLargeError) as error:
            await self._note_failure(plan, case, job, result_refused(error.message))
        except ApiError as error:
            # If the name is taken, no later try can succeed. `_note_failure` finds out if it is this case's result.
            name_is_taken = isinstance(error, ConflictError) and await self._name_is_taken(plan, case)
            if not name_is_taken and not self._may_give_up(Wait.STORE_RESULT, plan, job):
                raise
            await self._note_failure(plan, case, job, result_refused(error.message))
        else:
            self.memory(run_uid).stored_results.add(stored["metadata"]["name"])
            self._put_result(stored, run_uid)

    async def _name_is_taken(self, plan: Plan, case: str) -> bool:
        """Return True if a BenchmarkResult with the name for this case's result exists."""
        metadata = plan.metadata
        name = result_name(metadata.name, metadata.uid, case)
        return await self._cluster.get_result(metadata.namespace, name) is not None

    @contextmanager
    def _record_obstacle(self, wait: Wait, plan: Plan, job: str) -> Iterator[None]:
        """Record an error of the `with` block as the Job's obstacle in this wait; after a success, clear it."""
        run_uid = plan.metadata.uid
        try:
            yield
        except Exception as error:
            self.memory(run_uid).record(job, wait, _error_message(error), self._clock())
            raise
        self.memory(run_uid).clear(job, wait)

    def _may_give_up(self, wait: Wait, plan: Plan, job: str) -> bool:
        """Return True if this wait of the Job has reached both its limit of tries and its limit of time."""
        return self.memory(plan.metadata.uid).has_reached_limits(job, wait, self._clock())

    async def _load_result(self, plan: Plan, case: str) -> bool:
        """Read the case's result into the store; return True if it exists.

        Raise ForeignObjectError if an object has the result's name, but is of another run or cannot be read.
        """
        metadata = plan.metadata
        name = result_name(metadata.name, metadata.uid, case)
        stored = await self._cluster.get_result(metadata.namespace, name)
        if stored is not None:
            self._put_result(stored, metadata.uid)
        return stored is not None

    def _put_job(self, body: Manifest, run_uid: str) -> None:
        """Put a Job from an API response into the store.

        Raises ForeignObjectError if the Job does not belong to the run.
        """
        job = observe_job(body)
        if job is None or job.owner != run_uid:
            name = body["metadata"]["name"]
            raise ForeignObjectError(f"Job {name} exists and does not belong to this run: delete it")
        self._store.put(job, fresh=True)

    def _put_result(self, body: Manifest, run_uid: str) -> None:
        """Put a result from an API response into the store.

        Raise ForeignObjectError if it cannot be read or does not belong to the run.
        """
        name = body["metadata"]["name"]
        try:
            summary = observe_result(body)
        except ValueError as error:
            raise ForeignObjectError(f"BenchmarkResult {name} exists and cannot be read: delete it") from error
        if summary is None or summary.run_uid != run_uid:
            raise ForeignObjectError(f"BenchmarkResult {name} exists and does not belong to this run: delete it")
        self._store.put(summary, fresh=True)

    async def _note_failure(self, plan: Plan, case: str, job: str, failure: AttemptFailure) -> None:
        """Note that the attempt failed, unless its case has a result.

        If a foreign object has the result's name, the noted message names it. If the API server does not answer whether
        there is a result, raise ApiError; after the limit of tries and time, note that the attempt's end is unknown.
        """
        has_result = False
        try:
            with self._record_obstacle(Wait.RESULT, plan, job):
                has_result = await self._load_result(plan, case)
        except ForeignObjectError as error:
            failure = replace(failure, message=f"{failure.message}. {error}")
        except ApiError as error:
            if not self._may_give_up(Wait.RESULT, plan, job):
                raise
            failure = unknown_end(_error_message(error))
        if not has_result:
            self.memory(plan.metadata.uid).failures[job] = failure


def _observe_own_pod(body: Manifest, attempt: Attempt, plan: Plan, observed: Observed) -> ObservedPod:
    """Reduce a pod of the attempt to the fields that decisions need."""
    # Anybody can change labels and owners, so the run, the case and the Job come from the attempt.
    job_uid = observed.job_uid(attempt) or ""
    return replace(observe_pod(body), owner=plan.metadata.uid, case=attempt.case, job=attempt.job, job_uid=job_uid)


def _error_message(error: Exception) -> str:
    """Return the message of an error; name the type of an error that is unexpected here."""
    if isinstance(error, ApiError):
        return error.message
    if isinstance(error, ForeignObjectError):
        return str(error)
    return f"{type(error).__name__}: {error}"
