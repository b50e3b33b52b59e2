"""Find out why a Job stays suspended, from Kueue's Workload and LocalQueues.

A Job that waits in a queue of Kueue is suspended, and only its Workload gives the reason. The Workload is first read
some seconds after the suspension, because a queue with free quota admits the Job within a second; later reads are ever
further apart. There is no watch of Workloads.
"""

import re
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, NamedTuple

from accelbench.api import labels
from accelbench.cluster_api.errors import ApiError, NotFoundError
from accelbench.cluster_api.kinds import JOB
from accelbench.document import shorten
from accelbench.problem import suggest_name
from accelbench_operator.engine.kinds import controller_uid
from accelbench_operator.runs.cluster import Cluster
from accelbench_operator.runs.namespace_cache import NamespaceCache
from accelbench_operator.runs.observed import MAXIMUM_TEXT, ObservedJob

SHORTEST_PAUSE = timedelta(seconds=5)
"""Time from a Job's suspension to the first read of its Workload, and minimum pause between two reads."""
LONGEST_PAUSE = timedelta(minutes=5)
"""Maximum pause between two reads."""

Manifest = Mapping[str, Any]


class QueueAdvice(Enum):
    """Define remedies for messages of Kueue: a pattern, and the remedy. The first pattern that matches counts.

    {cluster_queue} stands for the ClusterQueue, {queue} for the LocalQueue.
    """

    RESOURCE = (
        "unavailable in ClusterQueue",
        "Have the coveredResources of {cluster_queue} name that resource, with a quota, or use another queue",
    )
    TOO_LARGE = (
        "> maximum capacity",
        "{cluster_queue} never has that much: have its quota raised, ask for less, or use another queue",
    )
    NAMESPACE = (
        "doesn't match ClusterQueue selector",
        "Have the namespaceSelector of {cluster_queue} admit this namespace, or use another queue",
    )
    NO_CLUSTER_QUEUE = (
        "ClusterQueue .*(doesn't exist|not found)",
        "Have {cluster_queue} created, or have LocalQueue {queue} name another one",
    )
    STOPPED = (
        "is inactive|is stopped",
        (
            "Somebody has stopped it, or something that it refers to is missing: kubectl describe localqueue {queue}, "
            "and kubectl describe clusterqueue for {cluster_queue}, say which"
        ),
    )
    TAINT = ("untolerated taint", "Add a toleration to the profile or to spec.podTemplate, or use another queue")
    AFFINITY = (
        "doesn't match node affinity",
        "Check the node selection of the profile and of spec.podTemplate, or use another queue",
    )
    NOT_READY = (
        "PodsReadyTimeout",
        (
            "Kueue waits only so long for a pod to start, and a first pull of the image takes minutes: have "
            "waitForPodsReady.timeout in Kueue's configuration raised"
        ),
    )
    PREEMPTED = (
        "Preempted",
        (
            f"The case begins anew once {{cluster_queue}} has room; the label {labels.QUEUE_PRIORITY} on a run gives "
            "its cases a higher priority"
        ),
    )
    FULL = ("insufficient unused quota", "Wait until others in {cluster_queue} end, or have its quota raised")

    def __init__(self, pattern: str, remedy: str) -> None:
        self.pattern = pattern
        self.remedy = remedy


@dataclass(frozen=True)
class QueueReport:
    """Describe why a Job was suspended when its Workload was read."""

    suspended_since: datetime | None
    """`ObservedJob.suspended_since` of the suspension that the report is about."""
    read_at: datetime
    """When the Workload was read."""
    message: str
    """Sentence without its full stop."""
    in_queue: bool = True
    """False if no queue will ever admit the Job; True if a queue still may."""


def next_read_time(since: datetime, report: QueueReport | None, deadline: datetime | None) -> datetime:
    """Return when to read the Workload of a suspended Job again.

    The pause between two reads grows with the time that has passed since the suspension at `since`.
    """
    if report is None:
        read_at = since + SHORTEST_PAUSE
    else:
        suspended_time = report.read_at - since
        pause = min(max(suspended_time, SHORTEST_PAUSE), LONGEST_PAUSE)
        read_at = report.read_at + pause
    # One read at the deadline, so that the failure has the latest reason.
    if deadline and (report is None or report.read_at < deadline):
        return min(read_at, deadline)
    return read_at


def explain_suspended(job: ObservedJob, report: QueueReport | None) -> str:
    """Return a sentence with the reason why the Job is suspended; without a report, name its queue only."""
    if report:
        return f"{report.message}."
    return f"Job {job.key.name} waits in {_queue_name(job)}."


class Queues:
    """Find out why queues hold Jobs, with one list of Workloads for all Jobs of a namespace."""

    def __init__(
        self, cluster: Cluster, clock: Callable[[], datetime], find_uids: Callable[[str], Container[str]]
    ) -> None:
        """Read Workloads from `cluster`; keep only those of Jobs whose UIDs `find_uids` returns for a namespace."""
        self._cluster = cluster
        self._clock = clock
        self._find_uids = find_uids
        self._workloads: NamespaceCache[Mapping[str, _Workload]] = NamespaceCache(self._read_workloads, clock)
        self._queues: NamespaceCache[Mapping[str, str]] = NamespaceCache(self._read_queues, clock)

    async def report(self, job: ObservedJob) -> QueueReport:
        """Return why the Job is suspended, from its Workload and the LocalQueues of its namespace."""
        namespace, since, now = job.key.namespace, job.suspended_since, self._clock()
        try:
            workload = (await self._workloads.get(namespace)).get(job.key.uid)
            queues = await self._queues.get(namespace)
        except NotFoundError:
            message = (
                f"Job {job.key.name} waits in {_queue_name(job)}, and this cluster has no Kueue to admit it: install "
                f"Kueue, or apply the run under another name without the label {labels.QUEUE}"
            )
            return QueueReport(since, now, message, in_queue=False)
        except ApiError as error:
            message = (
                f"Job {job.key.name} waits in {_queue_name(job)}; kubectl get workloads says why. The operator cannot "
                "read the Workload"
            )
            return QueueReport(since, now, f"{message}: {error.message.rstrip('.')}")
        # If the LocalQueue does not exist, Kueue creates no Workload, or calls the Workload inadmissible.
        is_not_admissible = workload is None or workload.is_inadmissible
        if job.queue not in queues and is_not_admissible:
            return QueueReport(since, now, _explain_missing_queue(job, tuple(queues)), in_queue=False)
        if workload is None:
            reason = (
                "Kueue has created no Workload for it: check that its controller runs and manages batch/job, and that "
                f"the WorkloadPriorityClass exists if the run has the label {labels.QUEUE_PRIORITY}"
            )
        elif workload.why_never_admitted:
            message = f"Job {job.key.name} stays suspended: {workload.why_never_admitted}"
            return QueueReport(since, now, message, in_queue=False)
        else:
            reason = workload.why_not_admitted_yet
            remedy = _remedy(reason, job.queue, queues.get(job.queue, ""))
            reason = f"{reason}. {remedy}" if remedy else reason
        return QueueReport(since, now, f"Job {job.key.name} waits in {_queue_name(job)}: {reason}")

    async def _read_workloads(self, namespace: str) -> Mapping[str, "_Workload"]:
        """Return the Workloads of a namespace's Jobs, by the Job's UID."""
        uids = self._find_uids(namespace)
        workloads: dict[str, _Workload] = {}
        async for workload in self._cluster.list_workloads(namespace):
            # Read the UID from the controller, which Kueue sets to the Job, because users can set any label.
            uid = controller_uid(workload, JOB)
            if uid in uids:
                workloads[uid] = _Workload(
                    is_inadmissible=_is_inadmissible(workload),
                    why_never_admitted=shorten(_why_never_admitted(workload), MAXIMUM_TEXT),
                    why_not_admitted_yet=shorten(_why_not_admitted_yet(workload), MAXIMUM_TEXT),
                )
        return workloads

    async def _read_queues(self, namespace: str) -> Mapping[str, str]:
        """Return the names of a namespace's LocalQueues, each with the name of its ClusterQueue."""
        return {
            queue["metadata"]["name"]: (queue.get("spec") or {}).get("clusterQueue", "")
            async for queue in self._cluster.list_local_queues(namespace)
        }


class _Workload(NamedTuple):
    """Summarize Kueue's Workload of a Job."""

    is_inadmissible: bool
    why_never_admitted: str
    """Empty if Kueue still may admit it."""
    why_not_admitted_yet: str


def _queue_name(job: ObservedJob) -> str:
    """Return `queue NAME`, or `no queue` if the Job names none, for a message."""
    return f"queue {job.queue}" if job.queue else "no queue"


def _remedy(reason: str, queue: str, cluster_queue: str) -> str:
    """Return what to do about the reason why Kueue has not admitted a Workload; empty if nothing is known."""
    for advice in QueueAdvice:
        if re.search(advice.pattern, reason):
            shown = f"ClusterQueue {cluster_queue}" if cluster_queue else f"the ClusterQueue of {queue}"
            return advice.remedy.format(queue=queue, cluster_queue=shown)
    return ""


def _explain_missing_queue(job: ObservedJob, queue_names: Sequence[str]) -> str:
    """Return a message about a suspended Job whose LocalQueue is not among `queue_names`, or that names none."""
    if not job.queue:
        return (
            f"Job {job.key.name} is suspended and names no queue: apply the run under another name with the label "
            f"{labels.QUEUE}"
        )
    suggestion = suggest_name(job.queue, queue_names) if queue_names else "the namespace has none"
    return (
        f"LocalQueue {job.queue} does not exist in namespace {job.key.namespace} ({suggestion}): have it created, or "
        "apply the run under another name with a queue that exists"
    )


def _conditions(workload: Manifest) -> dict[str, Manifest]:
    """Return the conditions of a Workload by type."""
    return {condition["type"]: condition for condition in (workload.get("status") or {}).get("conditions") or ()}


def _is_inadmissible(workload: Manifest) -> bool:
    """Return True if Kueue reports that it cannot admit the Workload."""
    return _conditions(workload).get("QuotaReserved", {}).get("reason") == "Inadmissible"


def _why_never_admitted(workload: Manifest) -> str:
    """Return why Kueue will never admit the Workload; empty if Kueue still may."""
    conditions = _conditions(workload)
    finished = conditions.get("Finished", {})
    if finished.get("status") == "True":
        return f"Kueue has given up on its Workload ({finished['reason']}: {finished['message']})"
    if workload["spec"].get("active", True):
        return ""
    reason = conditions.get("Evicted", {}).get("message") or "it has spec.active: false"
    name = workload["metadata"]["name"]
    return f"its Workload {name} is deactivated ({reason}); set its spec.active to true to queue it again"


def _why_not_admitted_yet(workload: Manifest) -> str:
    """Return why Kueue has not admitted the Workload yet: an eviction, a lack of quota, or its admission checks."""
    conditions = _conditions(workload)
    eviction, reservation = conditions.get("Evicted", {}), conditions.get("QuotaReserved", {})
    reasons = []
    if eviction.get("status") == "True":
        reasons.append(f"Kueue took it back ({eviction['reason']}): {eviction['message']}")
    # After an eviction, Kueue repeats the message of the condition Evicted in the condition QuotaReserved.
    if reservation.get("status") == "False" and reservation["message"] != eviction.get("message"):
        reasons.append(reservation["message"])
    if reservation.get("status") == "True":
        checks = workload["status"].get("admissionChecks") or ()
        reasons += [_describe_check(check) for check in checks if check["state"] != "Ready"]
    answer = "; ".join(reason.rstrip(". ") for reason in reasons)
    return answer or "Kueue has given no reason yet; with StrictFIFO it considers only the first Workload of a queue"


def _describe_check(check: Manifest) -> str:
    """Return the name, state and message of an admission check of a Workload."""
    message = f": {check['message']}" if check.get("message") else ""
    return f"admission check {check['name']} is {check['state']}{message}"
