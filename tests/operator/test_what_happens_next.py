"""decide(): one situation and one expectation per test; test_every_run_ends tests what always holds."""

from dataclasses import replace
from datetime import timedelta

from accelbench.api.reasons import AttemptReason
from accelbench.api.run import Condition
from accelbench.problem import Problem
from accelbench_operator.runs.accept import Refused
from accelbench_operator.runs.actions import Collect, ConfirmFailure, CreateJob, DeleteJob, DeleteRun
from accelbench_operator.runs.decide import decide
from accelbench_operator.runs.failure import AttemptFailure
from accelbench_operator.runs.memory import Obstacle
from accelbench_operator.runs.waits import Wait
from operator_world.builders import (
    ALL_RETRIES,
    NOW,
    ended,
    make_attempt,
    make_job,
    make_plan,
    make_pod,
    make_summary,
    observe,
    running,
)
from operator_world.decisions import finished, message, next_for

AT = "2026-03-01T12:00:00Z"
LATER = NOW + timedelta(hours=1)
INFRASTRUCTURE = AttemptFailure(AttemptReason.NODE_LOST, "gone")
FINAL = AttemptFailure(AttemptReason.INVALID_CASE, "no such thing")


# -- starting ---------------------------------------------------------------------------------------------------


def test_a_new_run_is_accepted_and_its_status_records_the_first_case_before_its_job_exists() -> None:
    plan = make_plan(sizes=(64, 128))
    decision = next_for(plan)

    (attempt,) = decision.status.attempts
    assert attempt == make_attempt(plan)
    assert decision.actions == (CreateJob(plan.cases[0].name, 1, is_first=True),)
    assert finished(decision) == ("False", "Queued")
    assert decision.status.cases.model_dump() == {"total": 2, "active": 1, "measured": 0, "failed": 0}


def test_as_many_cases_are_in_flight_as_the_policy_allows() -> None:
    plan = make_plan(sizes=(1, 2, 3, 4), runPolicy={"parallelism": 3})
    first = next_for(plan)
    assert len(first.actions) == 3

    jobs = [make_job(plan, attempt) for attempt in first.status.attempts]
    done = make_summary(plan, 1)
    second = next_for(plan, observe(jobs, results=[done]), attempts=first.status.attempts)
    made = [action for action in second.actions if isinstance(action, CreateJob)]
    assert made == [CreateJob(plan.cases[3].name, 1, is_first=True)]


def test_a_recorded_attempt_without_a_job_gets_one_after_a_restart() -> None:
    plan = make_plan()
    decision = next_for(plan, attempts=(make_attempt(plan),))

    assert decision.actions == (CreateJob(plan.cases[0].name, 1),)
    assert decision.status.attempts == (make_attempt(plan),)


def test_an_existing_job_is_recorded_and_not_created_again() -> None:
    plan = make_plan()
    attempt = make_attempt(plan)
    decision = next_for(plan, observe([make_job(plan, attempt)]), attempts=(attempt,))

    assert decision.actions == ()
    assert decision.status.attempts[0].job_uid == f"uid-of-{attempt.job}"


def test_deciding_twice_in_the_same_situation_changes_nothing() -> None:
    plan = make_plan(sizes=(64, 128))
    attempt = make_attempt(plan)
    observed = observe([make_job(plan, attempt)], [running(attempt)])
    first = next_for(plan, observed, attempts=(attempt,))
    second = decide(plan, first.status, observed, NOW + timedelta(seconds=30), 1)

    assert second.status == first.status
    assert second.actions == first.actions == ()


# -- refusing ---------------------------------------------------------------------------------------------------


def test_a_run_that_cannot_be_run_is_finished_at_once_with_the_reason() -> None:
    refused = Refused((Problem("spec.workload.name", 'unknown workload "matmul"; did you mean matmul-chain?'),))
    decision = next_for(refused)

    assert finished(decision) == ("True", "InvalidSpec")
    assert "did you mean matmul-chain?" in message(decision, "Accepted")
    assert decision.actions == ()
    assert decision.requeue_at is None


# -- collecting --------------------------------------------------------------------------------------------------


def test_an_ended_pod_is_collected() -> None:
    plan = make_plan()
    attempt = make_attempt(plan, job_uid="x")
    decision = next_for(plan, observe([make_job(plan, attempt)], [ended(attempt)]), attempts=(attempt,))

    (action,) = decision.actions
    assert isinstance(action, Collect)
    assert action.retries == ALL_RETRIES


def test_the_last_attempt_is_collected_as_the_last() -> None:
    plan = make_plan(runPolicy={"infrastructureRetries": 1})
    attempt = make_attempt(plan, number=2, retries=1)
    decision = next_for(plan, observe([make_job(plan, attempt)], [ended(attempt)]), attempts=(attempt,))

    (action,) = decision.actions
    assert isinstance(action, Collect)
    assert action.retries == {"disruptionRetries"}


def test_a_job_is_deleted_only_with_the_result_that_has_to_be_confirmed_first() -> None:
    plan = make_plan()
    attempt = make_attempt(plan)
    job, result = make_job(plan, attempt, has_ended=True), make_summary(plan)
    decision = next_for(plan, observe([job], results=[result]), attempts=(attempt,))

    assert decision.actions == (DeleteJob(job.key.name, job.key.uid, result.name),)
    assert finished(decision) == ("True", "Succeeded")


def test_a_deleted_job_is_investigated_before_another_is_created() -> None:
    plan = make_plan()
    attempt = make_attempt(plan, job_uid="was-there")
    (action,) = next_for(plan, attempts=(attempt,)).actions

    assert isinstance(action, Collect)


# -- losing -----------------------------------------------------------------------------------------------------


def test_a_run_that_stops_starts_no_new_attempt() -> None:
    plan = make_plan(runPolicy={"cancel": True})
    attempt = make_attempt(plan, job_uid="x")
    decision = next_for(plan, observe(failures={attempt.job: INFRASTRUCTURE}), attempts=(attempt,))

    assert decision.actions == ()
    assert finished(decision) == ("True", "Cancelled")


def test_a_pod_that_outlives_its_deadline_is_given_up_with_its_job() -> None:
    plan = make_plan(runPolicy={"infrastructureRetries": 0})
    attempt = make_attempt(plan, job_uid="x")
    job, pod = make_job(plan, attempt), running(attempt)
    until = NOW + plan.runner_limit + Wait.END_OF_POD.default_limit
    before = next_for(plan, observe([job], [pod]), attempts=(attempt,))
    after = next_for(plan, observe([job], [pod]), at=until, attempts=(attempt,))

    assert before.requeue_at == until
    # The watch may be behind: nothing is given up before the cluster has been asked.
    (confirm,) = after.actions
    assert isinstance(confirm, ConfirmFailure)
    assert (confirm.attempt.job, confirm.failure.reason) == (attempt.job, "NodeLost")
    lost = observe([job], [pod], failures={attempt.job: confirm.failure})
    confirmed = next_for(plan, lost, at=until, attempts=(attempt,))
    assert confirmed.status.attempts[0].reason == "NodeLost"
    assert confirmed.actions == (DeleteJob(job.key.name, job.key.uid),)
    assert finished(confirmed) == ("True", "CaseFailed")


def test_a_pod_that_stays_terminating_on_a_lost_node_is_given_up() -> None:
    plan = make_plan()
    attempt = make_attempt(plan, job_uid="x")
    pod = running(attempt, deletion_time=NOW)
    late = NOW + Wait.END_OF_POD.default_limit
    decision = next_for(plan, observe([make_job(plan, attempt)], [pod]), at=late, attempts=(attempt,))

    assert [type(action) for action in decision.actions] == [ConfirmFailure]
    assert decision.status.attempts[0].number == 1


def test_a_case_that_is_discarded_while_it_waits_reports_what_it_waited_for() -> None:
    plan = make_plan(runPolicy={"cancel": True})
    attempt = make_attempt(plan, job_uid="x")
    pod = make_pod(attempt, waiting="ErrImagePull: unauthorized")
    decision = next_for(plan, observe([make_job(plan, attempt)], [pod]), attempts=(attempt,))
    assert "The image cannot be pulled (ErrImagePull: unauthorized)" in decision.status.attempts[0].message


# -- deadlines ----------------------------------------------------------------------------------------------------


def test_a_case_that_finds_no_node_in_time_ends_the_run_with_the_reason() -> None:
    plan = make_plan(sizes=(64, 128), runPolicy={"startDeadlineSeconds": 3600})
    attempt = make_attempt(plan, job_uid="x")
    pod = make_pod(attempt, waiting="Unschedulable: 0/3 nodes are available: 3 Insufficient cpu.")
    observed = observe([make_job(plan, attempt)], [pod])
    before = next_for(plan, observed, attempts=(attempt,))
    (confirm,) = next_for(plan, observed, at=LATER, attempts=(attempt,)).actions
    assert isinstance(confirm, ConfirmFailure)
    observed = replace(observed, failures={attempt.job: confirm.failure})
    after = next_for(plan, observed, at=LATER, attempts=(attempt,))

    assert before.requeue_at == LATER
    assert finished(before) == ("False", "Queued")
    assert "asks for 1 cpu" in message(before, "Finished")
    assert finished(after) == ("True", "StartDeadlineExceeded")
    assert "Insufficient cpu" in message(after)
    assert [type(action) for action in after.actions] == [DeleteJob]


def test_only_active_time_counts_against_the_runs_deadline() -> None:
    plan = make_plan(sizes=(64, 128), runPolicy={"activeDeadlineSeconds": 100})
    attempt = make_attempt(plan, job_uid="x")
    job = make_job(plan, attempt)
    began = next_for(plan, observe([job], [running(attempt)]), attempts=(attempt,))
    assert began.requeue_at == NOW + timedelta(seconds=100)

    waiting = observe([job], [make_pod(attempt)])
    paused = decide(plan, began.status, waiting, NOW + timedelta(seconds=60), 1)
    assert (paused.status.active_start_time, paused.status.active_seconds) == (None, 60)

    resumed = observe([job], [running(attempt, since=LATER)])
    again = decide(plan, paused.status, resumed, LATER, 1)
    assert again.requeue_at == LATER + timedelta(seconds=40)

    over = decide(plan, again.status, resumed, LATER + timedelta(seconds=40), 1)
    assert finished(over) == ("True", "ActiveDeadlineExceeded")
    assert over.actions == (DeleteJob(job.key.name, job.key.uid),)


def test_a_deadline_that_passes_while_the_last_pod_is_collected_still_holds_afterwards() -> None:
    plan = make_plan(sizes=(64, 128), runPolicy={"activeDeadlineSeconds": 100})
    attempt = make_attempt(plan, job_uid="x")
    observed = observe([make_job(plan, attempt, has_ended=True)], [ended(attempt)])
    spent = {"active_seconds": 100, "attempts": (attempt,)}
    decision = next_for(plan, observed, **spent)

    assert [type(action) for action in decision.actions] == [Collect]
    done = next_for(plan, observe(results=[make_summary(plan)]), **spent)
    assert finished(done) == ("True", "ActiveDeadlineExceeded")


def test_without_a_deadline_one_is_derived_from_what_the_cases_may_take() -> None:
    plan = make_plan(sizes=(1, 2, 3), runPolicy={"parallelism": 2, "infrastructureRetries": 1})
    attempts = tuple(make_attempt(plan, index, job_uid="x") for index in range(2))
    late = NOW + 2 * 12 * plan.runner_limit + timedelta(minutes=10)
    pods = [running(attempt, since=late) for attempt in attempts]
    observed = observe([make_job(plan, attempt) for attempt in attempts], pods)
    status = {"attempts": attempts, "active_start_time": NOW.isoformat()}

    assert finished(next_for(plan, observed, at=late - timedelta(seconds=1), **status)) == ("False", "Running")
    assert finished(next_for(plan, observed, at=late, **status)) == ("True", "ActiveDeadlineExceeded")


# -- strays ---------------------------------------------------------------------------------------------------------


def test_an_unknown_job_is_deleted_while_it_runs_and_kept_for_its_log_if_it_has_ended() -> None:
    plan = make_plan()
    now_wanted = make_attempt(plan, number=2, retries=1)
    stray = make_job(plan, make_attempt(plan, number=1))
    going = next_for(plan, observe([stray, make_job(plan, now_wanted)]), attempts=(now_wanted,))
    over = next_for(plan, observe([replace(stray, has_ended=True), make_job(plan, now_wanted)]), attempts=(now_wanted,))

    assert going.actions == (DeleteJob(stray.key.name, stray.key.uid),)
    assert over.actions == ()


# -- the end ----------------------------------------------------------------------------------------------------------


def test_a_finished_run_stays_as_it_is() -> None:
    plan = make_plan()
    done = next_for(plan, observe(results=[make_summary(plan)]), attempts=(make_attempt(plan),))
    later = decide(plan, done.status, observe(), LATER, 1)

    assert later.status == done.status
    assert later.actions == ()


def test_a_finished_run_is_deleted_when_its_time_to_live_is_over() -> None:
    plan = make_plan(runPolicy={"ttlSecondsAfterFinished": 3600})
    done = next_for(plan, observe(results=[make_summary(plan)]), attempts=(make_attempt(plan),))

    assert decide(plan, done.status, observe(), NOW, 1).requeue_at == LATER
    assert decide(plan, done.status, observe(), LATER, 1).actions == (DeleteRun(),)


def test_a_change_of_a_finished_run_is_acknowledged_by_its_conditions_for_which_kubectl_waits() -> None:
    plan = make_plan()
    attempt = make_attempt(plan, job_uid="x")
    done = next_for(plan, observe(results=[make_summary(plan)]), attempts=(attempt,))
    assert finished(done)[0] == "True"
    foreign = Condition(type="example.com/Seen", status="True", reason="Seen", message="", last_transition_time=AT)
    before = done.status.model_copy(update={"conditions": (*done.status.conditions, foreign)})

    after = decide(plan, before, observe(results=[make_summary(plan)]), LATER, 2).status
    assert after.observed_generation == 2
    assert {each.type: each.observed_generation for each in after.conditions} == {
        **dict.fromkeys(("Accepted", "Finished", "Succeeded"), 2),
        "example.com/Seen": None,
    }
    assert [each.last_transition_time for each in after.conditions] == [
        each.last_transition_time for each in before.conditions
    ]


def test_a_repeated_refusal_is_reported_with_the_servers_message_while_the_case_waits() -> None:
    plan = make_plan()
    attempt = make_attempt(plan, job_uid="x")
    observed = observe([make_job(plan, attempt, has_ended=True)], [ended(attempt)])
    for tries, expected in (
        (1, "0 of 1 cases done."),
        (2, f"{attempt.case}: the log of its pod cannot be read: busy. Check"),
    ):
        obstacle = Obstacle(Wait.READ_LOG, NOW, tries, "busy")
        decision = next_for(plan, replace(observed, obstacles={attempt.job: obstacle}), attempts=(attempt,))
        assert expected in message(decision, "Finished")
        assert ("busy" in message(decision, "Finished")) == (tries > 1)
