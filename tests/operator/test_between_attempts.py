"""decide(): what follows an attempt without a result, and when."""

from dataclasses import replace
from datetime import timedelta

import pytest

from accelbench.api.reasons import AttemptReason
from accelbench_operator.runs.actions import CreateJob
from accelbench_operator.runs.failure import AttemptFailure
from accelbench_operator.runs.waits import FIRST_RETRY, Wait
from operator_world.builders import (
    NOW,
    make_attempt,
    make_job,
    make_plan,
    observe,
    running,
)
from operator_world.decisions import finished, message, next_for

AT = "2026-03-01T12:00:00Z"
LATER = NOW + timedelta(hours=1)
INFRASTRUCTURE = AttemptFailure(AttemptReason.NODE_LOST, "gone")
FINAL = AttemptFailure(AttemptReason.INVALID_CASE, "no such thing")


def test_an_attempt_that_the_infrastructure_lost_is_repeated_later_under_a_new_name() -> None:
    plan = make_plan(runPolicy={"infrastructureRetries": 1})
    attempt = make_attempt(plan, job_uid="x")
    lost = next_for(plan, observe(failures={attempt.job: INFRASTRUCTURE}), attempts=(attempt,))
    assert lost.actions == ()
    assert lost.requeue_at == NOW + FIRST_RETRY
    assert message(lost, "Finished") == (
        f"0 of 1 cases done. {attempt.case}: attempt 2 starts at 2026-03-01T12:00:10Z, after NodeLost: gone."
    )

    at = NOW + FIRST_RETRY
    decision = next_for(plan, observe(), at=at, attempts=lost.status.attempts)
    (second,) = decision.status.attempts
    assert (second.number, second.retries, second.reason, second.message) == (2, 1, "NodeLost", "gone")
    assert second.job != attempt.job
    assert decision.actions == (CreateJob(attempt.case, 2),)


def test_each_retry_waits_twice_as_long_and_never_longer_than_ten_minutes() -> None:
    plan = make_plan(runPolicy={"infrastructureRetries": 10})
    waits = []
    for retries in range(10):
        attempt = make_attempt(plan, number=retries + 1, retries=retries, job_uid="x")
        waits.append(next_for(plan, observe(failures={attempt.job: INFRASTRUCTURE}), attempts=(attempt,)).requeue_at)
    assert [(wait - NOW).total_seconds() for wait in waits if wait] == [10, 20, 40, 80, 160, 320, 600, 600, 600, 600]


def test_another_case_is_measured_while_one_waits_for_its_retry() -> None:
    plan = make_plan(sizes=(64, 128), runPolicy={"infrastructureRetries": 1})
    attempt = make_attempt(plan, job_uid="x")
    decision = next_for(plan, observe(failures={attempt.job: INFRASTRUCTURE}), attempts=(attempt,))
    assert [action.case for action in decision.actions] == [plan.cases[1].name]

    later = next_for(plan, observe(), at=NOW + FIRST_RETRY, attempts=decision.status.attempts)
    assert later.requeue_at is None or later.requeue_at > NOW + FIRST_RETRY


def test_a_case_that_waits_for_its_retry_when_the_run_stops_keeps_its_reason() -> None:
    plan = make_plan(runPolicy={"infrastructureRetries": 1})
    attempt = make_attempt(plan, job_uid="x")
    lost = next_for(plan, observe(failures={attempt.job: INFRASTRUCTURE}), attempts=(attempt,))
    cancelled = make_plan(runPolicy={"infrastructureRetries": 1, "cancel": True})
    decision = next_for(cancelled, observe(), attempts=lost.status.attempts)
    [over] = decision.status.attempts
    assert (over.finished, over.reason) == (True, "NodeLost")
    assert finished(decision) == ("True", "Cancelled")


def test_retries_end() -> None:
    plan = make_plan(runPolicy={"infrastructureRetries": 1})
    attempt = make_attempt(plan, number=2, retries=1, job_uid="x")
    decision = next_for(plan, observe(failures={attempt.job: INFRASTRUCTURE}), attempts=(attempt,))

    assert decision.actions == ()
    assert finished(decision) == ("True", "CaseFailed")
    assert "NodeLost: gone" in message(decision)


def test_evictions_by_the_cloud_count_against_a_limit_of_their_own() -> None:
    plan = make_plan(runPolicy={"infrastructureRetries": 1, "disruptionRetries": 3})
    reclaimed = AttemptFailure(AttemptReason.NODE_RECLAIMED, "shut down")
    attempt, at = make_attempt(plan, job_uid="x"), NOW
    for number in range(2, 5):
        lost = next_for(plan, observe(failures={attempt.job: reclaimed}), at=at, attempts=(attempt,))
        at = lost.requeue_at or at
        (attempt,) = next_for(plan, observe(), at=at, attempts=lost.status.attempts).status.attempts
        assert (attempt.number, attempt.retries, attempt.disruptions) == (number, 0, number - 1)

    fault = next_for(plan, observe(failures={attempt.job: INFRASTRUCTURE}), at=at, attempts=(attempt,))
    assert finished(fault)[0] == "False"
    over = next_for(plan, observe(failures={attempt.job: reclaimed}), at=at, attempts=(attempt,))
    assert finished(over) == ("True", "CaseFailed")


def test_an_attempt_that_failed_by_itself_is_not_repeated() -> None:
    plan = make_plan(sizes=(64, 128))
    attempt = make_attempt(plan, job_uid="x")
    decision = next_for(plan, observe(failures={attempt.job: FINAL}), attempts=(attempt,))

    assert decision.status.attempts[0].finished
    assert decision.actions == (CreateJob(plan.cases[1].name, 1, is_first=True),)


def test_the_next_attempt_is_made_once_the_pod_of_the_one_before_has_ended() -> None:
    plan = make_plan()
    discarded = make_attempt(plan)
    aside = discarded.model_copy(update={"job": "", "reason": "Suspended", "message": "it was discarded"})
    going = running(discarded, deletion_time=NOW + timedelta(seconds=30))
    decision = next_for(plan, observe(pods=[going]), attempts=(aside,))
    assert decision.actions == ()
    assert decision.status.attempts == (aside,)
    assert decision.requeue_at == NOW + timedelta(seconds=30) + Wait.EARLIER_POD.default_limit
    assert f"pod {going.key.name} of the previous attempt has not ended yet" in message(decision, "Finished")

    gone = next_for(plan, observe(pods=[replace(going, phase="Failed")]), attempts=(aside,))
    assert gone.actions == (CreateJob(aside.case, 2),)


def test_a_pod_on_a_lost_node_delays_the_next_attempt_only_until_its_deadline() -> None:
    plan = make_plan()
    before = make_attempt(plan)
    aside = before.model_copy(update={"job": "", "reason": "Suspended", "message": "it was discarded"})
    for going in (running(before, deletion_time=NOW), running(before)):
        waits = next_for(plan, observe(pods=[going]), attempts=(aside,))
        assert waits.actions == ()
        assert waits.requeue_at is not None
        later = next_for(plan, observe(pods=[going]), at=waits.requeue_at, attempts=(aside,))
        assert later.actions == (CreateJob(aside.case, 2),)


@pytest.mark.parametrize("foreign", [{"job": "", "job_uid": ""}, {"job": "another"}, {"job_uid": "another"}], ids=str)
def test_a_foreign_pod_with_our_labels_does_not_delay_the_next_attempt(foreign: dict[str, str]) -> None:
    plan = make_plan()
    before = make_attempt(plan)
    aside = before.model_copy(update={"job": "", "reason": "Suspended", "message": "it was discarded"})
    own = observe([make_job(plan, before)]).own_jobs
    observed = replace(observe(pods=[replace(running(before), **foreign)]), own_jobs=own)
    decision = next_for(plan, observed, attempts=(aside,))
    assert decision.actions == (CreateJob(aside.case, 2),)
