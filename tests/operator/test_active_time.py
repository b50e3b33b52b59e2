"""decide(): the active time of a run is the time of its pods."""

from dataclasses import replace
from datetime import timedelta

import pytest

from accelbench.api.reasons import AttemptReason
from accelbench.document import timestamp
from accelbench_operator.runs.actions import Collect
from accelbench_operator.runs.decide import decide
from accelbench_operator.runs.failure import AttemptFailure
from accelbench_operator.runs.observed import observe_pod
from operator_world.builders import (
    NOW,
    ended,
    make_attempt,
    make_job,
    make_plan,
    observe,
    running,
)
from operator_world.decisions import finished, next_for

AT = "2026-03-01T12:00:00Z"
LATER = NOW + timedelta(hours=1)
INFRASTRUCTURE = AttemptFailure(AttemptReason.NODE_LOST, "gone")
FINAL = AttemptFailure(AttemptReason.INVALID_CASE, "no such thing")


def test_an_operator_that_was_down_counts_the_pods_time_and_not_its_own() -> None:
    plan = make_plan(sizes=(64, 128), runPolicy={"activeDeadlineSeconds": 600})
    attempt = make_attempt(plan, job_uid="x")
    job, pod = make_job(plan, attempt), running(attempt, NOW + timedelta(seconds=5))
    at_work = next_for(plan, observe([job], [pod]), at=NOW + timedelta(seconds=20), attempts=(attempt,)).status
    assert at_work.active_start_time == "2026-03-01T12:00:05Z"

    over = replace(pod, phase="Succeeded", ended_at=NOW + timedelta(seconds=65), exit_code=0)
    back = observe([replace(job, has_ended=True)], [over])
    decision = decide(plan, at_work, back, NOW + timedelta(hours=2), 1)
    assert (decision.status.active_seconds, decision.status.active_start_time) == (60, None)
    assert [type(action) for action in decision.actions] == [Collect]
    assert finished(decision) == ("False", "Running")  # it is being collected: no flap back to Queued


def test_the_time_of_a_pod_on_a_lost_node_does_not_count_for_later_cases() -> None:
    plan = make_plan(sizes=(64, 128), runPolicy={"infrastructureRetries": 0})
    lost = make_attempt(plan, finished=True, reason="NodeLost", message="gone")
    second = make_attempt(plan, 1, job_uid="x")
    began = NOW + timedelta(hours=1)
    observed = observe([make_job(plan, second)], [running(lost), running(second, began)])
    decision = next_for(plan, observed, at=began + timedelta(seconds=5), attempts=(lost, second))
    assert decision.status.active_start_time == timestamp(began)


def test_a_discarded_pod_counts_as_active_until_it_was_discarded() -> None:
    plan = make_plan(sizes=(64, 128), runPolicy={"suspend": True, "parallelism": 2})
    over, going = make_attempt(plan, job_uid="w"), make_attempt(plan, 1, job_uid="x")
    jobs = [make_job(plan, over, has_ended=True), make_job(plan, going)]
    pods = [ended(over), running(going)]
    status = {"attempts": (over, going), "active_start_time": timestamp(NOW)}
    decision = next_for(plan, observe(jobs, pods), at=NOW + timedelta(seconds=90), **status)
    assert (decision.status.active_seconds, decision.status.active_start_time) == (90, None)


def test_a_container_that_never_started_used_no_time_though_its_runtime_reports_1970() -> None:
    state = {"exitCode": 128, "reason": "StartError", "message": "no such file", "startedAt": "1970-01-01T00:00:00Z"}
    status = {"phase": "Failed", "containerStatuses": [{"name": "runner", "state": {"terminated": state}}]}
    metadata = {"name": "p", "namespace": "team", "creationTimestamp": timestamp(NOW)}
    assert observe_pod({"metadata": metadata, "status": status}).started_at is None


@pytest.mark.parametrize("wrong", [timedelta(minutes=-20), timedelta(minutes=20)], ids=str)
def test_a_wrong_clock_of_a_node_does_not_shorten_a_deadline(wrong: timedelta) -> None:
    plan = make_plan(runPolicy={"activeDeadlineSeconds": 600})
    attempt = make_attempt(plan, job_uid="x")
    pod = running(attempt, NOW + wrong)
    at = NOW + timedelta(seconds=5)
    decision = next_for(plan, observe([make_job(plan, attempt)], [pod]), at=at, attempts=(attempt,))
    assert finished(decision) == ("False", "Running")
    assert decision.status.active_start_time in {timestamp(NOW), timestamp(at)}


def test_a_node_whose_clock_is_ahead_adds_no_active_time_when_a_case_ends() -> None:
    plan = make_plan(sizes=(64, 128), runPolicy={"activeDeadlineSeconds": 600})
    attempt = make_attempt(plan, job_uid="x")
    at = NOW + timedelta(seconds=30)
    pod = ended(attempt, ended_at=NOW + timedelta(hours=2))
    observed = observe([make_job(plan, attempt, has_ended=True)], [pod])
    decision = next_for(plan, observed, at=at, attempts=(attempt,), active_start_time=timestamp(NOW))
    assert decision.status.active_seconds == 30
    assert finished(decision) == ("False", "Running")


@pytest.mark.parametrize("behind", [timedelta(hours=2), timedelta(days=400)], ids=str)
def test_a_node_whose_clock_is_behind_keeps_its_pod(behind: timedelta) -> None:
    plan = make_plan()
    attempt = make_attempt(plan, job_uid="x")
    pod = running(attempt, NOW - behind)
    decision = next_for(plan, observe([make_job(plan, attempt)], [pod]), at=NOW, attempts=(attempt,))
    assert decision.actions == ()
    assert decision.requeue_at is not None
    assert decision.requeue_at > NOW + plan.runner_limit


def test_a_node_whose_clock_is_behind_keeps_a_pod_that_waited_for_hours() -> None:
    plan = make_plan()
    attempt = make_attempt(plan, job_uid="x")
    pod = running(attempt, NOW - timedelta(hours=2), created_at=NOW - timedelta(hours=5), scheduled_at=NOW)
    decision = next_for(plan, observe([make_job(plan, attempt)], [pod]), at=NOW, attempts=(attempt,))
    assert decision.actions == ()
    assert decision.requeue_at is not None
    assert decision.requeue_at > NOW + plan.runner_limit
