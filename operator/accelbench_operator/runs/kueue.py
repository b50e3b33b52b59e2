"""Find out why a queue holds a Job: from Kueue's Workload, or because there is no such queue.

A Job that Kueue holds is suspended and gives no reason. Its Workload has one. It is read a few seconds later, because a
queue with room admits the Job within a second, and then less and less often. There is no watch of Workloads.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from accelbench.api import labels
from accelbench.cluster_api.errors import ApiError, NotFoundError
from accelbench.problem import nearest
from accelbench_operator.runs.cluster import Cluster
from accelbench_operator.runs.observed import ObservedJob

FIRST_LOOK = timedelta(seconds=5)
"""Time from a Job's suspension to the first read of its Workload, and minimum pause between two reads."""
LONGEST_PAUSE = timedelta(minutes=5)

Manifest = Mapping[str, Any]


@dataclass(frozen=True)
class QueueReport:
    """Describe why a queue held a Job at one moment."""

    suspended_since: datetime | None
    """As `ObservedJob.suspended_since`: a Job that is held anew has another reason."""
    read_at: datetime
    """When the Workload was read."""
    message: str
    """Sentence without its full stop."""
    in_queue: bool = True
    """False if nothing will ever admit the Job; in a queue it waits without limit."""


def next_look(since: datetime, report: QueueReport | None, deadline: datetime | None) -> datetime:
    """Return when to read the Workload next: at the deadline at the latest, and after that ever more rarely.

    The pause is as long as the Job was held at the last read, from `FIRST_LOOK` to `LONGEST_PAUSE`.
    """
    if report is None:
        read_at = since + FIRST_LOOK
    else:
        read_at = report.read_at + min(max(report.read_at - since, FIRST_LOOK), LONGEST_PAUSE)
    if deadline and (report is None or report.read_at < deadline):
        return min(read_at, deadline)
    return read_at


def explain_held(job: ObservedJob, report: QueueReport | None) -> str:
    """Return why the Job waits, or before the first report in which queue."""
    if report:
        return f"{report.message}."
    return f"Job {job.key.name} waits in {_queue_name(job)}."


async def read_queue(cluster: Cluster, job: ObservedJob, now: datetime) -> QueueReport:
    """Read why the Job is held; if the API server refuses to list, report its message."""
    try:
        workload = next(iter(await cluster.list_workloads(job.key.namespace, job.key.uid)), None)
        queues: list[str] | None = None
        if workload is None or _is_inadmissible(workload):
            queues = [queue["metadata"]["name"] for queue in await cluster.list_local_queues(job.key.namespace)]
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
    if queues is not None and job.queue not in queues:
        return QueueReport(job.suspended_since, now, _missing_queue(job, queues), in_queue=False)
    if workload and (why := _why_never_admitted(workload)):
        return QueueReport(job.suspended_since, now, f"Job {job.key.name} stays suspended: {why}", in_queue=False)
    reason = (
        _why_waiting(workload) if workload else "Kueue has created no Workload for it: check that its controller runs"
    )
    return QueueReport(job.suspended_since, now, f"Job {job.key.name} waits in {_queue_name(job)}: {reason}")


def _queue_name(job: ObservedJob) -> str:
    return f"queue {job.queue}" if job.queue else "no queue"


def _missing_queue(job: ObservedJob, queues: Sequence[str]) -> str:
    """Explain that the Job names no queue, or one that does not exist among `queues`."""
    if not job.queue:
        return (
            f"Job {job.key.name} is suspended and names no queue: apply the run under another name with the label "
            f"{labels.QUEUE}"
        )
    suggestion = nearest(job.queue, queues) if queues else "the namespace has none"
    return (
        f"LocalQueue {job.queue} does not exist in namespace {job.key.namespace} ({suggestion}): have it created, or "
        "apply the run under another name with a queue that exists"
    )


def _conditions(workload: Manifest) -> dict[str, Manifest]:
    """Return the Workload's conditions by type."""
    return {condition["type"]: condition for condition in (workload.get("status") or {}).get("conditions") or ()}


def _is_inadmissible(workload: Manifest) -> bool:
    """Return True if Kueue cannot admit the Workload as it is, for example because its queue does not exist."""
    return _conditions(workload).get("QuotaReserved", {}).get("reason") == "Inadmissible"


def _why_never_admitted(workload: Manifest) -> str:
    """Return why no queue will ever admit the Workload; empty if one may."""
    conditions = _conditions(workload)
    finished = conditions.get("Finished", {})
    if finished.get("status") == "True":
        return f"Kueue has given up on its Workload ({finished['reason']}: {finished['message']})"
    if workload["spec"].get("active", True):
        return ""
    reason = conditions.get("Evicted", {}).get("message") or "it has spec.active: false"
    name = workload["metadata"]["name"]
    return f"its Workload {name} is deactivated ({reason}); set its spec.active to true to queue it again"


def _why_waiting(workload: Manifest) -> str:
    """Return what Kueue reports of the Workload: its eviction, its lack of quota, and its pending admission checks."""
    conditions = _conditions(workload)
    evicted, reserved = conditions.get("Evicted", {}), conditions.get("QuotaReserved", {})
    parts = []
    if evicted.get("status") == "True":
        parts.append(f"Kueue took it back ({evicted['reason']}): {evicted['message']}")
    if reserved.get("status") == "False" and reserved["message"] != evicted.get("message"):
        parts.append(reserved["message"])
    if reserved.get("status") == "True":
        checks = workload["status"].get("admissionChecks") or ()
        parts += [_describe_check(check) for check in checks if check["state"] != "Ready"]
    reason = "; ".join(part.rstrip(". ") for part in parts)
    return reason or "Kueue has given no reason yet; with StrictFIFO it considers only the first Workload of a queue"


def _describe_check(check: Manifest) -> str:
    """Return name, state and message of an admission check."""
    message = f": {check['message']}" if check.get("message") else ""
    return f"admission check {check['name']} is {check['state']}{message}"
