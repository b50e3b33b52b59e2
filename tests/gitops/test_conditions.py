"""Conditions of a run for tools that wait for it: kstatus, and with it Flux and cli-utils."""

from __future__ import annotations

import pytest

from accelbench.api.reasons import ConditionReason
from accelbench.api.run import BenchmarkRunStatus
from accelbench_operator.runs.decide import decide
from accelbench_operator.runs.status import before_refusal, may_be_corrected
from gitops.phases import PHASES, derive
from operator_world.builders import NOW, make_attempt, make_plan, make_summary, observe

WAITING = {ConditionReason.QUEUED, ConditionReason.RUNNING}
AS_ASKED = {ConditionReason.SUCCEEDED, ConditionReason.SUSPENDED}


def abnormal(status: BenchmarkRunStatus) -> dict[str, tuple[str, str]]:
    """The status and the reason of the conditions that exist only while they are True."""
    own = {"Reconciling", "Stalled"}
    return {each.type: (each.status, each.reason) for each in status.conditions if each.type in own}


@pytest.mark.parametrize("phase", PHASES)
def test_a_run_is_reconciling_until_it_finishes_and_stalled_if_it_then_has_no_success(phase: ConditionReason) -> None:
    if phase in WAITING:
        expected = {"Reconciling": ("True", phase)}
    elif phase in AS_ASKED:
        expected = {}
    else:
        expected = {"Stalled": ("True", phase)}
    assert abnormal(derive(phase)) == expected


def test_a_run_that_is_suspended_and_resumed_is_reconciling_again() -> None:
    suspended = derive(ConditionReason.SUSPENDED)
    resumed = decide(make_plan(), suspended, observe(), NOW, 2).status
    assert abnormal(resumed) == {"Reconciling": ("True", "Queued")}


def test_a_refused_run_that_is_corrected_is_reconciling_and_stalled_no_more() -> None:
    refused = derive(ConditionReason.INVALID_SPEC)
    assert may_be_corrected(refused, 2)
    corrected = decide(make_plan(), before_refusal(refused), observe(), NOW, 2).status
    assert abnormal(corrected) == {"Reconciling": ("True", "Queued")}
    assert corrected.completion_time is None


def test_a_run_that_succeeds_leaves_none_of_these_conditions_behind() -> None:
    plan = make_plan()
    under_way = decide(plan, BenchmarkRunStatus(), observe(), NOW, 1).status
    assert abnormal(under_way)
    done = decide(plan, under_way, observe(results=[make_summary(plan)]), NOW, 1).status
    assert abnormal(done) == {}


def test_a_change_of_a_run_that_failed_is_acknowledged_by_all_of_its_conditions() -> None:
    plan = make_plan()
    attempt = make_attempt(plan, finished=True, reason="ResultLost", message="gone")
    failed = decide(plan, BenchmarkRunStatus(attempts=(attempt,)), observe(), NOW, 1).status
    changed = decide(plan, failed, observe(), NOW, 2).status
    assert {each.type: each.observed_generation for each in changed.conditions} == dict.fromkeys(
        ("Accepted", "Finished", "Succeeded", "Stalled"), 2
    )
