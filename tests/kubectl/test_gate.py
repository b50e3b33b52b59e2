"""One exit code for every reason that a run can finish with."""

from typing import Any

import pytest

from accelbench.api.reasons import ConditionReason
from accelbench.kubectl.gate import EXITS, exit_of
from accelbench.local.exits import Exit
from accelbench.local.run import CaseOutcome, exit_for
from accelbench_operator.runs.status import RunProgress, progress_status
from operator_world.builders import NOW, make_plan, make_result, make_summary

UNDER_WAY = {
    ConditionReason.ACCEPTED,
    ConditionReason.QUEUED,
    ConditionReason.RUNNING,
    ConditionReason.SUSPENDED,
    ConditionReason.UNFINISHED,
}


def run(reason: str, *attempts: dict[str, Any], status: str = "True") -> dict[str, Any]:
    conditions = [{"type": "Finished", "status": status, "reason": reason, "message": ""}]
    return {"status": {"conditions": conditions, "attempts": list(attempts)}}


def test_every_reason_that_ends_a_run_has_a_code_and_none_that_does_not() -> None:
    assert set(EXITS) == set(ConditionReason) - UNDER_WAY
    assert [reason for reason, code in EXITS.items() if code is Exit.SUCCESS] == [ConditionReason.SUCCEEDED]


def test_a_running_run_has_no_exit_code_and_an_unknown_reason_is_no_success() -> None:
    assert exit_of({}) is None
    assert exit_of(run("Running", status="False")) is None
    assert exit_of(run("SomethingNew")) is Exit.NOT_MEASURED


@pytest.mark.parametrize(
    ("reason", "code"),
    [("NodeLost", Exit.NOT_MEASURED), ("RunnerError", Exit.INTERNAL), ("InvalidCase", Exit.INVALID_SPEC)],
)
def test_a_failed_case_has_the_exit_code_of_its_attempt(reason: str, code: Exit) -> None:
    assert exit_of(run("CaseFailed", {"case": "all", "finished": True, "reason": reason})) is code


@pytest.mark.parametrize(
    ("found", "expectations"),
    [
        ({}, []),
        ({"complete": False}, []),
        ({}, [{"metric": "speedup", "variant": "jax/jit", "atLeast": "3"}]),
    ],
)
def test_a_cluster_and_a_laptop_have_the_same_exit_code_for_a_result(
    found: dict[str, Any], expectations: list[Any]
) -> None:
    plan = make_plan(expectations=expectations)
    (case,) = plan.cases
    result = make_result(case, **found)
    from accelbench.verdict.expectations import evaluate

    judged = evaluate(plan.run.spec.expectations, result)
    not_met = tuple(each.sentence for each in judged if each.outcome != "met")
    summary = make_summary(plan, not_met=not_met, **found)
    status = progress_status(
        plan, plan.run.status, RunProgress((), (case.name,), {case.name: summary}, NOW, None, False, "")
    )
    assert exit_of({"status": status.model_dump(by_alias=True)}) is exit_for([CaseOutcome(case, result, judged)])
