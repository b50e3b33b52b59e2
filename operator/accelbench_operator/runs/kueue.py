"""Why does a queue hold a Job: in the words of Kueue's Workload, or because there is no such queue.

A Job that Kueue holds is suspended and tells nothing of why. So its Workload is asked for: not at once, as a queue with
room admits it within a second, and then less and less often. Nothing here watches.
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
LONGEST_PAUSE = timedelta(minutes=5)

Manifest = Mapping[str, Any]


@dataclass(frozen=True)
class QueueReport:
    """What was found out about a Job that its queue held, at a moment."""

    held: datetime | None
    """Since when it was, as `ObservedJob.held`: a Job that is held anew has another reason."""
    asked: datetime
    words: str
    """A sentence without its full stop."""
    in_queue: bool = True
    """Whether anybody will ever admit it: in a queue it waits for as long as that takes."""


class QueueReports:
    """Those of all runs, by run UID and Job name; held in memory, as they are found out again."""

    def __init__(self) -> None:
        self._of: dict[str, dict[str, QueueReport]] = {}

    def of(self, run_uid: str) -> Mapping[str, QueueReport]:
        """Those of a run, by its Jobs' names."""
        return self._of.get(run_uid, {})

    def note(self, job: ObservedJob, report: QueueReport) -> None:
        """Replace what was known of the Job."""
        self._of.setdefault(job.owner, {})[job.key.name] = report

    def forget(self, run_uid: str) -> None:
        """The run is gone."""
        self._of.pop(run_uid, None)


def next_look(since: datetime, known: QueueReport | None, deadline: datetime | None) -> datetime:
    """When to ask (again) about a Job that is held since then: at its deadline too, which is told with the reason."""
    if known is None:
        look = since + FIRST_LOOK
    else:
        look = known.asked + min(max(known.asked - since, FIRST_LOOK), LONGEST_PAUSE)
    if deadline and (known is None or known.asked < deadline):
        return min(look, deadline)
    return look


def explain_held(job: ObservedJob, known: QueueReport | None) -> str:
    """Why the Job waits; before anything was asked, where."""
    if known:
        return f"{known.words}."
    return f"Job {job.key.name} waits in {_queue(job)}."


async def ask(cluster: Cluster, job: ObservedJob, now: datetime) -> QueueReport:
    """Find out why the Job is held; whatever refuses to tell has its words in the report."""
    try:
        workload = next(iter(await cluster.list_workloads(job.key.namespace, job.key.uid)), None)
        there: list[str] | None = None
        if workload is None or _is_inadmissible(workload):
            there = [queue["metadata"]["name"] for queue in await cluster.list_local_queues(job.key.namespace)]
    except NotFoundError:
        words = (
            f"Job {job.key.name} waits in {_queue(job)}, and this cluster has no Kueue to admit it: install Kueue, or "
            f"apply the run under another name without the label {labels.QUEUE}"
        )
        return QueueReport(job.held, now, words, in_queue=False)
    except ApiError as error:
        words = (
            f"Job {job.key.name} waits in {_queue(job)}; kubectl get workloads says why. The operator cannot read the "
            "Workload"
        )
        return QueueReport(job.held, now, f"{words}: {error.message.rstrip('.')}")
    if there is not None and job.queue not in there:
        return QueueReport(job.held, now, _missing(job, there), in_queue=False)
    if workload and (end := _end(workload)):
        return QueueReport(job.held, now, f"Job {job.key.name} stays suspended: {end}", in_queue=False)
    said = _why(workload) if workload else "Kueue has created no Workload for it: check that its controller runs"
    return QueueReport(job.held, now, f"Job {job.key.name} waits in {_queue(job)}: {said}")


def _queue(job: ObservedJob) -> str:
    return f"queue {job.queue}" if job.queue else "no queue"


def _missing(job: ObservedJob, there: Sequence[str]) -> str:
    if not job.queue:
        return (
            f"Job {job.key.name} is suspended and names no queue: apply the run under another name with the label "
            f"{labels.QUEUE}"
        )
    instead = nearest(job.queue, there) if there else "the namespace has none"
    return (
        f"LocalQueue {job.queue} does not exist in namespace {job.key.namespace} ({instead}): have it created, or "
        "apply the run under another name with a queue that exists"
    )


def _conditions(workload: Manifest) -> dict[str, Manifest]:
    return {each["type"]: each for each in (workload.get("status") or {}).get("conditions") or ()}


def _is_inadmissible(workload: Manifest) -> bool:
    """For want of a queue, say: then its words name the queue, and not those that are there."""
    return _conditions(workload).get("QuotaReserved", {}).get("reason") == "Inadmissible"


def _end(workload: Manifest) -> str:
    """Why no queue will ever admit it; empty where one may."""
    conditions = _conditions(workload)
    finished = conditions.get("Finished", {})
    if finished.get("status") == "True":
        return f"Kueue has given up on its Workload ({finished['reason']}: {finished['message']})"
    if workload["spec"].get("active", True):
        return ""
    said = conditions.get("Evicted", {}).get("message") or "it has spec.active: false"
    name = workload["metadata"]["name"]
    return f"its Workload {name} is deactivated ({said}); set its spec.active to true to queue it again"


def _why(workload: Manifest) -> str:
    """Kueue's own words: that it took the Job back, and what it waits for now."""
    conditions = _conditions(workload)
    evicted, reserved = conditions.get("Evicted", {}), conditions.get("QuotaReserved", {})
    words = []
    if evicted.get("status") == "True":
        words.append(f"Kueue took it back ({evicted['reason']}): {evicted['message']}")
    if reserved.get("status") == "False" and reserved["message"] != evicted.get("message"):
        words.append(reserved["message"])
    if reserved.get("status") == "True":
        words += [
            _check(check) for check in workload["status"].get("admissionChecks") or () if check["state"] != "Ready"
        ]
    said = "; ".join(word.rstrip(". ") for word in words)
    return said or "Kueue has said nothing about it yet; with StrictFIFO it only looks at the first in the queue"


def _check(check: Manifest) -> str:
    said = f": {check['message']}" if check.get("message") else ""
    return f"admission check {check['name']} is {check['state']}{said}"
