"""What a finished run is worth to a script: one exit code for each reason that it can have finished with. Pure."""

from collections.abc import Mapping
from typing import Any

from accelbench.api.reasons import AttemptReason, ConditionReason
from accelbench.cli.exits import Exit

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
"""Of the reasons of `Finished`, once it is true: as `accelbench run` ends where a laptop finds the same."""
LOST: Mapping[str, Exit] = {
    AttemptReason.RUNNER_ERROR: Exit.INTERNAL,
    AttemptReason.INVALID_CASE: Exit.INVALID_SPEC,
}
"""What a laptop has a code for among the reasons for which a case failed."""


def condition(run: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """The condition of that type; empty where the operator has not set it."""
    conditions = (run.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == kind), {})


def is_finished(run: Mapping[str, Any]) -> bool:
    """Nothing more will happen."""
    return condition(run, "Finished").get("status") == "True"


def ending(run: Mapping[str, Any]) -> str:
    """`REASON: MESSAGE` of a finished run, in its status' own words."""
    told = condition(run, "Succeeded") or condition(run, "Finished")
    return f"{told['reason']}: {told['message']}"


def exit_of(run: Mapping[str, Any]) -> Exit | None:
    """The code for a run as the server has it; None while it is not finished.

    A reason that a later release has, and this one does not know, is no success.
    """
    if not is_finished(run):
        return None
    reason = condition(run, "Finished")["reason"]
    if reason == ConditionReason.CASE_FAILED:
        attempts = (run.get("status") or {}).get("attempts") or ()
        lost = [LOST.get(each.get("reason", ""), Exit.NOT_MEASURED) for each in attempts if each.get("finished")]
        return Exit.worst(lost or [Exit.NOT_MEASURED])
    return next((code for known, code in EXITS.items() if known == reason), Exit.NOT_MEASURED)
