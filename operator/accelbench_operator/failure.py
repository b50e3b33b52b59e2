"""Why did an attempt fail: reason, remedy, and whether another attempt can do better.

A variant's failure is no failure here: it is a result. What is here are attempts that ended without a whole result.
"""

from dataclasses import dataclass
from datetime import timedelta

from accelbench_operator.observed import ObservedJob, ObservedPod

INVALID_CASE_EXIT = 2
INTERNAL_ERROR_EXIT = 3

START_DEADLINE_EXCEEDED = "StartDeadlineExceeded"
SUSPENDED = "Suspended"


@dataclass(frozen=True)
class Loss:
    """An attempt that brought no result, in one word and one sentence that says what to do."""

    reason: str
    message: str
    infrastructure: bool
    """Nobody's fault that has to do with the case: worth another attempt."""

    def __str__(self) -> str:
        """As it stands in the status: `Reason: message`."""
        return f"{self.reason}: {self.message}"


def reason_of(failure: str | None) -> str:
    """The reason word of a failure as it stands in the status."""
    return (failure or "").partition(":")[0]


def detail_of(failure: str | None) -> str:
    """The sentence of a failure as it stands in the status."""
    return (failure or "").partition(": ")[2]


def start_deadline_exceeded(pending: str, waited: timedelta) -> Loss:
    """The pod did not start in time; waiting for the same again would help no one."""
    message = f"the case's pod did not start within {waited.total_seconds():.0f} s. {pending}"
    return Loss(START_DEADLINE_EXCEEDED, message, infrastructure=False)


def node_lost(pod: ObservedPod) -> Loss:
    """The pod should have ended by its own deadline or by its deletion, and its node does not say that it did."""
    return Loss(
        "NodeLost",
        f"pod {pod.key.name} should have ended and its node does not say so: see whether the node is Ready",
        infrastructure=True,
    )


def job_deleted(name: str) -> Loss:
    """Somebody deleted the Job before its result was stored."""
    return Loss("JobDeleted", f"Job {name} was deleted before its result was stored", infrastructure=True)


def pod_gone(job: ObservedJob) -> Loss:
    """The Job ended and its pod, with its log, is gone."""
    detail = f" ({job.failure})" if job.failure else ""
    return Loss(
        "PodLost",
        f"the pod of Job {job.key.name} was deleted with its log before its result was stored{detail}",
        infrastructure=True,
    )


def job_refused(message: str) -> Loss:
    """The API server takes no such Job."""
    return Loss("JobRefused", f"{message}. See spec.podTemplate and the profile", infrastructure=False)


def result_refused(message: str) -> Loss:
    """The API server takes no such result: the CRD is of another version than the runner, say."""
    return Loss("ResultRefused", f"{message}. Do CRDs, operator and runner image match?", infrastructure=False)


def interrupted(pod: ObservedPod) -> Loss:
    """The runner was told to end: the pod was drained, evicted, preempted or deleted."""
    if pod.disruption:
        return Loss("Disrupted", f"{pod.disruption}; priorities and budgets decide about that", infrastructure=True)
    return Loss("Interrupted", f"pod {pod.key.name} was deleted while it measured", infrastructure=True)


def without_result(pod: ObservedPod, said: str, evidence: str) -> Loss:
    """What the end of a pod means that left no result; `said` is its headline's message, `evidence` its log's state."""
    where = f"kubectl logs {pod.key.name} -n {pod.key.namespace}"
    if pod.disruption:
        return interrupted(pod)
    if pod.exit_code == INVALID_CASE_EXIT:
        return Loss("InvalidCase", f"{said or 'the runner refused the case'}; correct the spec", infrastructure=False)
    if pod.exit_code == INTERNAL_ERROR_EXIT:
        message = f"{said or 'the runner failed'}; this is a defect of accelbench, please report it: {where}"
        return Loss("RunnerError", message, infrastructure=False)
    if pod.exit_code is None or pod.reason in {"StartError", "ContainerCannotRun"}:
        cause = pod.pod_reason or pod.reason or pod.waiting or "no reason given"
        return Loss("NotStarted", f"pod {pod.key.name} ended before its container ran: {cause}", infrastructure=True)
    message = f"the runner ended with exit code {pod.exit_code} and left no whole result. {evidence}; {where}"
    return Loss("ResultLost", message, infrastructure=True)
