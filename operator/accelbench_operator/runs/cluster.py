"""Send the requests that runs need to the API server; send no write unless this replica leads."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

from accelbench.cluster_api.async_client import Manifest
from accelbench.cluster_api.errors import ApiError, NotFoundError
from accelbench.cluster_api.kinds import CLAIM_TEMPLATE, EVENT, JOB, POD, RESULT, RUN, Kind
from accelbench.delivery.log import (
    MAXIMUM_LINE_BYTES,
    MAXIMUM_LOG_BYTES,
    DocumentKind,
    LogDocuments,
    LogReader,
)
from accelbench_operator.engine.api import KubernetesApi
from accelbench_operator.engine.election import NotLeadingError
from accelbench_operator.runs.pod_template import CONTAINER

KUEUE = "kueue.x-k8s.io"
JOB_UID_LABEL = f"{KUEUE}/job-uid"
KUEUE_OBJECTS_PER_PAGE = 100
EVENTS_PER_PAGE = 200

MAXIMUM_READ_BYTES = 2 * MAXIMUM_LOG_BYTES
"""Maximum size of a log that is read as a whole: twice what a runner writes."""
TAIL_LINES = 500
"""Lines to read of a longer log. The runner's longest line is 8 KiB, so these fit into `MAXIMUM_READ_BYTES`; the result
is among them."""
READ_KINDS: frozenset[DocumentKind] = frozenset({"checkpoint", "result"})
"""Documents that the operator reads from a log; those of launches are for people."""
MAXIMUM_DOCUMENTS = 128
"""Maximum number of documents of a log that are verified, the newest: twice the checkpoints of the longest case."""
NO_LOG = (
    b"failed to try resolving symlinks in path ",
    b"failed to open log file ",
    b"unable to retrieve container logs ",
)
"""Beginnings of the line that a kubelet (1.37) returns with status 200 instead of a log that it has lost."""


class NoLogError(ApiError):
    """Report that the kubelet has no log, with its message."""


class Cluster:
    """Send requests. `get_...` returns None for a missing object; writes raise NotLeadingError without the Lease."""

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

    async def delete_run(self, namespace: str, name: str, uid: str, version: str | None = None) -> None:
        """Delete the run with that UID, and its objects.

        With `version`, raise ConflictError if the run has changed since.
        """
        await self._delete(RUN, namespace, name, uid, version)

    async def get_job(self, namespace: str, name: str) -> Manifest | None:
        """Return the Job; None if it does not exist."""
        return await self._get(JOB, namespace, name)

    async def create_job(self, job: Manifest) -> Manifest:
        """Create a Job; raise ConflictError if its name is taken."""
        return await self._create(JOB, job)

    async def preview(self, kind: Kind, body: Manifest) -> Manifest:
        """Return the object that the API server would store for `body`, by a dry run under a generated name.

        Under its own name, the request would be refused: an object with that name exists.
        """
        metadata = {key: value for key, value in body["metadata"].items() if key != "name"}
        # The API server shortens this prefix, so that the generated name has at most 63 characters.
        metadata["generateName"] = body["metadata"]["name"]
        self._must_lead()
        return await self._api.create(kind.path(metadata["namespace"]), {**body, "metadata": metadata}, dry_run=True)

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

    async def get_pod(self, namespace: str, name: str, uid: str) -> Manifest | None:
        """Return the pod with that name and UID; None if it does not exist."""
        # Select by name: the operator may only list pods, and a user may have removed the labels of this pod.
        query = {"fieldSelector": f"metadata.name={name}"}
        pods: list[Manifest] = (await self._api.get(POD.path(namespace), query))["items"]
        return next((pod for pod in pods if pod["metadata"]["uid"] == uid), None)

    def list_workloads(self, namespace: str) -> AsyncIterator[Manifest]:
        """Yield Kueue's Workloads of a namespace's Jobs; raise NotFoundError if Kueue is not installed."""
        return self._list_kueue_objects("workloads", namespace, {"labelSelector": JOB_UID_LABEL})

    def list_local_queues(self, namespace: str) -> AsyncIterator[Manifest]:
        """Yield Kueue's LocalQueues in a namespace; raise NotFoundError if Kueue is not installed."""
        return self._list_kueue_objects("localqueues", namespace, {})

    async def get_result(self, namespace: str, name: str) -> Manifest | None:
        """Return the BenchmarkResult; None if it does not exist."""
        return await self._get(RESULT, namespace, name)

    async def create_result(self, result: Manifest) -> Manifest:
        """Create a BenchmarkResult; raise ConflictError if its name is taken."""
        return await self._create(RESULT, result)

    async def delete_result(self, namespace: str, name: str, uid: str) -> None:
        """Delete the BenchmarkResult with that UID, if it exists."""
        await self._delete(RESULT, namespace, name, uid)

    async def read_log(self, namespace: str, pod: str) -> LogDocuments:
        """Read the documents in the log of the runner's container; of a long log, read only the end."""
        path = POD.path(namespace, pod, "log")
        query = {"container": CONTAINER, "limitBytes": MAXIMUM_READ_BYTES}
        documents, size = await self._read_documents(path, query)
        if size >= MAXIMUM_READ_BYTES:
            # The result is at the end of the log, which the limit has cut off.
            documents, _ = await self._read_documents(path, {**query, "tailLines": TAIL_LINES})
        return documents

    async def _read_documents(self, path: str, query: dict[str, Any]) -> tuple[LogDocuments, int]:
        """Return the documents in a log, and the number of bytes read; raise NoLogError if the log is lost."""
        reader = LogReader(READ_KINDS, MAXIMUM_DOCUMENTS)
        beginning, size = b"", 0
        async for piece in self._api.pieces(path, query):
            beginning = beginning or piece[:MAXIMUM_LINE_BYTES]
            size += len(piece)
            # In a thread: a log may have millions of lines, and thousands of documents to inflate.
            await asyncio.to_thread(reader.feed, piece)
        # A kubelet reports a lost log in one line, with status 200.
        is_whole_log = len(beginning) == size
        if is_whole_log and beginning.startswith(NO_LOG) and b"\n" not in beginning:
            raise NoLogError(200, beginning.decode(errors="replace"))
        return await asyncio.to_thread(reader.finish), size

    async def list_events(self, namespace: str) -> AsyncIterator[Manifest]:
        """Yield the namespace's Events that can explain a wait: the warnings, and those about image pulls."""
        for selector in ("type=Warning", "reason=Pulling"):  # one request cannot select both
            query = {"fieldSelector": selector, "limit": EVENTS_PER_PAGE}
            async for page in self._api.pages(EVENT.path(namespace), query):
                for event in page["items"]:
                    yield event

    async def create_event(self, event: Manifest) -> None:
        """Create an Event; raise ConflictError if it was created before."""
        await self._create(EVENT, event)

    async def _list_kueue_objects(self, plural: str, namespace: str, query: dict[str, str]) -> AsyncIterator[Manifest]:
        """Yield Kueue's objects of one kind; raise NotFoundError if Kueue is not installed."""
        # Any version will do: all have the fields that the operator reads.
        group = await self._api.get(f"/apis/{KUEUE}")
        kind = Kind(plural, plural, group["preferredVersion"]["groupVersion"])
        async for page in self._api.pages(kind.path(namespace), {**query, "limit": KUEUE_OBJECTS_PER_PAGE}):
            for item in page["items"]:
                yield item

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

    async def _delete(self, kind: Kind, namespace: str, name: str, uid: str, version: str | None = None) -> None:
        """Delete the object with that name and UID, if it exists; with `version`, only if it has not changed since."""
        self._must_lead()
        with suppress(NotFoundError):
            await self._api.delete(kind.path(namespace, name), uid, version)
