"""decide(): a user suspends, resumes or cancels a run."""

from accelbench_operator.runs.actions import Collect, DeleteJob
from operator_world.builders import ended, make_attempt, make_job, make_plan, make_summary, observe, running
from operator_world.decisions import finished, next_for, succeeded


def test_suspending_discards_the_case_in_flight_and_reports_it() -> None:
    plan = make_plan(runPolicy={"suspend": True})
    attempt = make_attempt(plan, job_uid="x")
    job = make_job(plan, attempt)
    decision = next_for(plan, observe([job], [running(attempt)]), attempts=(attempt,))

    assert finished(decision) == ("False", "Suspended")
    assert "discarded" in decision.status.attempts[0].message
    assert decision.actions == (DeleteJob(job.key.name, job.key.uid),)


def test_a_resumed_case_is_a_new_attempt_that_counts_as_no_retry() -> None:
    plan = make_plan()
    aside = make_attempt(plan, job="", reason="Suspended", message="discarded")
    (attempt,) = next_for(plan, attempts=(aside,)).status.attempts

    assert (attempt.number, attempt.retries) == (2, 0)


def test_a_pod_that_ended_before_the_suspension_is_collected_nevertheless() -> None:
    plan = make_plan(runPolicy={"suspend": True})
    attempt = make_attempt(plan, job_uid="x")
    observed = observe([make_job(plan, attempt, has_ended=True)], [ended(attempt)])

    assert [type(action) for action in next_for(plan, observed, attempts=(attempt,)).actions] == [Collect]


def test_a_suspended_run_starts_nothing_and_waits_for_nothing() -> None:
    decision = next_for(make_plan(runPolicy={"suspend": True}))

    assert decision.actions == ()
    assert decision.requeue_at is None


def test_a_cancelled_run_finishes_at_once_and_discards_what_is_in_flight() -> None:
    plan = make_plan(sizes=(64, 128, 256), runPolicy={"cancel": True, "parallelism": 2})
    attempts = (make_attempt(plan, 0), make_attempt(plan, 1, job_uid="x"))
    job = make_job(plan, attempts[1])
    observed = observe([job], [running(attempts[1])], [make_summary(plan, 0)])
    decision = next_for(plan, observed, attempts=attempts)

    assert finished(decision) == ("True", "Cancelled")
    assert decision.status.active_start_time is None
    assert decision.status.cases.model_dump() == {"total": 3, "active": 0, "measured": 1, "failed": 1}
    assert decision.actions == (DeleteJob(job.key.name, job.key.uid),)


def test_cancelling_a_run_that_has_every_result_leaves_it_succeeded() -> None:
    plan = make_plan(runPolicy={"cancel": True})
    decision = next_for(plan, observe(results=[make_summary(plan)]), attempts=(make_attempt(plan),))

    assert succeeded(decision) == ("True", "Succeeded")
