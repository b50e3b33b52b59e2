"""Describe why an attempt failed: the reason, the remedy, and whether another attempt may succeed.

An attempt fails if it ends without a complete result. A variant that fails is part of a result, and fails no attempt.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from accelbench.api.reasons import AttemptReason
from accelbench.document import on_one_line, timestamp
from accelbench_operator.runs.observed import ObservedJob, ObservedPod
from accelbench_operator.runs.pod_template import CONTAINER
from accelbench_operator.runs.same_case import describe_changes

INVALID_CASE_EXIT = 2
"""Exit code of a runner that refuses its case."""
INTERNAL_ERROR_EXIT = 3
"""Exit code of a runner that has failed itself."""
MAXIMUM_DETAIL = 2048
"""Maximum number of characters of a message that comes from a pod, a node or an API server."""
DISRUPTION = "DisruptionTarget"
"""The condition of a pod that is drained, evicted or preempted."""
NODE_SHUTDOWN = {"Terminated", "NodeShutdown", "Shutdown"}
"""Reasons of pods on a node that shuts down."""
NODE_GONE = {"TerminationByKubelet", "DeletionByTaintManager", "DeletionByPodGC"}
"""Reasons of the condition `DisruptionTarget` if the node shuts down, got a taint or is gone."""
NEVER_STARTS = re.compile("exec format error|executable file not found|no such file or directory|permission denied")
"""Messages of container runtimes about an image that cannot start on any node of that kind."""

OVER_ITS_STORAGE = re.compile(r"^Container (?P<name>\S+) exceeded its local ephemeral storage")
"""Message of a kubelet about the eviction of a pod."""


@dataclass(frozen=True)
class AttemptFailure:
    """Hold the reason why an attempt has no complete result, and sentences with details and a remedy."""

    reason: AttemptReason
    message: str

    def __str__(self) -> str:
        """Return `Reason: message`."""
        return f"{self.reason}: {self.message}"


class Removal(NamedTuple):
    """Describe why the cluster ended a pod."""

    reason: AttemptReason
    detail: str


def _failure(reason: AttemptReason, detail: str) -> AttemptFailure:
    """Return a failure whose message has the detail and the reason's remedy."""
    return AttemptFailure(reason, reason.explain(on_one_line(detail)[:MAXIMUM_DETAIL].rstrip(". ")))


def start_deadline_exceeded(pending: str, waited: timedelta) -> AttemptFailure:
    """Return the failure of a case whose pod did not start in time; `pending` explains what the pod waited for."""
    detail = f"the case's pod did not start within {waited.total_seconds():.0f} s. {pending}"
    return _failure(AttemptReason.START_DEADLINE_EXCEEDED, detail)


def node_lost(pod: ObservedPod, until: datetime) -> AttemptFailure:
    """Return the failure of a pod whose node has not reported the pod's end before the time `until`."""
    node = f"node {pod.node}" if pod.node else "its node"
    detail = f"pod {pod.key.name} should have ended before {timestamp(until)}, but {node} has not reported it"
    return _failure(AttemptReason.NODE_LOST, detail)


def job_deleted(name: str, time_to_live: int | None = None) -> AttemptFailure:
    """Return the failure of an attempt whose Job was deleted.

    `time_to_live` is the Job's ttlSecondsAfterFinished if that has deleted the Job, else None.
    """
    deletion = f"Job {name} was deleted before its result was stored"
    if time_to_live is not None:
        detail = f"{deletion}, by its ttlSecondsAfterFinished of {time_to_live} s, which this operator has not set"
        return _failure(AttemptReason.JOB_EXPIRED, f"{detail}. The case itself did not fail")
    # Kubernetes records no author of a deletion. While no operator is at work, a time to live may have passed unseen.
    detail = f"{deletion}, not by this operator: by somebody, or by a ttlSecondsAfterFinished that a policy has set"
    return _failure(AttemptReason.JOB_DELETED, f"{detail}. The case itself did not fail")


def explain_time_to_live(job: ObservedJob) -> str:
    """Return a warning about a Job that has a `ttlSecondsAfterFinished`."""
    detail = (
        f"Job {job.key.name} has ttlSecondsAfterFinished: {job.time_to_live}, which this operator has not set: it is "
        "deleted that many seconds after its end, with its log, even if its result was not read by then"
    )
    return AttemptReason.JOB_EXPIRED.explain(detail)


def pod_gone(job: ObservedJob, removal: Removal | None = None) -> AttemptFailure:
    """Return the failure of an existing Job whose pod and log were deleted.

    `removal` is why the cluster ended the pod; None if this process has not seen that.
    """
    # The Job's Failed condition may name a disruption: use that.
    if removal is None and DISRUPTION in job.failure:
        removal = Removal(AttemptReason.DISRUPTED, job.failure.rstrip(". "))
    if removal is not None:
        return _failure(removal.reason, f"{removal.detail}; its log is gone too")
    if job.time_to_live is not None:
        # After its time to live, Kubernetes deletes a Job's pods before the Job, so the Job may still exist here.
        return job_deleted(job.key.name, job.time_to_live)
    detail = f" ({job.failure})" if job.failure else ""
    message = f"the pod of Job {job.key.name} and its log were deleted before the result was stored{detail}"
    return _failure(AttemptReason.POD_LOST, message)


def job_refused(message: str) -> AttemptFailure:
    """Return the failure of an attempt whose Job the API server refuses."""
    return _failure(AttemptReason.JOB_REFUSED, message)


def case_changed(where: str, changes: Sequence[str]) -> AttemptFailure:
    """Return the failure of an attempt that did not run the operator's case; `where` is the object that shows it."""
    detail = f"{where} is not of the case that this operator gave out: {describe_changes(changes)}"
    return _failure(AttemptReason.CASE_CHANGED, detail)


def unknown_end(message: str) -> AttemptFailure:
    """Return the failure of an attempt whose end stays unknown."""
    return _failure(AttemptReason.RESULT_LOST, f"cannot find out what became of it: {message}")


def log_unreadable(error: Exception) -> AttemptFailure:
    """Return the failure of an attempt whose log the operator cannot read."""
    detail = f"the operator cannot read its pod's log: {type(error).__name__}: {error}"
    return _failure(AttemptReason.RUNNER_ERROR, detail)


def result_refused(message: str) -> AttemptFailure:
    """Return the failure of an attempt whose result the API server refuses."""
    return _failure(AttemptReason.RESULT_REFUSED, message)


def _added_container_exceeded_storage(pod: ObservedPod) -> bool:
    """Return True if the kubelet ended the pod because a container other than the runner's exceeded its storage."""
    blamed = OVER_ITS_STORAGE.search(pod.pod_message)
    return blamed is not None and blamed["name"] != CONTAINER


def removal_of(pod: ObservedPod) -> Removal | None:
    """Return why the cluster ended a pod; None if the cluster did not end it."""
    reason = _removal_reason(pod)
    if reason is None:
        return None
    location = f" on node {pod.node}" if pod.node else ""
    # The kubelet's message says more than the condition: for example, which limit the pod exceeded.
    cause = f"{pod.pod_reason}: {pod.pod_message}" if pod.pod_message else pod.disruption
    return Removal(reason, f"pod {pod.key.name}{location}: {cause.rstrip('. ')}")


def _removal_reason(pod: ObservedPod) -> AttemptReason | None:
    """Return why the cluster ended a pod, as the reason of a failed attempt; None if the cluster did not end it."""
    if pod.pod_reason == "Evicted":
        # A kubelet evicts a pod that exceeds a storage limit of its own, or any pod if its node is low on a resource.
        if _added_container_exceeded_storage(pod):
            return AttemptReason.ADDED_CONTAINER_FAILED
        is_own_limit = "exceed" in pod.pod_message
        return AttemptReason.STORAGE_LIMIT_EXCEEDED if is_own_limit else AttemptReason.NODE_PRESSURE
    disruption_reason = pod.disruption.partition(": ")[0]
    if pod.pod_reason == "Preempting" or disruption_reason == "PreemptionByScheduler":
        return AttemptReason.PREEMPTED
    if pod.pod_reason in NODE_SHUTDOWN or disruption_reason in NODE_GONE:
        return AttemptReason.NODE_RECLAIMED
    return AttemptReason.DISRUPTED if pod.disruption else None


def pod_interrupted(pod: ObservedPod) -> AttemptFailure:
    """Return the failure of a pod that the cluster, or somebody else, ended before it had a result."""
    removal = removal_of(pod)
    if removal is not None:
        return _failure(removal.reason, removal.detail)
    return _failure(AttemptReason.INTERRUPTED, f"pod {pod.key.name} was deleted while it measured")


def without_result(pod: ObservedPod, message: str, log_state: str) -> AttemptFailure:
    """Return the failure of a pod that ended without a result.

    `message` is the runner's error, from its pod's termination message; it may be empty. `log_state` is a sentence on
    why the log has no result.
    """
    log_command = f"kubectl logs {pod.key.name} -n {pod.key.namespace}"
    if removal_of(pod) is not None:
        return pod_interrupted(pod)
    if pod.exit_code == INVALID_CASE_EXIT:
        return _failure(AttemptReason.INVALID_CASE, message or "the runner refused the case")
    if pod.exit_code == INTERNAL_ERROR_EXIT:
        return _failure(AttemptReason.RUNNER_ERROR, f"{message or 'the runner failed'} ({log_command})")
    # If the container was never seen to start, its exit code means nothing.
    if pod.exit_code is None or pod.started_at is None or pod.reason in {"StartError", "ContainerCannotRun"}:
        return _not_started(pod)
    ending = f"the runner ended with exit code {pod.exit_code} and left no complete result"
    if pod.failed_containers:
        log_state += f". Of the pod's other containers, {', '.join(pod.failed_containers)}"
    return _failure(AttemptReason.RESULT_LOST, f"{ending}. {log_state} ({log_command})")


def _not_started(pod: ObservedPod) -> AttemptFailure:
    """Return the failure of a pod whose container never ran."""
    # The end of the whole pod explains more than the end of its container.
    if pod.pod_reason:
        reason, reason_message = pod.pod_reason, pod.pod_message
    else:
        reason, reason_message = pod.reason, pod.message
    cause = ": ".join(text for text in (reason, reason_message) if text)
    awaited = f"init container {pod.init_state}" if pod.init_state else pod.waiting
    # Either may be unknown, and is left out then.
    causes = ". It waited for this: ".join(text.rstrip(". ") for text in (cause, awaited) if text)
    detail = f"pod {pod.key.name} ended before its container ran: {causes or 'no reason given'}"
    if pod.pod_reason == "DeadlineExceeded":
        return _failure(AttemptReason.START_DEADLINE_EXCEEDED, detail)
    if pod.init_state and not pod.pod_reason:
        return _failure(AttemptReason.ADDED_CONTAINER_FAILED, detail)
    if NEVER_STARTS.search(reason_message):  # then another attempt would not start either
        return _failure(AttemptReason.START_ERROR, detail)
    return _failure(AttemptReason.NOT_STARTED, detail)
