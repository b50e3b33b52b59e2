"""Make the requests of runs to the API server: each method is one request, and no write is sent without the Lease."""

from collections.abc import AsyncIterator, Callable

from accelbench.cluster_api.async_client import Manifest
from accelbench.cluster_api.errors import ApiError, NotFoundError
from accelbench.cluster_api.kinds import CLAIM_TEMPLATE, EVENT, JOB, POD, RESULT, RUN, Kind
from accelbench.delivery.log import MAXIMUM_LOG_BYTES
from accelbench_operator.engine.api import KubernetesApi
from accelbench_operator.engine.election import NotLeadingError
from accelbench_operator.runs.pod_template import CONTAINER

KUEUE = "kueue.x-k8s.io"
EVENTS_A_PAGE = 200

READ_BYTES = 2 * MAXIMUM_LOG_BYTES
TAIL_LINES = 500
"""The runner's longest line is 8 KiB, so these fit into `READ_BYTES`; the result is among the last."""
NO_LOG = ("failed to try resolving symlinks in path ", "failed to open log file ", "unable to retrieve container logs ")
"""A kubelet that has lost a log returns such a line in its place, with status 200 (1.37)."""


class NoLogError(ApiError):
    """Report that there is no log; the message is the kubelet's."""


class Cluster:
    """Make requests. `get_...` returns None for a missing object; a write without the Lease raises NotLeadingError."""

    def __init__(self, api: KubernetesApi, leading: Callable[[], bool]) -> None:
        self._api = api
        self._leading = leading

    async def get_run(self, namespace: str, name: str) -> Manifest | None:
        """Read a BenchmarkRun."""
        return await self._get(RUN, namespace, name)

    async def put_run_status(self, run: Manifest) -> Manifest:
        """Write `run["status"]` and return the run as stored; raise ConflictError if it has changed since."""
        metadata = run["metadata"]
        self._must_lead()
        return await self._api.replace(RUN.path(metadata["namespace"], metadata["name"], "status"), run)

    async def delete_run(self, namespace: str, name: str, uid: str) -> None:
        """Delete a run and what it owns."""
        await self._delete(RUN, namespace, name, uid)

    async def get_job(self, namespace: str, name: str) -> Manifest | None:
        """Read a Job."""
        return await self._get(JOB, namespace, name)

    async def create_job(self, job: Manifest) -> Manifest:
        """Create a Job; raise ConflictError if one of that name exists, InvalidError if it is not accepted."""
        return await self._create(JOB, job)

    async def delete_job(self, namespace: str, name: str, uid: str) -> None:
        """Delete exactly that Job and its pods, if it exists."""
        await self._delete(JOB, namespace, name, uid)

    async def get_claim_template(self, namespace: str, name: str) -> Manifest | None:
        """Read a ResourceClaimTemplate."""
        return await self._get(CLAIM_TEMPLATE, namespace, name)

    async def create_claim_template(self, template: Manifest) -> None:
        """Create a ResourceClaimTemplate; raise ConflictError if it exists, NotFoundError if the kind is not served."""
        await self._create(CLAIM_TEMPLATE, template)

    async def list_pods(self, namespace: str, job: str) -> list[Manifest]:
        """List the pods of a Job."""
        query = {"labelSelector": f"batch.kubernetes.io/job-name={job}"}
        pods: list[Manifest] = (await self._api.get(POD.path(namespace), query))["items"]
        return pods

    async def list_workloads(self, namespace: str, job_uid: str) -> list[Manifest]:
        """List the Workloads that Kueue made of a Job, at most one; raise NotFoundError without Kueue."""
        return await self._list_of_kueue("workloads", namespace, {"labelSelector": f"{KUEUE}/job-uid={job_uid}"})

    async def list_local_queues(self, namespace: str) -> list[Manifest]:
        """List Kueue's queues in a namespace; raise NotFoundError without Kueue."""
        return await self._list_of_kueue("localqueues", namespace, {})

    async def get_result(self, namespace: str, name: str) -> Manifest | None:
        """Read a BenchmarkResult."""
        return await self._get(RESULT, namespace, name)

    async def create_result(self, result: Manifest) -> Manifest:
        """Store a BenchmarkResult; raise ConflictError if one of that name exists."""
        return await self._create(RESULT, result)

    async def delete_result(self, namespace: str, name: str, uid: str) -> None:
        """Delete exactly that BenchmarkResult, if it exists."""
        await self._delete(RESULT, namespace, name, uid)

    async def read_log(self, namespace: str, pod: str) -> str:
        """Read the log of the runner's container, or its end if it is too long; raise ApiError if there is none."""
        path = POD.path(namespace, pod, "log")
        query = {"container": CONTAINER, "limitBytes": READ_BYTES}
        log = await self._api.text(path, query)
        if log.startswith(NO_LOG) and "\n" not in log:
            raise NoLogError(200, log)
        is_whole = len(log.encode()) < READ_BYTES
        return log if is_whole else await self._api.text(path, {**query, "tailLines": TAIL_LINES})

    async def list_events(self, namespace: str) -> AsyncIterator[Manifest]:
        """List the Events of a namespace that are warnings or report the pull of an image."""
        for selector in ("type=Warning", "reason=Pulling"):
            query = {"fieldSelector": selector, "limit": EVENTS_A_PAGE}
            async for page in self._api.pages(EVENT.path(namespace), query):
                for event in page["items"]:
                    yield event

    async def create_event(self, event: Manifest) -> None:
        """Post an Event; raise ConflictError if it was posted before."""
        await self._create(EVENT, event)

    async def _list_of_kueue(self, plural: str, namespace: str, query: dict[str, str]) -> list[Manifest]:
        # Use the version that this cluster's Kueue prefers; the fields that are read are the same in all versions.
        group = await self._api.get(f"/apis/{KUEUE}")
        kind = Kind(plural, plural, group["preferredVersion"]["groupVersion"])
        items: list[Manifest] = (await self._api.get(kind.path(namespace), query))["items"]
        return items

    def _must_lead(self) -> None:
        """Check right before each write: this process may have been paused since it decided."""
        if not self._leading():
            raise NotLeadingError("another replica leads")

    async def _get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
        try:
            return await self._api.get(kind.path(namespace, name))
        except NotFoundError:
            return None

    async def _create(self, kind: Kind, body: Manifest) -> Manifest:
        self._must_lead()
        return await self._api.create(kind.path(body["metadata"]["namespace"]), body)

    async def _delete(self, kind: Kind, namespace: str, name: str, uid: str) -> None:
        self._must_lead()
        try:
            await self._api.delete(kind.path(namespace, name), uid)
        except NotFoundError:
            return
