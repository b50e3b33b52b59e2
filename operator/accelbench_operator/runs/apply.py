"""Does what was decided. Every step can be repeated, and the process may be killed before and after each of them.

A result that may be there is asked for live: before a Job is created, before an attempt counts as lost, and before a
Job is deleted whose result this process has not stored itself. An object that exists already counts as ours only where
its owner's UID is the run's. Deletions name the UID that they mean.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

from accelbench.api.case import Case
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
from accelbench_operator.runs.actions import Action, Ask, AskQueue, Collect, Confirm, CreateJob, DeleteJob
from accelbench_operator.runs.attempts import Observed
from accelbench_operator.runs.claim import NotServedError, build_claim_template
from accelbench_operator.runs.cluster import Cluster
from accelbench_operator.runs.collect import outcome
from accelbench_operator.runs.event_words import EventWords
from accelbench_operator.runs.failure import (
    AttemptFailure,
    job_deleted,
    job_refused,
    not_found_out,
    pod_gone,
    result_refused,
    unreadable,
)
from accelbench_operator.runs.job import build_job, identity_labels
from accelbench_operator.runs.kueue import QueueReports, ask
from accelbench_operator.runs.objects import RunObjects
from accelbench_operator.runs.observed import (
    ObservedPod,
    observe_job,
    observe_pod,
    observe_result,
    owned_by,
    reporting_pod,
)
from accelbench_operator.runs.obstacles import Obstacles
from accelbench_operator.runs.owner import owner_reference
from accelbench_operator.runs.waits import Wait

logger = logging.getLogger(__name__)

LOGS_AT_A_TIME = 2
"""Up to 16 MiB each, as text and as bytes."""


class ForeignObjectError(RetryError):
    """An object of a name that only ours can have belongs to someone else, or is none that we can read."""


class Applier:
    """Applies decisions to one cluster, and notes in the store what it wrote. `losses` is by Job name."""

    def __init__(self, cluster: Cluster, objects: RunObjects, clock: Callable[[], datetime]) -> None:
        self._cluster = cluster
        self._store = objects.store
        self._clock = clock
        self.losses: dict[str, dict[str, AttemptFailure]] = {}
        """By run UID, then by Job name: why looking for a result was in vain; found out again after a restart."""
        self.obstacles = Obstacles()
        self._stored: dict[str, set[str]] = {}
        """By run UID: names of the results that the API server took from this process."""
        self._deleted: dict[str, set[str]] = {}
        """By run UID: UIDs of the Jobs that it was told to delete; their watch may still tell of them."""
        self.queues = QueueReports()
        self._events = EventWords(cluster, clock)
        self._reading = asyncio.Semaphore(LOGS_AT_A_TIME)

    async def apply(self, action: Action, plan: Plan, observed: Observed) -> None:
        """Do one thing; raises ApiError where it has to be tried again later."""
        if isinstance(action, CreateJob):
            await self._create(action, plan)
        elif isinstance(action, Collect):
            await self._collect(action, plan, observed)
        elif isinstance(action, Confirm):
            await self._confirm(action, plan, observed)
        elif isinstance(action, AskQueue) and (job := observed.jobs.get(action.attempt.job)):
            self.queues.note(job, await ask(self._cluster, job, self._clock()))
        elif isinstance(action, Ask):
            await self._ask(action, plan)

    async def find_missing(self, plan: Plan, measured: Iterable[str], observed: Observed) -> bool:
        """Whether the cluster has a result that nothing was heard of, of a case that is said to have one.

        Asked before a run finishes, as that is final: a replica may lead before its watches have told it everything.
        """
        unheard = [case for case in measured if case not in observed.results]
        return any([await self._is_unheard(plan, case) for case in unheard])

    async def _is_unheard(self, plan: Plan, case: str) -> bool:
        try:
            return await self._find_result(plan, case)
        except ForeignObjectError:
            # Somebody put an object of their own in its place: the result is gone.
            return False

    async def delete_job(self, action: DeleteJob, key: Key) -> None:
        """Delete a Job; where it has brought a result, only if that is stored indeed."""
        if action.uid in self._deleted.get(key.uid, ()):
            return
        if action.result is not None and not await self._is_stored(action.result, key):
            self._store.remove(RESULT.name, (key.namespace, action.result))
            return
        await self._cluster.delete_job(key.namespace, action.name, action.uid)
        self._deleted.setdefault(key.uid, set()).add(action.uid)

    async def _is_stored(self, result: str, key: Key) -> bool:
        if result in self._stored.get(key.uid, ()):
            return True
        return await self._cluster.get_result(key.namespace, result) is not None

    async def _create(self, action: CreateJob, plan: Plan) -> None:
        metadata = plan.metadata
        name = attempt_name(metadata.name, metadata.uid, action.case, action.attempt)
        with self._trying(Wait.CREATE_JOB, plan, name):
            if not action.is_first and await self._find_result(plan, action.case):
                return
            if plan.profile.device_class:
                await self._ensure_claim_template(plan)
            job = build_job(plan.run, case_of(plan, action.case), action.attempt, plan.runner)
            try:
                stored = await self._cluster.create_job(job)
            except ConflictError:
                existing = await self._cluster.get_job(metadata.namespace, name)
                if existing is None:
                    return
                stored = existing
            except InvalidError as error:
                await self._lose(plan, action.case, name, job_refused(error.message))
                return
            self._hold_job(stored, metadata.uid)

    async def _ensure_claim_template(self, plan: Plan) -> None:
        """What the pod claims its device with is there before the pod is."""
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
        attempt, job = action.attempt, action.attempt.job
        try:
            with self._trying(Wait.LOOK, plan, job):
                found = await self._look(attempt, plan, observed)
        except (ApiError, ForeignObjectError) as error:
            if not self._is_final(Wait.LOOK, plan, job):
                raise
            found = not_found_out(_words(error))
        if isinstance(found, ObservedPod):
            await self._read(action, plan, found)
        elif found:
            await self._lose(plan, attempt.case, job, found)

    async def _look(self, attempt: Attempt, plan: Plan, observed: Observed) -> ObservedPod | AttemptFailure | None:
        """The pod whose log is to be read, or why there is none; None where the store has just learned of either."""
        metadata = plan.metadata
        job, pod = observed.jobs.get(attempt.job), observed.pod(attempt.job)
        if job is None:
            existing = await self._cluster.get_job(metadata.namespace, attempt.job)
            if existing is None:
                return job_deleted(attempt.job)
            self._hold_job(existing, metadata.uid)
            return None
        if pod and pod.is_over:
            return pod
        # The watch on Jobs may be ahead of the one on pods, after an outage by as long as that lasted.
        pods = await self._pods_of(attempt, plan)
        if not pods:
            return pod_gone(job, observed.disruptions.get(attempt.job, ""))
        self._hold_pods(pods, observed.pods.get(attempt.job, ()))
        return pod if pod == reporting_pod(pods) else None

    async def _pods_of(self, attempt: Attempt, plan: Plan) -> list[ObservedPod]:
        """Those that the attempt's Job controls, whatever their labels are by now: anybody may change those."""
        bodies = await self._cluster.list_pods(plan.metadata.namespace, attempt.job)
        pods = [pod for pod in map(observe_pod, bodies) if pod.job == attempt.job]
        return [replace(pod, owner=plan.metadata.uid, case=attempt.case) for pod in pods]

    async def _read(self, action: Collect, plan: Plan, pod: ObservedPod) -> None:
        attempt = action.attempt
        case = case_of(plan, attempt.case, attempt.number)
        async with self._reading:
            log = await self._read_log(plan, attempt.job, pod)
            now = timestamp(self._clock())
            try:
                # Reading up to 8 MiB takes long enough to be noticed by the event loop.
                found = await asyncio.to_thread(outcome, case, pod, log, last=action.last, now=now)
                body = _to_store(found, plan, pod) if isinstance(found, Result) else None
            except Exception as error:
                logger.exception("%s: what its pod brought cannot be read", attempt.job)
                found, body = unreadable(error), None
            del log  # many MB, which the traceback of a refusal would hold
        if body is not None:
            await self._store_result(body, attempt, plan)
        elif isinstance(found, AttemptFailure):
            await self._lose(plan, attempt.case, attempt.job, found)

    async def _ask(self, action: Ask, plan: Plan) -> None:
        attempt, question = action.attempt, action.question
        words = await self._events.of(plan.metadata.namespace, question.about_uid)
        self.obstacles.meet(plan.metadata.uid, attempt.job, question.wait, words, self._clock())

    async def _confirm(self, action: Confirm, plan: Plan, observed: Observed) -> None:
        """The failure counts where the cluster shows the same Job and pod as the store; else the store learns."""
        attempt, metadata = action.attempt, plan.metadata
        known_job, known_pod = observed.jobs.get(attempt.job), observed.pod(attempt.job)
        body = await self._cluster.get_job(metadata.namespace, attempt.job)
        pods = await self._pods_of(attempt, plan)
        pod = reporting_pod(pods)
        if (observe_job(body) if body else None, pod) == (known_job, known_pod):
            await self._lose(plan, attempt.case, attempt.job, action.failure)
            return
        if body:
            self._hold_job(body, metadata.uid)
        else:
            self._store.remove(JOB.name, (metadata.namespace, attempt.job))
        self._hold_pods(pods, observed.pods.get(attempt.job, ()))

    async def _read_log(self, plan: Plan, job: str, pod: ObservedPod) -> str | None:
        """The log; None where there is none, or none can be had."""
        if pod.running is None:
            return None
        try:
            with self._trying(Wait.READ_LOG, plan, job):
                return await self._cluster.read_log(pod.key.namespace, pod.key.name)
        except NotFoundError:
            # So says a kubelet of a pod that it does not know yet, too.
            if not await self._cluster.list_pods(pod.key.namespace, job) or self._is_final(Wait.READ_LOG, plan, job):
                return None
            raise
        except ApiError:
            # The node may only be busy or restarting.
            if self._is_final(Wait.READ_LOG, plan, job):
                return None
            raise

    async def _store_result(self, body: Manifest, attempt: Attempt, plan: Plan) -> None:
        case, job, run_uid = attempt.case, attempt.job, plan.metadata.uid
        try:
            with self._trying(Wait.STORE_RESULT, plan, job):
                stored = await self._cluster.create_result(body)
        except (InvalidError, TooLargeError) as error:
            await self._lose(plan, case, job, result_refused(error.message))
        except ApiError as error:
            may_be_there = isinstance(error, ConflictError) and await self._may_be_there(plan, case)
            if not may_be_there and not self._is_final(Wait.STORE_RESULT, plan, job):
                raise
            await self._lose(plan, case, job, result_refused(error.message))
        else:
            self._stored.setdefault(run_uid, set()).add(stored["metadata"]["name"])
            self._hold_result(stored, run_uid)

    async def _may_be_there(self, plan: Plan, case: str) -> bool:
        """Whether something has the name of the case's result; where nothing has, a conflict was the server's own."""
        metadata = plan.metadata
        name = result_name(metadata.name, metadata.uid, case)
        return await self._cluster.get_result(metadata.namespace, name) is not None

    @contextmanager
    def _trying(self, wait: Wait, plan: Plan, job: str) -> Iterator[None]:
        """What is refused is counted, and forgotten once it is not."""
        run_uid = plan.metadata.uid
        try:
            yield
        except Exception as error:
            self.obstacles.meet(run_uid, job, wait, _words(error), self._clock())
            raise
        self.obstacles.overcome(run_uid, job, wait)

    def _is_final(self, wait: Wait, plan: Plan, job: str) -> bool:
        return self.obstacles.is_final(plan.metadata.uid, job, wait, self._clock())

    def forget(self, run_uid: str) -> None:
        """The run is gone."""
        for part in (self.losses, self._stored, self._deleted):
            part.pop(run_uid, None)
        self.obstacles.forget(run_uid)
        self.queues.forget(run_uid)

    def forget_all(self) -> None:
        """Another replica may have acted since: what was found out before does not count."""
        for part in (self.losses, self._stored, self._deleted):
            part.clear()
        self.obstacles = Obstacles()
        self.queues = QueueReports()

    async def _find_result(self, plan: Plan, case: str) -> bool:
        """Whether the case has a result in the cluster, whatever the store has heard; then the store knows it too."""
        metadata = plan.metadata
        name = result_name(metadata.name, metadata.uid, case)
        stored = await self._cluster.get_result(metadata.namespace, name)
        if stored is not None:
            self._hold_result(stored, metadata.uid)
        return stored is not None

    def _hold_job(self, body: Manifest, run_uid: str) -> None:
        job = observe_job(body)
        if job is None or not owned_by(body, run_uid):
            name = body["metadata"]["name"]
            raise ForeignObjectError(f"Job {name} exists and does not belong to this run: delete it")
        self._store.put(job, own=True)

    def _hold_pods(self, pods: Sequence[ObservedPod], known: Iterable[ObservedPod]) -> None:
        """Hold the pods that a Job has now in place of those that were known."""
        names = {pod.key.name for pod in pods}
        for pod in known:
            if pod.key.name not in names:
                self._store.remove(POD.name, name_of(pod))
        for pod in pods:
            self._store.put(pod, own=True)

    def _hold_result(self, body: Manifest, run_uid: str) -> None:
        name = body["metadata"]["name"]
        try:
            summary = observe_result(body)
        except ValueError as error:
            raise ForeignObjectError(f"BenchmarkResult {name} exists and cannot be read: delete it") from error
        if summary is None or summary.run_uid != run_uid:
            raise ForeignObjectError(f"BenchmarkResult {name} exists and does not belong to this run: delete it")
        self._store.put(summary, own=True)

    async def _lose(self, plan: Plan, case: str, job: str, loss: AttemptFailure) -> None:
        """The attempt is lost, unless its case has a result that nothing was heard of."""
        try:
            with self._trying(Wait.RESULT, plan, job):
                has_result = await self._find_result(plan, case)
        except ForeignObjectError as error:
            has_result, loss = False, replace(loss, message=f"{loss.message}. {error}")
        except ApiError as error:
            if not self._is_final(Wait.RESULT, plan, job):
                raise
            has_result, loss = False, not_found_out(_words(error))
        if not has_result:
            self.losses.setdefault(plan.metadata.uid, {})[job] = loss


def case_of(plan: Plan, name: str, attempt: int = 1) -> Case:
    """The planned case as the runner of that attempt is given it."""
    case = plan.case(name)
    return case.model_copy(update={"origin": case.origin.model_copy(update={"attempt": attempt})})


def _to_store(result: Result, plan: Plan, pod: ObservedPod) -> Manifest:
    """The BenchmarkResult as the API server is given it."""
    run, case = plan.run, result.case.name
    document = BenchmarkResult.of(
        result,
        ObjectMeta(
            name=result_name(run.metadata.name, run.metadata.uid, case),
            namespace=run.metadata.namespace,
            labels=identity_labels(run, case),
        ),
        [_judged(each) for each in evaluate(run.spec.expectations, result)],
        node=pod.node or None,
        pod=pod.key.name,
        image=pod.image or None,
    )
    body = document.model_dump(mode="json", by_alias=True, exclude_none=True)
    body["metadata"] = {key: body["metadata"][key] for key in ("name", "namespace", "labels")}
    if run.spec.run_policy.result_retention_policy == "Delete":
        body["metadata"]["ownerReferences"] = [owner_reference(run)]
    return body


def _words(error: Exception) -> str:
    """The API server's own, or ours."""
    if isinstance(error, ApiError):
        return error.message
    return str(error) if isinstance(error, ForeignObjectError) else f"{type(error).__name__}: {error}"


def _judged(outcome: ExpectationOutcome) -> JudgedExpectation:
    message = " ".join(outcome.sentence.split())[:MAXIMUM_MESSAGE]
    return JudgedExpectation(**dict(outcome.expectation), outcome=outcome.outcome, message=message)
