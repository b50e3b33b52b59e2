"""Map the reason with which a run finished to an exit code. Pure."""

from collections.abc import Mapping
from typing import Any

from accelbench.api.reasons import AttemptReason, ConditionReason
from accelbench.local.exits import Exit

EXITS: Mapping[ConditionReason, Exit] = {
    ConditionReason.SUCCEEDED: Exit.SUCCESS,
    ConditionReason.INVALID_SPEC: Exit.INVALID_SPEC,
    ConditionReason.CANCELLED: Exit.NOT_MEASURED,
    ConditionReason.ACTIVE_DEADLINE_EXCEEDED: Exit.NOT_MEASURED,
    ConditionReason.START_DEADLINE_EXCEEDED: Exit.NOT_MEASURED,
    ConditionReason.CASE_FAILED: Exit.NOT_MEASURED,
    ConditionReason.RESULT_MISSING: Exit.NOT_MEASURED,
    ConditionReason.VARIANT_FAILED: Exit.VARIANT_FAILED,
    ConditionReason.INCOMPLETE: Exit.INTERNAL,
    ConditionReason.WORKLOAD_CHANGED: Exit.INVALID_MEASUREMENT,
    ConditionReason.INVALID_MEASUREMENT: Exit.INVALID_MEASUREMENT,
    ConditionReason.NOISY: Exit.NOISY,
    ConditionReason.EXPECTATION_NOT_MET: Exit.EXPECTATION_NOT_MET,
}
"""Exit code by the reason of the condition `Finished`. `accelbench run` has the same code for the same outcome."""
FAILED_ATTEMPT_EXITS: Mapping[str, Exit] = {
    AttemptReason.RUNNER_ERROR: Exit.INTERNAL,
    AttemptReason.INVALID_CASE: Exit.INVALID_SPEC,
}
"""Exit code by the reason of a failed attempt; it is `NOT_MEASURED` for every other reason."""


def condition(run: Mapping[str, Any], condition_type: str) -> Mapping[str, Any]:
    """Return the run's condition of that type, or an empty mapping."""
    conditions = (run.get("status") or {}).get("conditions") or ()
    return next((condition for condition in conditions if condition["type"] == condition_type), {})


def is_finished(run: Mapping[str, Any]) -> bool:
    """Return True if the run has ended, whatever its outcome."""
    return condition(run, "Finished").get("status") == "True"


def outcome_text(run: Mapping[str, Any]) -> str:
    """Return how a finished run ended, as `REASON: MESSAGE`."""
    # Both conditions have the same reason. If the spec was refused, only `Succeeded` has the problem in its message;
    # `Finished` has the remedy.
    outcome = condition(run, "Succeeded") or condition(run, "Finished")
    return f"{outcome['reason']}: {outcome['message']}"


def exit_of(run: Mapping[str, Any]) -> Exit | None:
    """Return the exit code of a run; None if it has not finished."""
    if not is_finished(run):
        return None
    reason = condition(run, "Finished")["reason"]
    if reason == ConditionReason.CASE_FAILED:  # the reasons of the attempts say what failed
        attempts = (run.get("status") or {}).get("attempts") or ()
        reasons = [attempt.get("reason", "") for attempt in attempts if attempt.get("finished")]
        codes = [FAILED_ATTEMPT_EXITS.get(attempt_reason, Exit.NOT_MEASURED) for attempt_reason in reasons]
        return Exit.worst(codes or [Exit.NOT_MEASURED])
    return EXITS.get(reason, Exit.NOT_MEASURED)  # a newer operator may have other reasons
