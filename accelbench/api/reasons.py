"""Define the reasons of conditions, attempts and failures: a word, its meaning, and what to do.

docs/reference/reasons.md is generated from them. Programs rely on the words: removing one changes the API.
"""

from enum import StrEnum
from typing import Self


class RetryLimit(StrEnum):
    """Name the fields of a run's policy that limit how often a case is tried again."""

    INFRASTRUCTURE = "infrastructureRetries"
    DISRUPTION = "disruptionRetries"


class Reason(StrEnum):
    """Define a word with its meaning and a remedy; the remedy is empty if there is nothing to do."""

    meaning: str
    remedy: str
    retry_limit: RetryLimit | None
    """Limit on new attempts after this reason; None if the case caused the failure, so that another would fail too."""

    def __new__(cls, word: str, meaning: str, remedy: str = "", retry_limit: RetryLimit | None = None) -> Self:
        """Create a member that equals the string `word`, and set its attributes."""
        member = str.__new__(cls, word)
        member._value_ = word
        member.meaning = meaning
        member.remedy = remedy
        member.retry_limit = retry_limit
        return member

    def explain(self, detail: str) -> str:
        """Return a message for people: `detail`, which describes what happened, then the remedy."""
        return f"{detail}. {self.remedy}" if self.remedy else detail


class FailureReason(Reason):
    """Name why a variant has no measurement: `failure.reason` in a result."""

    RAISED = (
        "Raised",
        "The variant's own code raised an exception.",
        "Fix the line that the message names",
    )
    OUT_OF_MEMORY = (
        "OutOfMemory",
        "The host, the container or the device ran out of memory.",
        "Raise the limit in the profile or in spec.podTemplate, or use smaller parameters",
    )
    KILLED = (
        "Killed",
        "A signal that accelbench did not send ended the process.",
        "Look for a crash in one of the variant's libraries; the message names the signal",
    )
    TIMED_OUT = (
        "TimedOut",
        "A launch took longer than allowed.",
        "Raise timeLimitSeconds, or find out why the phase named in the message takes so long",
    )
    INVALID_OUTPUT = (
        "InvalidOutput",
        "The process ended without an answer, or with one that cannot be read.",
        "Check whether the variant's code ends the process, or closes descriptors that it did not open",
    )
    UNSUPPORTED = (
        "Unsupported",
        "The device, the mode or the precision is not supported here.",
        "Leave the variant out, or run it where it is supported",
    )
    ENVIRONMENT = (
        "Environment",
        "The environment that the variant was to run in cannot be used; the variant's code is not to blame.",
        "Repair the environment as the message says, or name another one",
    )


class StopReason(Reason):
    """Name why no further round was measured: `stopped` in a result."""

    TARGET_MET = ("TargetMet", "Every interval is as narrow as targetRelativeError asks.")
    MAXIMUM_ROUNDS_REACHED = (
        "MaximumRoundsReached",
        "rounds.max rounds were measured.",
        "Raise rounds.max if the interval is too wide",
    )
    TIME_LIMIT_REACHED = (
        "TimeLimitReached",
        "The case reached its time limit.",
        "Raise timeLimitSeconds if the interval is too wide",
    )
    NO_TIME_FOR_ROUND = (
        "NoTimeForRound",
        "Another round would have exceeded the case's time limit.",
        "Raise timeLimitSeconds if the interval is too wide",
    )
    COMPILED = ("Compiled", "Every variant was compiled for the case's target; there was nothing to measure.")
    INTERRUPTED = ("Interrupted", "A signal ended the runner. Complete rounds count.")
    NOTHING_TO_COMPARE = (
        "NothingToCompare",
        "So many variants failed that no comparison is left.",
        "See the variants' failures",
    )


class AttemptReason(Reason):
    """Name why an attempt at a case has no result: `attempts[].reason` of a run."""

    START_DEADLINE_EXCEEDED = (
        "StartDeadlineExceeded",
        "The case's pod did not start within runPolicy.startDeadlineSeconds; no further case is started.",
        "See what the pod waited for, or raise the deadline",
    )
    NODE_LOST = (
        "NodeLost",
        "The pod should have ended, but its node has not reported it.",
        "Check whether the node is Ready; delete it if it is gone for good",
        RetryLimit.INFRASTRUCTURE,
    )
    JOB_DELETED = (
        "JobDeleted",
        "Somebody else than the operator deleted the Job before its result was stored; the case itself did not fail.",
        "Leave a run's Jobs alone: runPolicy.suspend frees its device, runPolicy.cancel ends it",
        RetryLimit.INFRASTRUCTURE,
    )
    JOB_EXPIRED = (
        "JobExpired",
        "The Job's ttlSecondsAfterFinished deleted it before its result was stored; the case itself did not fail.",
        (
            "Have the policy that sets ttlSecondsAfterFinished leave out Jobs with the label "
            "app.kubernetes.io/managed-by=accelbench, or set more seconds than the operator may be away"
        ),
        RetryLimit.INFRASTRUCTURE,
    )
    POD_LOST = (
        "PodLost",
        "The pod and its log were deleted before the result was stored.",
        "Find out who deletes pods that have just ended, or removes their labels",
        RetryLimit.INFRASTRUCTURE,
    )
    DISRUPTED = (
        "Disrupted",
        "The pod was evicted, for example because somebody drained its node.",
        "Find out who drains nodes in use; a PodDisruptionBudget delays a drain until the case has ended",
        RetryLimit.DISRUPTION,
    )
    NODE_RECLAIMED = (
        "NodeReclaimed",
        "The pod's node was shut down, removed or tainted, as spot capacity is.",
        "Use nodes that stay, or smaller cases; a new attempt begins from the start",
        RetryLimit.DISRUPTION,
    )
    PREEMPTED = (
        "Preempted",
        "A pod of a higher priority took the pod's place.",
        "Give the pods a priorityClassName, in spec.podTemplate or in the chart's podTemplate",
        RetryLimit.DISRUPTION,
    )
    NODE_PRESSURE = (
        "NodePressure",
        "The pod's node ran out of memory, disk or process IDs, and evicted the pod.",
        "Free what the message names on that node, or have the profile request more of it: ephemeralStorage, memory",
        RetryLimit.INFRASTRUCTURE,
    )
    STORAGE_LIMIT_EXCEEDED = (
        "StorageLimitExceeded",
        "The pod wrote more to its node's disk than it may, and was evicted.",
        "Raise ephemeralStorage in the profile or ephemeral-storage in spec.podTemplate, or write less",
    )
    INTERRUPTED = (
        "Interrupted",
        "The pod was deleted while it measured.",
        "Leave a run's pods alone: runPolicy.suspend frees its device, runPolicy.cancel ends it",
        RetryLimit.INFRASTRUCTURE,
    )
    NOT_STARTED = (
        "NotStarted",
        "The node ended the pod before its container ran.",
        "kubectl describe pod says more; if it happens on one node only, look at that node",
        RetryLimit.INFRASTRUCTURE,
    )
    ADDED_CONTAINER_FAILED = (
        "AddedContainerFailed",
        "A container that was added to the runner's pod failed or wrote too much, so the runner could not go on.",
        (
            "An admission webhook has added the container that the message names: ask whoever runs that webhook how it "
            "leaves a pod out; spec.podTemplate.metadata takes labels and annotations"
        ),
        RetryLimit.INFRASTRUCTURE,
    )
    START_ERROR = (
        "StartError",
        "The container cannot be started: its image has no such program, or is for another architecture.",
        "Check the image, and the profile's arch",
    )
    RESULT_LOST = (
        "ResultLost",
        "The runner ended and left no complete result in its log.",
        "See the pod's log",
        RetryLimit.INFRASTRUCTURE,
    )
    CASE_CHANGED = (
        "CaseChanged",
        "The Job, its pod or the result is of another case than the operator gave out, so nothing of it counts.",
        (
            "Find out who or which admission webhook changes Jobs or pods in this namespace, then apply the run under "
            "another name"
        ),
    )
    JOB_REFUSED = (
        "JobRefused",
        "The API server refuses the Job.",
        "Check spec.podTemplate and the profile",
    )
    RESULT_REFUSED = (
        "ResultRefused",
        "The API server refuses the result.",
        "Change the quota or the policy that it names, or bring CRDs, operator and runner image to the same release",
    )
    INVALID_CASE = ("InvalidCase", "The runner refused the case.", "Correct the spec")
    RUNNER_ERROR = ("RunnerError", "accelbench itself failed.", "Report it as a bug, with the pod's log")
    SUSPENDED = (
        "Suspended",
        "The run was suspended, and the case in flight was discarded.",
        "It starts again once runPolicy.suspend is false",
    )
    CANCELLED = ("Cancelled", "The run was cancelled, and the case in flight was discarded.")
    ACTIVE_DEADLINE_EXCEEDED = (
        "ActiveDeadlineExceeded",
        "The run reached its deadline, and the case in flight was discarded.",
        "Raise runPolicy.activeDeadlineSeconds",
    )


class ConditionReason(Reason):
    """Name a run's state: `conditions[].reason`, and `phase`."""

    ACCEPTED = ("Accepted", "The spec can be run.")
    INVALID_SPEC = (
        "InvalidSpec",
        "The spec cannot be run, so nothing was measured.",
        "Correct it and apply it again",
    )
    QUEUED = ("Queued", "No case is running; the message names what the next case waits for.")
    RUNNING = ("Running", "A case is running.")
    SUSPENDED = ("Suspended", "runPolicy.suspend is true.", "Set it to false to resume")
    UNFINISHED = ("Unfinished", "Not every case has a result yet.")
    SUCCEEDED = ("Succeeded", "Every case has a valid result, and every expectation is met.")
    CANCELLED = ("Cancelled", "runPolicy.cancel is true; stored results are kept.")
    ACTIVE_DEADLINE_EXCEEDED = (
        "ActiveDeadlineExceeded",
        "The run was active for longer than its deadline.",
        "Raise runPolicy.activeDeadlineSeconds",
    )
    START_DEADLINE_EXCEEDED = (
        "StartDeadlineExceeded",
        "A case's pod did not start in time, so no further case was started.",
        "See what it waited for, or raise runPolicy.startDeadlineSeconds",
    )
    CASE_FAILED = ("CaseFailed", "A case ended without a result.", "See the reason of its attempt")
    RESULT_MISSING = (
        "ResultMissing",
        "A case was measured, but its result was deleted before the run finished.",
        "Apply the run under another name to measure the case again",
    )
    VARIANT_FAILED = (
        "VariantFailed",
        "A variant failed; the other variants' results still count.",
        "See its failure in the BenchmarkResult; kubectl accelbench logs RUN shows its output while the pod stays",
    )
    INCOMPLETE = ("Incomplete", "A case was measured only in part.", "See the notes of its BenchmarkResult")
    WORKLOAD_CHANGED = (
        "WorkloadChanged",
        "The workload's file changed between cases, so they did not measure the same thing.",
        "Apply the run under another name, and leave the file alone until it has finished",
    )
    INVALID_MEASUREMENT = (
        "InvalidMeasurement",
        "A validity check failed, or a comparison could not be made.",
        "kubectl accelbench report RUN shows each check with its reading, and what to do",
    )
    NOISY = (
        "Noisy",
        "Other load disturbed rounds, and acceptNoise counts them: there are intervals, but no verdict.",
        "For a verdict, measure on nodes without other load",
    )
    EXPECTATION_NOT_MET = (
        "ExpectationNotMet",
        "An expectation is not met, or undecided.",
        "The message has the numbers",
    )
