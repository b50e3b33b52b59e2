"""Describe why an attempt failed: the reason, the remedy, and whether another attempt may succeed.

An attempt fails if it ends without a complete result. A variant that fails is part of a result, and fails no attempt.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from accelbench.api.reasons import AttemptReason
from accelbench.document import on_one_line, timestamp
from accelbench_operator.runs.observed import ObservedJob, ObservedPod

INVALID_CASE_EXIT = 2
INTERNAL_ERROR_EXIT = 3
MAXIMUM_DETAIL = 2048
"""Maximum number of characters of a message that comes from a pod, a node or an API server."""
DISRUPTION = "DisruptionTarget"
"""The condition of a pod that is drained, evicted or preempted."""


@dataclass(frozen=True)
class AttemptFailure:
    """Hold the reason why an attempt has no complete result, and sentences with details and a remedy."""

    reason: AttemptReason
    message: str

    def __str__(self) -> str:
        """Return `Reason: message`."""
        return f"{self.reason}: {self.message}"


def _failure(reason: AttemptReason, detail: str) -> AttemptFailure:
    """Return a failure whose message has the detail and the reason's remedy."""
    return AttemptFailure(reason, reason.explain(on_one_line(detail)[:MAXIMUM_DETAIL].rstrip(". ")))


def start_deadline_exceeded(pending: str, waited: timedelta) -> AttemptFailure:
    """Return the failure of a case whose pod did not start in time."""
    detail = f"the case's pod did not start within {waited.total_seconds():.0f} s. {pending}"
    return _failure(AttemptReason.START_DEADLINE_EXCEEDED, detail)


def node_lost(pod: ObservedPod, until: datetime) -> AttemptFailure:
    """Return the failure of a pod whose node has not reported its end."""
    node = f"node {pod.node}" if pod.node else "its node"
    detail = f"pod {pod.key.name} should have ended before {timestamp(until)}, but {node} has not reported it"
    return _failure(AttemptReason.NODE_LOST, detail)


def job_deleted(name: str) -> AttemptFailure:
    """Return the failure of an attempt whose Job was deleted."""
    return _failure(AttemptReason.JOB_DELETED, f"Job {name} was deleted before its result was stored")


def pod_gone(job: ObservedJob, disruption: str = "") -> AttemptFailure:
    """Return the failure of a Job whose pod and log were deleted."""
    if disruption or DISRUPTION in job.failure:
        cause = disruption or job.failure.rstrip(". ")
        return _failure(AttemptReason.DISRUPTED, f"{cause}; its log is gone too")
    detail = f" ({job.failure})" if job.failure else ""
    gone = f"the pod of Job {job.key.name} and its log were deleted before the result was stored{detail}"
    return _failure(AttemptReason.POD_LOST, gone)


def job_refused(message: str) -> AttemptFailure:
    """Return the failure of an attempt whose Job the API server refuses."""
    return _failure(AttemptReason.JOB_REFUSED, message)


def unknown_end(message: str) -> AttemptFailure:
    """Return the failure of an attempt whose end stays unknown."""
    return _failure(AttemptReason.RESULT_LOST, f"cannot find out what became of it: {message}")


def log_unreadable(error: Exception) -> AttemptFailure:
    """Return the failure of an attempt whose log the operator cannot read."""
    detail = f"the operator cannot read what its pod brought: {type(error).__name__}: {error}"
    return _failure(AttemptReason.RUNNER_ERROR, detail)


def result_refused(message: str) -> AttemptFailure:
    """Return the failure of an attempt whose result the API server refuses."""
    return _failure(AttemptReason.RESULT_REFUSED, message)


def disruption_of(pod: ObservedPod) -> str:
    """Describe which pod was disrupted, and why."""
    location = f" on node {pod.node}" if pod.node else ""
    return f"pod {pod.key.name}{location}: {pod.disruption.rstrip('. ')}"


def pod_interrupted(pod: ObservedPod) -> AttemptFailure:
    """Return the failure of a pod that was disrupted or deleted."""
    if pod.disruption:
        return _failure(AttemptReason.DISRUPTED, disruption_of(pod))
    return _failure(AttemptReason.INTERRUPTED, f"pod {pod.key.name} was deleted while it measured")


def without_result(pod: ObservedPod, message: str, log_state: str) -> AttemptFailure:
    """Return the failure of a pod that ended without a result.

    `message` comes from the runner's headline; `log_state` describes the log.
    """
    log_command = f"kubectl logs {pod.key.name} -n {pod.key.namespace}"
    if pod.disruption:
        return pod_interrupted(pod)
    if pod.exit_code == INVALID_CASE_EXIT:
        return _failure(AttemptReason.INVALID_CASE, message or "the runner refused the case")
    if pod.exit_code == INTERNAL_ERROR_EXIT:
        return _failure(AttemptReason.RUNNER_ERROR, f"{message or 'the runner failed'} ({log_command})")
    if pod.exit_code is None or pod.reason in {"StartError", "ContainerCannotRun"}:
        reason, reason_message = (pod.pod_reason, pod.pod_message) if pod.pod_reason else (pod.reason, pod.message)
        cause = ": ".join(text for text in (reason, reason_message) if text) or pod.waiting or "no reason given"
        return _failure(AttemptReason.NOT_STARTED, f"pod {pod.key.name} ended before its container ran: {cause}")
    ending = f"the runner ended with exit code {pod.exit_code} and left no complete result"
    return _failure(AttemptReason.RESULT_LOST, f"{ending}. {log_state} ({log_command})")
