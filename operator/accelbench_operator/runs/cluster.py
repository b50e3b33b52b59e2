"""Make the requests of runs to the API server: each method is one request, and no write is sent without the Lease."""

from collections.abc import AsyncIterator, Callable
from contextlib import suppress

from accelbench.cluster_api.async_client import Manifest
from accelbench.cluster_api.errors import ApiError, NotFoundError
from accelbench.cluster_api.kinds import CLAIM_TEMPLATE, EVENT, JOB, POD, RESULT, RUN, Kind
from accelbench.delivery.log import MAXIMUM_LOG_BYTES
from accelbench_operator.engine.api import KubernetesApi
from accelbench_operator.engine.election import NotLeadingError
from accelbench_operator.runs.pod_template import CONTAINER

KUEUE = "kueue.x-k8s.io"
EVENTS_PER_PAGE = 200

MAXIMUM_READ_BYTES = 2 * MAXIMUM_LOG_BYTES
"""Maximum size of a log that is read as a whole: twice what a runner writes."""
TAIL_LINES = 500
"""Lines to read of a longer log. The runner's longest line is 8 KiB, so these fit into `MAXIMUM_READ_BYTES`; the result
is among them."""
NO_LOG = ("failed to try resolving symlinks in path ", "failed to open log file ", "unable to retrieve container logs ")
"""Beginnings of the line that a kubelet (1.37) returns with status 200 instead of a log that it has lost."""


class NoLogError(ApiError):
    """Report that the kubelet has no log, with its message."""


class Cluster:
    """Make requests. `get_...` returns None for a missing object; writes raise NotLeadingError without the Lease."""

    def __init__(self, api: KubernetesApi, leading: Callable[[], bool]) -> None:
        self._api = api
        self._leading = leading

    async def get_run(self, namespace: str, name: str) -> Manifest | None:
        """Return the BenchmarkRun; None if it does not exist."""
        return await self._get(RUN, namespace, name)

    async def put_run_status(self, run: Manifest) -> Manifest:
        """Replace the run's status, and return the stored run.

        Raise ConflictError if the run has changed.
        """
        metadata = run["metadata"]
        self._must_lead()
        return await self._api.replace(RUN.path(metadata["namespace"], metadata["name"], "status"), run)

    async def delete_run(self, namespace: str, name: str, uid: str) -> None:
        """Delete the run with that UID, and its objects."""
        await self._delete(RUN, namespace, name, uid)

    async def get_job(self, namespace: str, name: str) -> Manifest | None:
        """Return the Job; None if it does not exist."""
        return await self._get(JOB, namespace, name)

    async def create_job(self, job: Manifest) -> Manifest:
        """Create a Job; raise ConflictError if its name is taken."""
        return await self._create(JOB, job)

    async def delete_job(self, namespace: str, name: str, uid: str) -> None:
        """Delete the Job with that UID, and its pods."""
        await self._delete(JOB, namespace, name, uid)

    async def get_claim_template(self, namespace: str, name: str) -> Manifest | None:
        """Return the ResourceClaimTemplate; None if it does not exist."""
        return await self._get(CLAIM_TEMPLATE, namespace, name)

    async def create_claim_template(self, template: Manifest) -> None:
        """Create a ResourceClaimTemplate.

        Raise NotFoundError if the cluster does not serve the kind.
        """
        await self._create(CLAIM_TEMPLATE, template)

    async def list_pods(self, namespace: str, job: str) -> list[Manifest]:
        """List the pods whose label names the Job."""
        query = {"labelSelector": f"batch.kubernetes.io/job-name={job}"}
        pods: list[Manifest] = (await self._api.get(POD.path(namespace), query))["items"]
        return pods

    async def list_workloads(self, namespace: str, job_uid: str) -> list[Manifest]:
        """List Kueue's Workloads of a Job; raise NotFoundError without Kueue."""
        return await self._list_kueue_objects("workloads", namespace, {"labelSelector": f"{KUEUE}/job-uid={job_uid}"})

    async def list_local_queues(self, namespace: str) -> list[Manifest]:
        """List Kueue's LocalQueues in a namespace; raise NotFoundError without Kueue."""
        return await self._list_kueue_objects("localqueues", namespace, {})

    async def get_result(self, namespace: str, name: str) -> Manifest | None:
        """Return the BenchmarkResult; None if it does not exist."""
        return await self._get(RESULT, namespace, name)

    async def create_result(self, result: Manifest) -> Manifest:
        """Create a BenchmarkResult; raise ConflictError if its name is taken."""
        return await self._create(RESULT, result)

    async def delete_result(self, namespace: str, name: str, uid: str) -> None:
        """Delete the BenchmarkResult with that UID, if it exists."""
        await self._delete(RESULT, namespace, name, uid)

    async def read_log(self, namespace: str, pod: str) -> str:
        """Read the log of the runner's container, or the end of a long log."""
        path = POD.path(namespace, pod, "log")
        query = {"container": CONTAINER, "limitBytes": MAXIMUM_READ_BYTES}
        log = await self._api.text(path, query)
        # A kubelet reports a lost log in one line, with status 200.
        if log.startswith(NO_LOG) and "\n" not in log:
            raise NoLogError(200, log)
        is_whole = len(log.encode()) < MAXIMUM_READ_BYTES
        return log if is_whole else await self._api.text(path, {**query, "tailLines": TAIL_LINES})

    async def list_events(self, namespace: str) -> AsyncIterator[Manifest]:
        """Yield the namespace's warnings, and its Events about image pulls."""
        for selector in ("type=Warning", "reason=Pulling"):  # one request cannot select both
            query = {"fieldSelector": selector, "limit": EVENTS_PER_PAGE}
            async for page in self._api.pages(EVENT.path(namespace), query):
                for event in page["items"]:
                    yield event

    async def create_event(self, event: Manifest) -> None:
        """Create an Event; raise ConflictError if it was created before."""
        await self._create(EVENT, event)

    async def _list_kueue_objects(self, plural: str, namespace: str, query: dict[str, str]) -> list[Manifest]:
        """List Kueue's objects of one kind; raise NotFoundError without Kueue."""
        # Any version will do: all have the fields that the operator reads.
        group = await self._api.get(f"/apis/{KUEUE}")
        kind = Kind(plural, plural, group["preferredVersion"]["groupVersion"])
        items: list[Manifest] = (await self._api.get(kind.path(namespace), query))["items"]
        return items

    def _must_lead(self) -> None:
        """Raise NotLeadingError unless this replica leads.

        Call this right before each write: another replica may lead by now.
        """
        if not self._leading():
            raise NotLeadingError("another replica leads")

    async def _get(self, kind: Kind, namespace: str, name: str) -> Manifest | None:
        """Read an object; return None if it does not exist."""
        try:
            return await self._api.get(kind.path(namespace, name))
        except NotFoundError:
            return None

    async def _create(self, kind: Kind, body: Manifest) -> Manifest:
        """Create an object, and return what the API server stored."""
        self._must_lead()
        return await self._api.create(kind.path(body["metadata"]["namespace"]), body)

    async def _delete(self, kind: Kind, namespace: str, name: str, uid: str) -> None:
        """Delete the object with that name and UID, if it exists."""
        self._must_lead()
        with suppress(NotFoundError):
            await self._api.delete(kind.path(namespace, name), uid)
