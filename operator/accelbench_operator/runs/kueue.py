"""Find out why a Job stays suspended, from Kueue's Workload and LocalQueues.

A Job that waits in a queue of Kueue is suspended, and only its Workload gives the reason. The Workload is first read
some seconds after the suspension, because a queue with free quota admits the Job within a second; later reads are ever
further apart. There is no watch of Workloads.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from accelbench.api import labels
from accelbench.cluster_api.errors import ApiError, NotFoundError
from accelbench.problem import suggest_name
from accelbench_operator.runs.cluster import Cluster
from accelbench_operator.runs.observed import ObservedJob

SHORTEST_PAUSE = timedelta(seconds=5)
"""Time from a Job's suspension to the first read of its Workload, and minimum pause between two reads."""
LONGEST_PAUSE = timedelta(minutes=5)

Manifest = Mapping[str, Any]


@dataclass(frozen=True)
class QueueReport:
    """Describe why a Job was suspended when its Workload was read."""

    suspended_since: datetime | None
    """As `ObservedJob.suspended_since`; the report does not apply to a later suspension."""
    read_at: datetime
    """When the Workload was read."""
    message: str
    """Sentence without its full stop."""
    in_queue: bool = True
    """False if no queue will ever admit the Job; True if it may wait without limit."""


def next_read_time(since: datetime, report: QueueReport | None, deadline: datetime | None) -> datetime:
    """Return when to read the Workload again.

    The pause grows with the time since the suspension.
    """
    if report is None:
        read_at = since + SHORTEST_PAUSE
    else:
        suspended_time = report.read_at - since
        pause = min(max(suspended_time, SHORTEST_PAUSE), LONGEST_PAUSE)
        read_at = report.read_at + pause
    # At the deadline, the reason has to be up to date.
    if deadline and (report is None or report.read_at < deadline):
        return min(read_at, deadline)
    return read_at


def explain_suspended(job: ObservedJob, report: QueueReport | None) -> str:
    """Return a sentence with the reason why the Job waits."""
    if report:
        return f"{report.message}."
    return f"Job {job.key.name} waits in {_queue_name(job)}."


async def read_queue(cluster: Cluster, job: ObservedJob, now: datetime) -> QueueReport:
    """Read from Kueue why the Job is suspended."""
    try:
        workloads = await cluster.list_workloads(job.key.namespace, job.key.uid)
        workload = workloads[0] if workloads else None
        queue_names: list[str] | None = None
        if workload is None or _is_inadmissible(workload):
            # The Job's queue may not exist.
            queues = await cluster.list_local_queues(job.key.namespace)
            queue_names = [queue["metadata"]["name"] for queue in queues]
    except NotFoundError:
        message = (
            f"Job {job.key.name} waits in {_queue_name(job)}, and this cluster has no Kueue to admit it: install "
            f"Kueue, or apply the run under another name without the label {labels.QUEUE}"
        )
        return QueueReport(job.suspended_since, now, message, in_queue=False)
    except ApiError as error:
        message = (
            f"Job {job.key.name} waits in {_queue_name(job)}; kubectl get workloads says why. The operator cannot "
            "read the Workload"
        )
        return QueueReport(job.suspended_since, now, f"{message}: {error.message.rstrip('.')}")
    if queue_names is not None and job.queue not in queue_names:
        return QueueReport(job.suspended_since, now, _explain_missing_queue(job, queue_names), in_queue=False)
    if workload is None:
        reason = "Kueue has created no Workload for it: check that its controller runs"
    elif final_reason := _why_never_admitted(workload):
        message = f"Job {job.key.name} stays suspended: {final_reason}"
        return QueueReport(job.suspended_since, now, message, in_queue=False)
    else:
        reason = _why_not_admitted_yet(workload)
    return QueueReport(job.suspended_since, now, f"Job {job.key.name} waits in {_queue_name(job)}: {reason}")


def _queue_name(job: ObservedJob) -> str:
    """Return `queue NAME` or `no queue`, for a message."""
    return f"queue {job.queue}" if job.queue else "no queue"


def _explain_missing_queue(job: ObservedJob, queue_names: Sequence[str]) -> str:
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
    """Return why Kueue has not admitted the Workload yet."""
    conditions = _conditions(workload)
    eviction, reservation = conditions.get("Evicted", {}), conditions.get("QuotaReserved", {})
    reasons = []
    if eviction.get("status") == "True":
        reasons.append(f"Kueue took it back ({eviction['reason']}): {eviction['message']}")
    # Kueue repeats the message of an eviction in this condition.
    if reservation.get("status") == "False" and reservation["message"] != eviction.get("message"):
        reasons.append(reservation["message"])
    if reservation.get("status") == "True":
        checks = workload["status"].get("admissionChecks") or ()
        reasons += [_describe_check(check) for check in checks if check["state"] != "Ready"]
    answer = "; ".join(reason.rstrip(". ") for reason in reasons)
    return answer or "Kueue has given no reason yet; with StrictFIFO it considers only the first Workload of a queue"


def _describe_check(check: Manifest) -> str:
    message = f": {check['message']}" if check.get("message") else ""
    return f"admission check {check['name']} is {check['state']}{message}"
