"""Does what was decided. Every step can be repeated, and the process may be killed before and after each of them.

A result is asked for live before a Job is created and before one is deleted. An object that exists already counts as
ours only where its owner's UID is the run's. Deletions name the UID that they mean.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime

from accelbench.api.case import Case
from accelbench.api.metadata import ObjectMeta
from accelbench.api.result import MAXIMUM_MESSAGE, BenchmarkResult, JudgedExpectation, Result
from accelbench.api.run import Attempt
from accelbench.plan.names import attempt_name, result_name
from accelbench.verdict.expectations import ExpectationOutcome, evaluate
from accelbench_operator.accept import Plan
from accelbench_operator.attempts import Observed
from accelbench_operator.claim import NotServedError, build_claim_template
from accelbench_operator.cluster import Cluster
from accelbench_operator.collect import outcome
from accelbench_operator.decide import Action, Collect, Confirm, CreateJob, DeleteJob
from accelbench_operator.failure import AttemptFailure, job_deleted, job_refused, pod_gone, result_refused
from accelbench_operator.job import build_job, identity_labels
from accelbench_operator.kubernetes_api import (
    ApiError,
    ConflictError,
    InvalidError,
    Manifest,
    NotFoundError,
    TooLargeError,
)
from accelbench_operator.observed import ObservedPod, age, observe_job, observe_pod, observe_result, owned_by
from accelbench_operator.obstacles import Obstacles, Step
from accelbench_operator.owner import owner_reference
from accelbench_operator.status import timestamp
from accelbench_operator.store import Store

LOGS_AT_A_TIME = 2
"""Up to 16 MiB each, as text and as bytes."""


class ForeignObjectError(Exception):
    """An object of a name that only ours can have belongs to someone else, or is none that we can read."""


class Applier:
    """Applies decisions to one cluster, and notes in the store what it wrote. `losses` is by Job name."""

    def __init__(self, cluster: Cluster, store: Store, clock: Callable[[], datetime]) -> None:
        self._cluster = cluster
        self._store = store
        self._clock = clock
        self.losses: dict[str, dict[str, AttemptFailure]] = {}
        """By run UID, then by Job name: why looking for a result was in vain; found out again after a restart."""
        self.obstacles = Obstacles()
        self._reading = asyncio.Semaphore(LOGS_AT_A_TIME)

    async def apply(self, action: Action, plan: Plan, observed: Observed) -> None:
        """Do one thing; raises ApiError where it has to be tried again later."""
        if isinstance(action, CreateJob):
            await self._create(action, plan)
        elif isinstance(action, Collect):
            await self._collect(action, plan, observed)
        elif isinstance(action, Confirm):
            await self._confirm(action, plan, observed)

    async def find_missing(self, plan: Plan, attempts: Iterable[Attempt], observed: Observed) -> bool:
        """Whether the cluster has a result that nothing was heard of, of a case that is said to have one.

        Asked before a run finishes, as that is final: a replica may lead before its watches have told it everything.
        """
        unheard = [each.case for each in attempts if each.finished and not each.reason]
        found = [await self._find_result(plan, case) for case in unheard if case not in observed.results]
        return any(found)

    async def delete_job(self, action: DeleteJob, namespace: str) -> None:
        """Delete a Job; where it has brought a result, only if that is stored indeed."""
        if action.result is not None and await self._cluster.get_result(namespace, action.result) is None:
            self._store.remove("BenchmarkResult", (namespace, action.result))
            return
        try:
            await self._cluster.delete_job(namespace, action.name, action.uid)
        except ConflictError:
            # A Job of that name and another UID: not the one that was meant.
            return

    async def _create(self, action: CreateJob, plan: Plan) -> None:
        if await self._find_result(plan, action.case):
            return
        metadata = plan.run.metadata
        name = attempt_name(metadata.name, metadata.uid, action.case, action.attempt)
        with self._trying(Step.CREATE_JOB, plan, name):
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
                self._lose(plan, name, job_refused(error.message))
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
            if existing is not None and not owned_by(existing, plan.run.metadata.uid):
                raise ForeignObjectError(
                    f"ResourceClaimTemplate {metadata['name']} exists and is not this run's: delete it"
                ) from None

    async def _collect(self, action: Collect, plan: Plan, observed: Observed) -> None:
        attempt, metadata = action.attempt, plan.run.metadata
        if await self._find_result(plan, attempt.case):
            return
        job, pod = observed.jobs.get(attempt.job), observed.pods.get(attempt.job)
        if job is None:
            existing = await self._cluster.get_job(metadata.namespace, attempt.job)
            if existing is None:
                self._lose(plan, attempt.job, job_deleted(attempt.job))
            else:
                self._hold_job(existing, metadata.uid)
        elif pod is None:
            # The watch on Jobs may be ahead of the one on pods, after an outage by as long as that lasted.
            pods = await self._cluster.list_pods(metadata.namespace, attempt.job)
            for body in pods:
                self._store.put("Pod", observe_pod(body), own=True)
            if not pods:
                self._lose(plan, attempt.job, pod_gone(job))
        else:
            case = case_of(plan, attempt.case, attempt.number)
            async with self._reading:
                log = await self._read_log(plan, attempt.job, pod)
                now = timestamp(self._clock())
                # Reading up to 8 MiB takes long enough to be noticed by the event loop.
                found = await asyncio.to_thread(outcome, case, pod, log, last=action.last, now=now)
            if isinstance(found, AttemptFailure):
                self._lose(plan, attempt.job, found)
            else:
                await self._store_result(found, plan, attempt.job)

    async def _confirm(self, action: Confirm, plan: Plan, observed: Observed) -> None:
        """The failure counts where the cluster shows the same Job and pod as the store; else the store learns."""
        attempt, metadata = action.attempt, plan.run.metadata
        known_job, known_pod = observed.jobs.get(attempt.job), observed.pods.get(attempt.job)
        body = await self._cluster.get_job(metadata.namespace, attempt.job)
        pods = [observe_pod(pod) for pod in await self._cluster.list_pods(metadata.namespace, attempt.job)]
        newest = max(pods, key=age, default=None)
        if (observe_job(body) if body else None, newest) == (known_job, known_pod):
            self._lose(plan, attempt.job, action.failure)
            return
        if body:
            self._hold_job(body, metadata.uid)
        else:
            self._store.remove("Job", (metadata.namespace, attempt.job))
        if known_pod and known_pod.key.name not in {pod.key.name for pod in pods}:
            self._store.remove("Pod", (metadata.namespace, known_pod.key.name))
        for pod in pods:
            self._store.put("Pod", pod, own=True)

    async def _read_log(self, plan: Plan, job: str, pod: ObservedPod) -> str | None:
        """The log; None where there is none, or none can be had."""
        if pod.running is None:
            return None
        try:
            with self._trying(Step.READ_LOG, plan, job):
                return await self._cluster.read_log(pod.key.namespace, pod.key.name)
        except NotFoundError:
            # So says a kubelet of a pod that it does not know yet, too.
            if not await self._cluster.list_pods(pod.key.namespace, job) or self._is_final(Step.READ_LOG, plan, job):
                return None
            raise
        except ApiError:
            # The node may only be busy or restarting.
            if self._is_final(Step.READ_LOG, plan, job):
                return None
            raise

    async def _store_result(self, result: Result, plan: Plan, job: str) -> None:
        run = plan.run
        document = BenchmarkResult.of(
            result,
            ObjectMeta(
                name=result_name(run.metadata.name, run.metadata.uid, result.case.name),
                namespace=run.metadata.namespace,
                labels=identity_labels(run, result.case.name),
            ),
            [_judged(each) for each in evaluate(run.spec.expectations, result)],
        )
        body = document.model_dump(mode="json", by_alias=True, exclude_none=True)
        body["metadata"] = {key: body["metadata"][key] for key in ("name", "namespace", "labels")}
        if run.spec.run_policy.result_retention_policy == "Delete":
            body["metadata"]["ownerReferences"] = [owner_reference(run)]
        try:
            with self._trying(Step.STORE_RESULT, plan, job):
                stored = await self._cluster.create_result(body)
        except ConflictError:
            await self._find_result(plan, result.case.name)
        except (InvalidError, TooLargeError) as error:
            self._lose(plan, job, result_refused(error.message))
        except ApiError as error:
            if not self._is_final(Step.STORE_RESULT, plan, job):
                raise
            self._lose(plan, job, result_refused(error.message))
        else:
            self._hold_result(stored, run.metadata.uid)

    @contextmanager
    def _trying(self, step: Step, plan: Plan, job: str) -> Iterator[None]:
        """What is refused is counted, and forgotten once it is not."""
        run_uid = plan.run.metadata.uid
        try:
            yield
        except Exception as error:
            words = error.message if isinstance(error, ApiError) else f"{type(error).__name__}: {error}"
            self.obstacles.meet(run_uid, job, step, words, self._clock())
            raise
        self.obstacles.overcome(run_uid, job, step)

    def _is_final(self, step: Step, plan: Plan, job: str) -> bool:
        return self.obstacles.is_final(plan.run.metadata.uid, job, step, self._clock())

    def forget(self, run_uid: str) -> None:
        """The run is gone."""
        self.losses.pop(run_uid, None)
        self.obstacles.forget(run_uid)

    def forget_all(self) -> None:
        """Another replica may have acted since: what was found out before does not count."""
        self.losses.clear()
        self.obstacles = Obstacles()

    async def _find_result(self, plan: Plan, case: str) -> bool:
        """Whether the case has a result in the cluster, whatever the store has heard; then the store knows it too."""
        metadata = plan.run.metadata
        name = result_name(metadata.name, metadata.uid, case)
        stored = await self._cluster.get_result(metadata.namespace, name)
        if stored is not None:
            self._hold_result(stored, metadata.uid)
        return stored is not None

    def _hold_job(self, body: Manifest, run_uid: str) -> None:
        job = observe_job(body)
        if job is None or not owned_by(body, run_uid):
            raise ForeignObjectError(f"Job {body['metadata']['name']} exists and is not this run's: delete it")
        self._store.put("Job", job, own=True)

    def _hold_result(self, body: Manifest, run_uid: str) -> None:
        name = body["metadata"]["name"]
        try:
            summary = observe_result(body)
        except ValueError as error:
            raise ForeignObjectError(f"BenchmarkResult {name} exists and cannot be read: delete it") from error
        if summary is None or summary.run_uid != run_uid:
            raise ForeignObjectError(f"BenchmarkResult {name} exists and is not this run's: delete it")
        self._store.put("BenchmarkResult", summary, own=True)

    def _lose(self, plan: Plan, job: str, loss: AttemptFailure) -> None:
        self.losses.setdefault(plan.run.metadata.uid, {})[job] = loss


def case_of(plan: Plan, name: str, attempt: int = 1) -> Case:
    """The planned case as the runner of that attempt is given it."""
    case = next(case for case in plan.cases if case.name == name)
    return case.model_copy(update={"origin": case.origin.model_copy(update={"attempt": attempt})})


def _judged(outcome: ExpectationOutcome) -> JudgedExpectation:
    message = " ".join(outcome.sentence.split())[:MAXIMUM_MESSAGE]
    return JudgedExpectation(**dict(outcome.expectation), outcome=outcome.outcome, message=message)
