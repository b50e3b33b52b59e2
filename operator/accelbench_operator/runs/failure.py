"""Why did an attempt fail: reason, remedy, and whether another attempt can do better.

A variant's failure is no failure here: it is a result. What is here are attempts that ended without a whole result.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from accelbench.api.reasons import AttemptReason
from accelbench.document import on_one_line, timestamp
from accelbench_operator.runs.observed import ObservedJob, ObservedPod

INVALID_CASE_EXIT = 2
INTERNAL_ERROR_EXIT = 3
MAXIMUM_DETAIL = 2048
"""Characters of what a pod, a node or an API server said."""
DISRUPTION = "DisruptionTarget"
"""The condition that a pod gets which is drained, evicted or preempted."""


@dataclass(frozen=True)
class AttemptFailure:
    """An attempt that brought no result, in one word and in sentences that say what to do."""

    reason: AttemptReason
    message: str

    def __str__(self) -> str:
        """For a sentence."""
        return f"{self.reason}: {self.message}"


def _failure(reason: AttemptReason, detail: str) -> AttemptFailure:
    return AttemptFailure(reason, reason.after(on_one_line(detail)[:MAXIMUM_DETAIL].rstrip(". ")))


def start_deadline_exceeded(pending: str, waited: timedelta) -> AttemptFailure:
    """The pod did not start in time; waiting for the same again would help no one."""
    detail = f"the case's pod did not start within {waited.total_seconds():.0f} s. {pending}"
    return _failure(AttemptReason.START_DEADLINE_EXCEEDED, detail)


def node_lost(pod: ObservedPod, until: datetime) -> AttemptFailure:
    """The pod should have ended by its own deadline or by its deletion, and its node does not say that it did."""
    node = f"node {pod.node}" if pod.node else "its node"
    detail = f"pod {pod.key.name} should have ended before {timestamp(until)}, but {node} has not reported it"
    return _failure(AttemptReason.NODE_LOST, detail)


def job_deleted(name: str) -> AttemptFailure:
    """Somebody deleted the Job before its result was stored."""
    return _failure(AttemptReason.JOB_DELETED, f"Job {name} was deleted before its result was stored")


def pod_gone(job: ObservedJob, disruption: str = "") -> AttemptFailure:
    """The Job ended and its pod, with its log, is gone; `disruption` is why, where that was seen."""
    if disruption or DISRUPTION in job.failure:
        return _failure(AttemptReason.DISRUPTED, f"{disruption or job.failure.rstrip('. ')}; its log is gone too")
    detail = f" ({job.failure})" if job.failure else ""
    gone = f"the pod of Job {job.key.name} and its log were deleted before the result was stored{detail}"
    return _failure(AttemptReason.POD_LOST, gone)


def job_refused(message: str) -> AttemptFailure:
    """The API server refuses the Job."""
    return _failure(AttemptReason.JOB_REFUSED, message)


def not_found_out(message: str) -> AttemptFailure:
    """The API server does not say what became of it, or something of ours is replaced by somebody else's."""
    return _failure(AttemptReason.RESULT_LOST, f"cannot find out what became of it: {message}")


def unreadable(error: Exception) -> AttemptFailure:
    """The operator itself failed over what the pod brought: it would again."""
    detail = f"the operator cannot read what its pod brought: {type(error).__name__}: {error}"
    return _failure(AttemptReason.RUNNER_ERROR, detail)


def result_refused(message: str) -> AttemptFailure:
    """The API server takes no such result: the CRD is of another version than the runner, say."""
    return _failure(AttemptReason.RESULT_REFUSED, message)


def disruption_of(pod: ObservedPod) -> str:
    """Which pod had to go, and why."""
    where = f" on node {pod.node}" if pod.node else ""
    return f"pod {pod.key.name}{where}: {pod.disruption.rstrip('. ')}"


def interrupted(pod: ObservedPod) -> AttemptFailure:
    """The runner was told to end: the pod was drained, evicted, preempted or deleted."""
    if pod.disruption:
        return _failure(AttemptReason.DISRUPTED, disruption_of(pod))
    return _failure(AttemptReason.INTERRUPTED, f"pod {pod.key.name} was deleted while it measured")


def without_result(pod: ObservedPod, said: str, evidence: str) -> AttemptFailure:
    """What the end of a pod means that left no result; `said` is its headline's message, `evidence` its log's state."""
    where = f"kubectl logs {pod.key.name} -n {pod.key.namespace}"
    if pod.disruption:
        return interrupted(pod)
    if pod.exit_code == INVALID_CASE_EXIT:
        return _failure(AttemptReason.INVALID_CASE, said or "the runner refused the case")
    if pod.exit_code == INTERNAL_ERROR_EXIT:
        return _failure(AttemptReason.RUNNER_ERROR, f"{said or 'the runner failed'} ({where})")
    if pod.exit_code is None or pod.reason in {"StartError", "ContainerCannotRun"}:
        told = (pod.pod_reason, pod.pod_message) if pod.pod_reason else (pod.reason, pod.message)
        cause = ": ".join(part for part in told if part) or pod.waiting or "no reason given"
        return _failure(AttemptReason.NOT_STARTED, f"pod {pod.key.name} ended before its container ran: {cause}")
    detail = f"the runner ended with exit code {pod.exit_code} and left no complete result. {evidence} ({where})"
    return _failure(AttemptReason.RESULT_LOST, detail)
