"""Carry out the actions of a run. Each can be repeated: the process may be killed before and after each request.

A result that may exist is read from the API server: before a Job is created, before an attempt fails, and before a Job
is deleted whose result this process has not stored itself. An existing object counts as the run's only if its owner's
UID is the run's. Deletions name the UID that they mean.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

from accelbench.api.metadata import ObjectMeta
from accelbench.api.result import MAXIMUM_MESSAGE, BenchmarkResult, JudgedExpectation, Result
from accelbench.api.run import Attempt
from accelbench.cluster_api.async_client import Manifest
from accelbench.cluster_api.errors import ApiError, ConflictError, InvalidError, NotFoundError, TooLargeError
from accelbench.cluster_api.kinds import JOB, POD, RESULT
from accelbench.document import timestamp
from accelbench.plan.names import attempt_name, result_name
from accelbench.verdict.expectations import ExpectationOutcome, evaluate
from accelbench_operator.engine.kinds import Key
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
    ReadQueue,
)
from accelbench_operator.runs.attempts import Observed
from accelbench_operator.runs.cluster import Cluster
from accelbench_operator.runs.collect import read_outcome
from accelbench_operator.runs.event_messages import EventMessages
from accelbench_operator.runs.failure import (
    AttemptFailure,
    job_deleted,
    job_refused,
    pod_gone,
    result_refused,
    unknown_end,
    unreadable,
)
from accelbench_operator.runs.job import (
    NotServedError,
    attempted_case,
    build_claim_template,
    build_job,
    identity_labels,
    owner_reference,
)
from accelbench_operator.runs.kueue import read_queue
from accelbench_operator.runs.memory import RunMemory
from accelbench_operator.runs.objects import RunObjects
from accelbench_operator.runs.observed import ObservedPod, observe_job, observe_pod, owned_by, reporting_pod
from accelbench_operator.runs.summary import observe_result
from accelbench_operator.runs.waits import Wait

logger = logging.getLogger(__name__)

LOGS_AT_A_TIME = 2
"""Maximum number of logs in memory at once; each takes up to 16 MiB, as text and as bytes."""


class ForeignObjectError(RetryError):
    """Report an object that has the name of an object of the run, but belongs to another owner or cannot be read."""


class Applier:
    """Carry out actions in the cluster, and put what was written into the store."""

    def __init__(self, cluster: Cluster, objects: RunObjects, clock: Callable[[], datetime]) -> None:
        self._cluster = cluster
        self._store = objects.store
        self._clock = clock
        self._memories: dict[str, RunMemory] = {}
        self._events = EventMessages(cluster, clock)
        self._log_slots = asyncio.Semaphore(LOGS_AT_A_TIME)

    def memory(self, run_uid: str) -> RunMemory:
        """Return what this process remembers of a run."""
        return self._memories.setdefault(run_uid, RunMemory())

    def forget(self, run_uid: str) -> None:
        """Drop what this process remembers of a run that is deleted or idle."""
        self._memories.pop(run_uid, None)

    def forget_all(self) -> None:
        """Drop what this process remembers of all runs, because another replica may have acted since."""
        self._memories.clear()

    async def apply(self, action: Action, plan: Plan, observed: Observed) -> None:
        """Carry out one action that deletes nothing; raise ApiError or ForeignObjectError to have it repeated."""
        match action:
            case CreateJob():
                await self._create_job(action, plan)
            case Collect():
                await self._collect(action, plan, observed)
            case ConfirmFailure():
                await self._confirm_failure(action, plan, observed)
            case ReadQueue():
                if job := observed.jobs.get(action.attempt.job):
                    report = await read_queue(self._cluster, job, self._clock())
                    self.memory(plan.metadata.uid).queues[job.key.name] = report
            case ReadEvents():
                await self._read_events(action, plan)

    async def finds_unlisted_results(self, plan: Plan, measured: Iterable[str], observed: Observed) -> bool:
        """Return True if the API server has a result of a measured case that the store lacks; put it into the store.

        This is checked before a run finishes, which is final: a replica may lead before its watches are up to date.
        """
        missing = [case for case in measured if case not in observed.results]
        return any([await self._has_unlisted_result(plan, case) for case in missing])

    async def _has_unlisted_result(self, plan: Plan, case: str) -> bool:
        try:
            return await self._load_result(plan, case)
        except ForeignObjectError:
            # Another object has the name of the result, so the result was deleted.
            return False

    async def delete_job(self, action: DeleteJob, run: Key) -> None:
        """Delete a Job; if its case has a result in the store, only if the API server has the result too."""
        memory = self.memory(run.uid)
        if action.uid in memory.deleted:
            return
        if action.result is not None and not await self._is_stored(action.result, run):
            self._store.remove(RESULT.name, (run.namespace, action.result))
            return
        await self._cluster.delete_job(run.namespace, action.name, action.uid)
        memory.deleted.add(action.uid)

    async def _is_stored(self, result: str, run: Key) -> bool:
        """Return True if this process has stored the result, or the API server has it."""
        if result in self.memory(run.uid).stored:
            return True
        return await self._cluster.get_result(run.namespace, result) is not None

    async def _create_job(self, action: CreateJob, plan: Plan) -> None:
        """Create the Job of an attempt, unless its case has a result; note a failure if the Job is invalid."""
        metadata = plan.metadata
        name = attempt_name(metadata.name, metadata.uid, action.case, action.attempt)
        with self._recording(Wait.CREATE_JOB, plan, name):
            if not action.is_first and await self._load_result(plan, action.case):
                return
            if plan.profile.device_class:
                await self._ensure_claim_template(plan)
            job = build_job(plan.run, plan.case(action.case), action.attempt, plan.runner)
            try:
                stored = await self._cluster.create_job(job)
            except ConflictError:
                existing = await self._cluster.get_job(metadata.namespace, name)
                if existing is None:
                    return
                stored = existing
            except InvalidError as error:
                await self._note_failure(plan, action.case, name, job_refused(error.message))
                return
            self._put_job(stored, metadata.uid)

    async def _ensure_claim_template(self, plan: Plan) -> None:
        """Create the template of the device claim before the pod that refers to it."""
        template = build_claim_template(plan.run, plan.profile)
        metadata = template["metadata"]
        try:
            await self._cluster.create_claim_template(template)
        except NotFoundError as error:
            raise NotServedError(plan.profile, error.message) from error
        except ConflictError:
            existing = await self._cluster.get_claim_template(metadata["namespace"], metadata["name"])
            if existing is not None and not owned_by(existing, plan.metadata.uid):
                raise ForeignObjectError(
                    f"ResourceClaimTemplate {metadata['name']} exists and does not belong to this run: delete it"
                ) from None

    async def _collect(self, action: Collect, plan: Plan, observed: Observed) -> None:
        """Store the outcome of an attempt that is over; note a failure if `Wait.LOOK` ends without an answer."""
        attempt, job = action.attempt, action.attempt.job
        try:
            with self._recording(Wait.LOOK, plan, job):
                end = await self._find_end(attempt, plan, observed)
        except (ApiError, ForeignObjectError) as error:
            if not self._may_give_up(Wait.LOOK, plan, job):
                raise
            end = unknown_end(_error_message(error))
        if isinstance(end, ObservedPod):
            await self._store_outcome(action, plan, end)
        elif end:
            await self._note_failure(plan, attempt.case, job, end)

    async def _find_end(self, attempt: Attempt, plan: Plan, observed: Observed) -> ObservedPod | AttemptFailure | None:
        """Return the pod whose log to read, or the failure if Job or pods are gone; None if the store was behind."""
        metadata = plan.metadata
        job, pod = observed.jobs.get(attempt.job), observed.pod(attempt.job)
        if job is None:
            job_body = await self._cluster.get_job(metadata.namespace, attempt.job)
            if job_body is None:
                return job_deleted(attempt.job)
            self._put_job(job_body, metadata.uid)
            return None
        if pod and pod.is_over:
            return pod
        # The watch of pods may be behind the watch of Jobs, after an outage by as long as the outage lasted.
        pods = await self._pods_of(attempt, plan)
        if not pods:
            return pod_gone(job, observed.disruptions.get(attempt.job, ""))
        self._replace_pods(pods, observed.pods.get(attempt.job, ()))
        return pod if pod == reporting_pod(pods) else None

    async def _pods_of(self, attempt: Attempt, plan: Plan) -> list[ObservedPod]:
        """Read the pods that the attempt's Job controls; set run and case, because anybody can change their labels."""
        bodies = await self._cluster.list_pods(plan.metadata.namespace, attempt.job)
        pods = [pod for pod in map(observe_pod, bodies) if pod.job == attempt.job]
        return [replace(pod, owner=plan.metadata.uid, case=attempt.case) for pod in pods]

    async def _store_outcome(self, action: Collect, plan: Plan, pod: ObservedPod) -> None:
        """Read the log of a pod that has ended, and store its result or note the failure."""
        attempt = action.attempt
        case = attempted_case(plan.case(attempt.case), attempt.number)
        async with self._log_slots:
            log = await self._read_log(plan, attempt.job, pod)
            now = timestamp(self._clock())
            try:
                # In a thread: a log of 8 MiB would hold up the event loop.
                result = await asyncio.to_thread(read_outcome, case, pod, log, last=action.last, now=now)
                body = _result_body(result, plan, pod) if isinstance(result, Result) else None
            except Exception as error:
                logger.exception("%s: the log of its pod cannot be read; the attempt fails", attempt.job)
                result, body = unreadable(error), None
            del log  # many MB, which the traceback of a refusal would hold
        if body is not None:
            await self._store_result(body, attempt, plan)
        elif isinstance(result, AttemptFailure):
            await self._note_failure(plan, attempt.case, attempt.job, result)

    async def _read_events(self, action: ReadEvents, plan: Plan) -> None:
        """Record the latest Event about the attempt's Job or pod."""
        attempt, question = action.attempt, action.question
        message = await self._events.about(plan.metadata.namespace, question.about_uid)
        self.memory(plan.metadata.uid).record(attempt.job, question.wait, message, self._clock())

    async def _confirm_failure(self, action: ConfirmFailure, plan: Plan, observed: Observed) -> None:
        """Note the failure if the API server has the same Job and pod as the store; else bring the store up to date."""
        attempt, metadata = action.attempt, plan.metadata
        stored = observed.jobs.get(attempt.job), observed.pod(attempt.job)
        body = await self._cluster.get_job(metadata.namespace, attempt.job)
        pods = await self._pods_of(attempt, plan)
        if (observe_job(body) if body else None, reporting_pod(pods)) == stored:
            await self._note_failure(plan, attempt.case, attempt.job, action.failure)
            return
        if body:
            self._put_job(body, metadata.uid)
        else:
            self._store.remove(JOB.name, (metadata.namespace, attempt.job))
        self._replace_pods(pods, observed.pods.get(attempt.job, ()))

    async def _read_log(self, plan: Plan, job: str, pod: ObservedPod) -> str | None:
        """Return the log; None if there is none, or if all reads during `Wait.READ_LOG` failed."""
        if pod.running is None:
            return None
        try:
            with self._recording(Wait.READ_LOG, plan, job):
                return await self._cluster.read_log(pod.key.namespace, pod.key.name)
        except NotFoundError:
            # A kubelet also answers 404 for a pod that it does not know yet.
            if not await self._cluster.list_pods(pod.key.namespace, job) or self._may_give_up(Wait.READ_LOG, plan, job):
                return None
            raise
        except ApiError:
            # The node may only be busy or restarting.
            if self._may_give_up(Wait.READ_LOG, plan, job):
                return None
            raise

    async def _store_result(self, body: Manifest, attempt: Attempt, plan: Plan) -> None:
        """Create the BenchmarkResult; note a failure if it is invalid, its name taken, or `Wait.STORE_RESULT` over."""
        case, job, run_uid = attempt.case, attempt.job, plan.metadata.uid
        try:
            with self._recording(Wait.STORE_RESULT, plan, job):
                stored = await self._cluster.create_result(body)
        except (InvalidError, TooLargeError) as error:
            await self._note_failure(plan, case, job, result_refused(error.message))
        except ApiError as error:
            exists = isinstance(error, ConflictError) and await self._name_is_taken(plan, case)
            if not exists and not self._may_give_up(Wait.STORE_RESULT, plan, job):
                raise
            await self._note_failure(plan, case, job, result_refused(error.message))
        else:
            self.memory(run_uid).stored.add(stored["metadata"]["name"])
            self._put_result(stored, run_uid)

    async def _name_is_taken(self, plan: Plan, case: str) -> bool:
        """Return True if an object has the name of the case's result; else the conflict had another cause."""
        metadata = plan.metadata
        name = result_name(metadata.name, metadata.uid, case)
        return await self._cluster.get_result(metadata.namespace, name) is not None

    @contextmanager
    def _recording(self, wait: Wait, plan: Plan, job: str) -> Iterator[None]:
        """Record an error of the block as an obstacle of the attempt; clear the obstacle after a success."""
        run_uid = plan.metadata.uid
        try:
            yield
        except Exception as error:
            self.memory(run_uid).record(job, wait, _error_message(error), self._clock())
            raise
        self.memory(run_uid).clear(job, wait)

    def _may_give_up(self, wait: Wait, plan: Plan, job: str) -> bool:
        """Return True if the requests of this wait have failed often enough for long enough."""
        return self.memory(plan.metadata.uid).is_final(job, wait, self._clock())

    async def _load_result(self, plan: Plan, case: str) -> bool:
        """Put the case's result into the store if the API server has it; return True if it has."""
        metadata = plan.metadata
        name = result_name(metadata.name, metadata.uid, case)
        stored = await self._cluster.get_result(metadata.namespace, name)
        if stored is not None:
            self._put_result(stored, metadata.uid)
        return stored is not None

    def _put_job(self, body: Manifest, run_uid: str) -> None:
        """Put the Job into the store; raise ForeignObjectError if the run does not control it."""
        job = observe_job(body)
        if job is None or not owned_by(body, run_uid):
            name = body["metadata"]["name"]
            raise ForeignObjectError(f"Job {name} exists and does not belong to this run: delete it")
        self._store.put(job, fresh=True)

    def _replace_pods(self, pods: Sequence[ObservedPod], stored: Iterable[ObservedPod]) -> None:
        """Replace the pods in the store by those that the API server just returned."""
        names = {pod.key.name for pod in pods}
        for pod in stored:
            if pod.key.name not in names:
                self._store.remove(POD.name, name_of(pod))
        for pod in pods:
            self._store.put(pod, fresh=True)

    def _put_result(self, body: Manifest, run_uid: str) -> None:
        """Put the summary of the result into the store; raise ForeignObjectError if it is not of this run."""
        name = body["metadata"]["name"]
        try:
            summary = observe_result(body)
        except ValueError as error:
            raise ForeignObjectError(f"BenchmarkResult {name} exists and cannot be read: delete it") from error
        if summary is None or summary.run_uid != run_uid:
            raise ForeignObjectError(f"BenchmarkResult {name} exists and does not belong to this run: delete it")
        self._store.put(summary, fresh=True)

    async def _note_failure(self, plan: Plan, case: str, job: str, failure: AttemptFailure) -> None:
        """Note that the attempt failed, unless the API server has a result of its case."""
        try:
            with self._recording(Wait.RESULT, plan, job):
                has_result = await self._load_result(plan, case)
        except ForeignObjectError as error:
            has_result, failure = False, replace(failure, message=f"{failure.message}. {error}")
        except ApiError as error:
            if not self._may_give_up(Wait.RESULT, plan, job):
                raise
            has_result, failure = False, unknown_end(_error_message(error))
        if not has_result:
            self.memory(plan.metadata.uid).failures[job] = failure


def _result_body(result: Result, plan: Plan, pod: ObservedPod) -> Manifest:
    """Return the BenchmarkResult as the body of the request that creates it."""
    run, case = plan.run, result.case.name
    document = BenchmarkResult.of(
        result,
        ObjectMeta(
            name=result_name(run.metadata.name, run.metadata.uid, case),
            namespace=run.metadata.namespace,
            labels=identity_labels(run, case),
        ),
        [_judged_expectation(outcome) for outcome in evaluate(run.spec.expectations, result)],
        node=pod.node or None,
        pod=pod.key.name,
        image=pod.image or None,
    )
    body = document.model_dump(mode="json", by_alias=True, exclude_none=True)
    body["metadata"] = {key: body["metadata"][key] for key in ("name", "namespace", "labels")}
    if run.spec.run_policy.result_retention_policy == "Delete":
        body["metadata"]["ownerReferences"] = [owner_reference(run)]
    return body


def _error_message(error: Exception) -> str:
    """Return the message of the error; for an unexpected one, with its type."""
    if isinstance(error, ApiError):
        return error.message
    return str(error) if isinstance(error, ForeignObjectError) else f"{type(error).__name__}: {error}"


def _judged_expectation(outcome: ExpectationOutcome) -> JudgedExpectation:
    message = " ".join(outcome.sentence.split())[:MAXIMUM_MESSAGE]
    return JudgedExpectation(**dict(outcome.expectation), outcome=outcome.outcome, message=message)
