"""What the operator asks of the cluster, by what it means: a method is a request, and a place to be killed at."""

from collections.abc import AsyncIterator, Callable
from typing import Protocol

from accelbench.cluster_api.async_client import Manifest
from accelbench.cluster_api.errors import ApiError, NotFoundError
from accelbench.cluster_api.kinds import CLAIM_TEMPLATE, EVENT, JOB, POD, RESULT, RUN, Kind
from accelbench.delivery.log import MAXIMUM_LOG_BYTES
from accelbench_operator.engine.api import KubernetesApi
from accelbench_operator.engine.election import NotLeadingError
from accelbench_operator.runs.pod_template import CONTAINER

KUEUE = "kueue.x-k8s.io"
EVENTS_AT_A_TIME = 200

READ_BYTES = 2 * MAXIMUM_LOG_BYTES
TAIL_LINES = 500
"""The runner's longest line is 8 KiB: these fit into `READ_BYTES`, and the result is among the last."""


NO_LOG = ("failed to try resolving symlinks in path ", "failed to open log file ", "unable to retrieve container logs ")
"""A kubelet that has lost a log says so in its place, and calls that a success (1.37)."""


class NoLogError(ApiError):
    """There is no log, in the kubelet's words."""


class Cluster(Protocol):
    """The requests that change or confirm something. `get_...` gives None for what is not there."""

    async def get_run(self, namespace: str, name: str) -> Manifest | None:
        """A BenchmarkRun."""

    async def put_run_status(self, run: Manifest) -> Manifest:
        """Write `run["status"]`; returns the run as stored, raises ConflictError where it has changed since."""

    async def delete_run(self, namespace: str, name: str, uid: str) -> None:
        """Delete a run and what it owns."""

    async def get_job(self, namespace: str, name: str) -> Manifest | None:
        """A Job."""

    async def create_job(self, job: Manifest) -> Manifest:
        """Create a Job; raises ConflictError where one of that name exists, InvalidError where it cannot be."""

    async def delete_job(self, namespace: str, name: str, uid: str) -> None:
        """Delete exactly that Job and its pods; nothing happens where it is gone."""

    async def get_claim_template(self, namespace: str, name: str) -> Manifest | None:
        """A ResourceClaimTemplate."""

    async def create_claim_template(self, template: Manifest) -> None:
        """Create one; raises ConflictError where one of that name exists, NotFoundError where the API has no such."""

    async def list_pods(self, namespace: str, job: str) -> list[Manifest]:
        """The pods of a Job."""

    async def list_workloads(self, namespace: str, job_uid: str) -> list[Manifest]:
        """The Workload that Kueue made of a Job, if it has; raises NotFoundError where the cluster has no Kueue."""

    async def list_local_queues(self, namespace: str) -> list[Manifest]:
        """Kueue's queues in a namespace; raises NotFoundError where the cluster has no Kueue."""

    async def get_result(self, namespace: str, name: str) -> Manifest | None:
        """A BenchmarkResult."""

    async def create_result(self, result: Manifest) -> Manifest:
        """Store a BenchmarkResult; raises ConflictError where one of that name exists."""

    async def delete_result(self, namespace: str, name: str, uid: str) -> None:
        """Delete exactly that BenchmarkResult; nothing happens where it is gone."""

    async def read_log(self, namespace: str, pod: str) -> str:
        """The log of the runner's container, its end where it is too long; raises ApiError where none can be had."""

    def list_events(self, namespace: str) -> AsyncIterator[Manifest]:
        """The Events of a namespace that warn, and those that tell of an image being pulled."""

    async def create_event(self, event: Manifest) -> None:
        """Post an Event; raises ConflictError where it was posted already."""


class KubernetesCluster:
    """The real one."""

    def __init__(self, api: KubernetesApi, leading: Callable[[], bool]) -> None:
        self._api = api
        self._leading = leading

    async def get_run(self, namespace: str, name: str) -> Manifest | None:
        """See `Cluster`."""
        return await self._get(RUN, namespace, name)

    async def put_run_status(self, run: Manifest) -> Manifest:
        """See `Cluster`."""
        metadata = run["metadata"]
        self._must_lead()
        return await self._api.replace(f"{RUN.path(metadata['namespace'])}/{metadata['name']}/status", run)

    async def delete_run(self, namespace: str, name: str, uid: str) -> None:
        """See `Cluster`."""
        await self._delete(RUN, namespace, name, uid)

    async def get_job(self, namespace: str, name: str) -> Manifest | None:
        """See `Cluster`."""
        return await self._get(JOB, namespace, name)

    async def create_job(self, job: Manifest) -> Manifest:
        """See `Cluster`."""
        self._must_lead()
        return await self._api.create(JOB.path(job["metadata"]["namespace"]), job)

    async def delete_job(self, namespace: str, name: str, uid: str) -> None:
        """See `Cluster`."""
        await self._delete(JOB, namespace, name, uid)

    async def get_claim_template(self, namespace: str, name: str) -> Manifest | None:
        """See `Cluster`."""
        return await self._get(CLAIM_TEMPLATE, namespace, name)

    async def create_claim_template(self, template: Manifest) -> None:
        """See `Cluster`."""
        self._must_lead()
        await self._api.create(CLAIM_TEMPLATE.path(template["metadata"]["namespace"]), template)

    async def list_pods(self, namespace: str, job: str) -> list[Manifest]:
        """See `Cluster`."""
        query = {"labelSelector": f"batch.kubernetes.io/job-name={job}"}
        pods: list[Manifest] = (await self._api.get(POD.path(namespace), query))["items"]
        return pods

    async def list_workloads(self, namespace: str, job_uid: str) -> list[Manifest]:
        """See `Cluster`."""
        return await self._list_of_kueue("workloads", namespace, {"labelSelector": f"{KUEUE}/job-uid={job_uid}"})

    async def list_local_queues(self, namespace: str) -> list[Manifest]:
        """See `Cluster`."""
        return await self._list_of_kueue("localqueues", namespace, {})

    async def get_result(self, namespace: str, name: str) -> Manifest | None:
        """See `Cluster`."""
        return await self._get(RESULT, namespace, name)

    async def create_result(self, result: Manifest) -> Manifest:
        """See `Cluster`."""
        self._must_lead()
        return await self._api.create(RESULT.path(result["metadata"]["namespace"]), result)

    async def delete_result(self, namespace: str, name: str, uid: str) -> None:
        """See `Cluster`."""
        await self._delete(RESULT, namespace, name, uid)

    async def read_log(self, namespace: str, pod: str) -> str:
        """See `Cluster`."""
        path = f"{POD.path(namespace)}/{pod}/log"
        query = {"container": CONTAINER, "limitBytes": READ_BYTES}
        log = await self._api.text(path, query)
        if log.startswith(NO_LOG) and "\n" not in log:
            raise NoLogError(200, log)
        is_whole = len(log.encode()) < READ_BYTES
        return log if is_whole else await self._api.text(path, {**query, "tailLines": TAIL_LINES})

    async def list_events(self, namespace: str) -> AsyncIterator[Manifest]:
        """See `Cluster`."""
        for selector in ("type=Warning", "reason=Pulling"):
            query = {"fieldSelector": selector, "limit": EVENTS_AT_A_TIME}
            async for page in self._api.pages(EVENT.path(namespace), query):
                for event in page["items"]:
                    yield event

    async def create_event(self, event: Manifest) -> None:
        """See `Cluster`."""
        self._must_lead()
        await self._api.create(EVENT.path(event["metadata"]["namespace"]), event)

    async def _list_of_kueue(self, plural: str, namespace: str, query: dict[str, str]) -> list[Manifest]:
        """In the version that this cluster's Kueue prefers; what is read here is the same in all."""
        group = await self._api.get(f"/apis/{KUEUE}")
        path = f"/apis/{group['preferredVersion']['groupVersion']}/namespaces/{namespace}/{plural}"
        items: list[Manifest] = (await self._api.get(path, query))["items"]
        return items

    def _must_lead(self) -> None:
        """Asked right before each write: this process may have stood still since it decided."""
        if not self._leading():
            raise NotLeadingError("another replica leads")

    async def _get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
        try:
            return await self._api.get(kind.path(namespace, name))
        except NotFoundError:
            return None

    async def _delete(self, kind: Kind, namespace: str, name: str, uid: str) -> None:
        self._must_lead()
        try:
            await self._api.delete(kind.path(namespace, name), uid)
        except NotFoundError:
            return
