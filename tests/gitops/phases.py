"""A run in each of its phases, with the status that the operator's own code derives for it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from accelbench.api.profiles import Profiles
from accelbench.api.reasons import AttemptReason, ConditionReason
from accelbench.api.result import Failure
from accelbench.api.run import BenchmarkRunStatus
from accelbench_operator.runs.accept import Refused, accept
from accelbench_operator.runs.decide import decide
from operator_world.builders import (
    IMAGE,
    NOW,
    make_attempt,
    make_job,
    make_plan,
    make_summary,
    observe,
    run_manifest,
    running,
)

__all__ = ["PHASES", "derive", "run_in"]

PHASES = tuple(reason for reason in ConditionReason if reason not in {"Accepted", "Unfinished"})
"""Every reason of the condition `Finished`, and so every `phase`."""
DAY = timedelta(days=1)
FAILED = Failure(reason="OutOfMemory", message="too big", round=2)
SEVERAL = {"sizes": (64, 128)}
SPECS: dict[ConditionReason, dict[str, Any]] = {
    ConditionReason.INVALID_SPEC: {"variants": [{"use": "pytorch/eager"}, {"use": "jax/jitt"}]},
    ConditionReason.SUSPENDED: {"runPolicy": {"suspend": True}},
    ConditionReason.CANCELLED: {"runPolicy": {"cancel": True}},
    ConditionReason.ACTIVE_DEADLINE_EXCEEDED: {"runPolicy": {"activeDeadlineSeconds": 60}},
    ConditionReason.RESULT_MISSING: SEVERAL,
    ConditionReason.WORKLOAD_CHANGED: SEVERAL,
}


def run_in(phase: ConditionReason) -> dict[str, Any]:
    """A run in that phase, as `kubectl get -o json` shows it."""
    status = derive(phase).model_dump(mode="json", by_alias=True, exclude_none=True)
    return run_manifest(**SPECS.get(phase, {})) | {"status": status}


def derive(phase: ConditionReason) -> BenchmarkRunStatus:
    """The status that the operator writes once the run is in that phase."""
    if phase is ConditionReason.INVALID_SPEC:
        refused = accept(run_manifest(**SPECS[phase]), Profiles(), IMAGE)
        assert isinstance(refused, Refused)
        return decide(refused, BenchmarkRunStatus(), observe(), NOW, 1).status
    plan = make_plan(**SPECS.get(phase, {}))
    attempt, valid = make_attempt(plan), make_summary(plan)
    before: dict[str, Any] = {}
    results = {
        ConditionReason.SUCCEEDED: [valid],
        ConditionReason.VARIANT_FAILED: [make_summary(plan, failure=FAILED)],
        ConditionReason.INCOMPLETE: [make_summary(plan, complete=False)],
        ConditionReason.INVALID_MEASUREMENT: [replace(valid, valid=False, failed_checks=("shared-device",))],
        ConditionReason.NOISY: [
            replace(
                valid,
                valid=False,
                noisy=True,
                comparisons=(valid.comparisons[0].model_copy(update={"verdict": None, "noisy": True}),),
            )
        ],
        ConditionReason.EXPECTATION_NOT_MET: [make_summary(plan, not_met=("speedup of jax/jit is 2",))],
        ConditionReason.RESULT_MISSING: [valid],
    }.get(phase, [])
    observed = observe(results=results)
    match phase:
        case ConditionReason.RUNNING:
            before = {"attempts": (attempt,)}
            observed = observe([make_job(plan, attempt)], [running(attempt)])
        case ConditionReason.CASE_FAILED | ConditionReason.START_DEADLINE_EXCEEDED:
            is_late = phase is ConditionReason.START_DEADLINE_EXCEEDED
            reason = AttemptReason.START_DEADLINE_EXCEEDED if is_late else AttemptReason.RESULT_LOST
            before = {"attempts": (attempt.model_copy(update={"finished": True, "reason": reason, "job": ""}),)}
        case ConditionReason.ACTIVE_DEADLINE_EXCEEDED:
            before = {"active_seconds": int(DAY.total_seconds())}
        case ConditionReason.RESULT_MISSING:
            before = {"measured_cases": plan.names}
        case ConditionReason.WORKLOAD_CHANGED:
            sources = [replace(make_summary(plan, index), source=f"sha256:{index}") for index in range(2)]
            observed = observe(results=sources)
    status = decide(plan, BenchmarkRunStatus(**before), observed, NOW, 1).status
    assert status.phase == phase
    return status
