"""decide(): the time for which a run was active is its pods' own."""

from dataclasses import replace
from datetime import timedelta

from accelbench.api.reasons import AttemptReason
from accelbench_operator.decide import Collect, decide
from accelbench_operator.failure import AttemptFailure
from accelbench_operator.status import timestamp
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


def test_an_operator_that_was_away_counts_the_pods_time_and_not_its_own() -> None:
    plan = make_plan(sizes=(64, 128), runPolicy={"activeDeadlineSeconds": 600})
    attempt = make_attempt(plan, job_uid="x")
    job, pod = make_job(plan, attempt), running(attempt, NOW + timedelta(seconds=5))
    at_work = next_for(plan, observe([job], [pod]), at=NOW + timedelta(seconds=20), attempts=(attempt,)).status
    assert at_work.active_start_time == "2026-03-01T12:00:05Z"

    over = replace(pod, phase="Succeeded", ended=NOW + timedelta(seconds=65), exit_code=0)
    back = observe([replace(job, ended=True)], [over])
    decision = decide(plan, at_work, back, NOW + timedelta(hours=2), 1)
    assert (decision.status.active_seconds, decision.status.active_start_time) == (60, None)
    assert [type(action) for action in decision.actions] == [Collect]
    assert finished(decision) == ("False", "Running")  # it is being collected: no flap back to Queued


def test_a_pod_whose_node_was_lost_gives_its_time_to_no_later_case() -> None:
    plan = make_plan(sizes=(64, 128), runPolicy={"infrastructureRetries": 0})
    lost = make_attempt(plan, finished=True, reason="NodeLost", message="gone")
    second = make_attempt(plan, 1, job_uid="x")
    began = NOW + timedelta(hours=1)
    observed = observe([make_job(plan, second)], [running(lost), running(second, began)])
    decision = next_for(plan, observed, at=began + timedelta(seconds=5), attempts=(lost, second))
    assert decision.status.active_start_time == timestamp(began)


def test_a_pod_that_was_discarded_counts_until_then_whatever_ended_before_it() -> None:
    plan = make_plan(sizes=(64, 128), runPolicy={"suspend": True})
    done, going = make_attempt(plan, finished=True, reason="CaseFailed"), make_attempt(plan, 1, job_uid="x")
    began = NOW + timedelta(hours=1)
    pods = [ended(done), running(going, began)]
    status = {"attempts": (done, going), "active_start_time": timestamp(began)}
    decision = next_for(plan, observe([make_job(plan, going)], pods), at=began + timedelta(seconds=90), **status)
    assert (decision.status.active_seconds, decision.status.active_start_time) == (90, None)
