"""Describe why an attempt failed: the reason, what to do, and whether another attempt may succeed.

A failed variant is a result, not a failed attempt: an attempt fails if it ends without a complete result.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from accelbench.api.reasons import AttemptReason
from accelbench.document import on_one_line, timestamp
from accelbench_operator.runs.observed import ObservedJob, ObservedPod

INVALID_CASE_EXIT = 2
INTERNAL_ERROR_EXIT = 3
MAXIMUM_DETAIL = 2048
"""Maximum number of characters of a message of a pod, a node or an API server."""
DISRUPTION = "DisruptionTarget"
"""The condition of a pod that is drained, evicted or preempted."""


@dataclass(frozen=True)
class AttemptFailure:
    """Hold the reason why an attempt has no result, and sentences with details and a remedy."""

    reason: AttemptReason
    message: str

    def __str__(self) -> str:
        """Return reason and message for a sentence."""
        return f"{self.reason}: {self.message}"


def _failure(reason: AttemptReason, detail: str) -> AttemptFailure:
    return AttemptFailure(reason, reason.explain(on_one_line(detail)[:MAXIMUM_DETAIL].rstrip(". ")))


def start_deadline_exceeded(pending: str, waited: timedelta) -> AttemptFailure:
    """Return the failure of a case that did not start in time; another attempt would wait as long."""
    detail = f"the case's pod did not start within {waited.total_seconds():.0f} s. {pending}"
    return _failure(AttemptReason.START_DEADLINE_EXCEEDED, detail)


def node_lost(pod: ObservedPod, until: datetime) -> AttemptFailure:
    """Return the failure of a pod whose end its node does not report, after its deadline or its deletion."""
    node = f"node {pod.node}" if pod.node else "its node"
    detail = f"pod {pod.key.name} should have ended before {timestamp(until)}, but {node} has not reported it"
    return _failure(AttemptReason.NODE_LOST, detail)


def job_deleted(name: str) -> AttemptFailure:
    """Return the failure of a Job that was deleted before its result was stored."""
    return _failure(AttemptReason.JOB_DELETED, f"Job {name} was deleted before its result was stored")


def pod_gone(job: ObservedJob, disruption: str = "") -> AttemptFailure:
    """Return the failure of a Job that ended without its pod and log; `disruption` is why, if it was observed."""
    if disruption or DISRUPTION in job.failure:
        return _failure(AttemptReason.DISRUPTED, f"{disruption or job.failure.rstrip('. ')}; its log is gone too")
    detail = f" ({job.failure})" if job.failure else ""
    gone = f"the pod of Job {job.key.name} and its log were deleted before the result was stored{detail}"
    return _failure(AttemptReason.POD_LOST, gone)


def job_refused(message: str) -> AttemptFailure:
    """Return the failure of an attempt whose Job the API server finds invalid."""
    return _failure(AttemptReason.JOB_REFUSED, message)


def unknown_end(message: str) -> AttemptFailure:
    """Return the failure of an attempt whose end stays unknown: requests fail, or another object has its name."""
    return _failure(AttemptReason.RESULT_LOST, f"cannot find out what became of it: {message}")


def unreadable(error: Exception) -> AttemptFailure:
    """Return the failure of an attempt whose log the operator itself fails on; it would fail again."""
    detail = f"the operator cannot read what its pod brought: {type(error).__name__}: {error}"
    return _failure(AttemptReason.RUNNER_ERROR, detail)


def result_refused(message: str) -> AttemptFailure:
    """Return the failure of a result that the API server refuses, for example because its CRD has another version."""
    return _failure(AttemptReason.RESULT_REFUSED, message)


def disruption_of(pod: ObservedPod) -> str:
    """Return name, node and reason of a pod that was disrupted, for a message."""
    where = f" on node {pod.node}" if pod.node else ""
    return f"pod {pod.key.name}{where}: {pod.disruption.rstrip('. ')}"


def interrupted(pod: ObservedPod) -> AttemptFailure:
    """Return the failure of a pod that was drained, evicted, preempted or deleted while it measured."""
    if pod.disruption:
        return _failure(AttemptReason.DISRUPTED, disruption_of(pod))
    return _failure(AttemptReason.INTERRUPTED, f"pod {pod.key.name} was deleted while it measured")


def without_result(pod: ObservedPod, message: str, evidence: str) -> AttemptFailure:
    """Return the failure of a pod that left no result.

    Args:
        pod: The pod, which has ended.
        message: The message of its headline; empty without one.
        evidence: A sentence about its log.
    """
    where = f"kubectl logs {pod.key.name} -n {pod.key.namespace}"
    if pod.disruption:
        return interrupted(pod)
    if pod.exit_code == INVALID_CASE_EXIT:
        return _failure(AttemptReason.INVALID_CASE, message or "the runner refused the case")
    if pod.exit_code == INTERNAL_ERROR_EXIT:
        return _failure(AttemptReason.RUNNER_ERROR, f"{message or 'the runner failed'} ({where})")
    if pod.exit_code is None or pod.reason in {"StartError", "ContainerCannotRun"}:
        parts = (pod.pod_reason, pod.pod_message) if pod.pod_reason else (pod.reason, pod.message)
        cause = ": ".join(part for part in parts if part) or pod.waiting or "no reason given"
        return _failure(AttemptReason.NOT_STARTED, f"pod {pod.key.name} ended before its container ran: {cause}")
    detail = f"the runner ended with exit code {pod.exit_code} and left no complete result. {evidence} ({where})"
    return _failure(AttemptReason.RESULT_LOST, detail)
