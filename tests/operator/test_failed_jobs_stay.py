"""The Job, pod and log of a case without a valid result are kept, so that `kubectl logs` shows the reason."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from accelbench.api.reasons import AttemptReason
from accelbench.api.result import Failure
from accelbench.api.run import Attempt
from accelbench_operator.runs.accept import Plan
from accelbench_operator.runs.actions import DeleteJob
from accelbench_operator.runs.failure import AttemptFailure
from accelbench_operator.runs.observed import ObservedJob, observe_job
from operator_world.builders import (
    NOW,
    ended,
    make_attempt,
    make_job,
    make_plan,
    make_summary,
    observe,
    running,
)
from operator_world.decisions import finished, next_for

HOUR = timedelta(hours=1)
RAISED = {"failure": Failure(reason="Raised", message="oh", round=1)}
PARTIAL = {"complete": False}


def over(plan: Plan, attempt: Attempt, ago: timedelta = timedelta()) -> ObservedJob:
    return make_job(plan, attempt, has_ended=True, ended_at=NOW - ago)


def deleted(decision: Any) -> list[str]:
    return [action.name for action in decision.actions if isinstance(action, DeleteJob)]


@pytest.mark.parametrize("result", [RAISED, PARTIAL])
def test_the_job_of_a_result_that_is_not_valid_stays_for_an_hour(result: Any) -> None:
    plan = make_plan()
    attempt = make_attempt(plan, job_uid="x")
    job, summary = over(plan, attempt), make_summary(plan, **result)
    done = next_for(plan, observe([job], [ended(attempt)], [summary]), attempts=(attempt,))
    assert (finished(done)[0], deleted(done), done.requeue_at) == ("True", [], NOW + HOUR)

    observed = observe([job], [ended(attempt)], [summary])
    later = next_for(plan, observed, at=NOW + HOUR, **dict(done.status))
    assert later.actions == (DeleteJob(job.key.name, job.key.uid, summary.name),)


def test_the_job_of_a_run_that_accepts_noise_is_deleted_at_once_though_it_has_no_verdict() -> None:
    plan = make_plan()
    attempt = make_attempt(plan, job_uid="x")
    job, quiet = over(plan, attempt), make_summary(plan)
    comparison = quiet.comparisons[0].model_copy(update={"verdict": None, "noisy": True})
    noisy = replace(quiet, valid=False, noisy=True, comparisons=(comparison,))
    done = next_for(plan, observe([job], [ended(attempt)], [noisy]), attempts=(attempt,))
    assert deleted(done) == [job.key.name]


def test_the_job_of_a_case_that_failed_stays_for_an_hour() -> None:
    plan = make_plan()
    attempt = make_attempt(plan, job_uid="x")
    job, failure = over(plan, attempt), AttemptFailure(AttemptReason.INVALID_CASE, "no such thing")
    observed = observe([job], [ended(attempt, 2)], failures={attempt.job: failure})
    done = next_for(plan, observed, attempts=(attempt,))
    assert (finished(done)[0], deleted(done), done.requeue_at) == ("True", [], NOW + HOUR)
    assert deleted(next_for(plan, observed, at=NOW + HOUR, **dict(done.status))) == [job.key.name]


def test_the_jobs_of_a_valid_result_and_of_its_earlier_attempts_are_deleted_at_once() -> None:
    plan = make_plan()
    first, second = make_attempt(plan, job_uid="x"), make_attempt(plan, number=2, job_uid="y")
    jobs = [over(plan, first), over(plan, second)]
    decision = next_for(plan, observe(jobs, [ended(second)], [make_summary(plan)]), attempts=(second,))
    assert set(deleted(decision)) == {first.job, second.job}


def test_the_policy_sets_how_many_stay_and_for_how_long() -> None:
    policy = {"failedJobsHistoryLimit": 2, "failedJobsHistorySeconds": 600}
    plan = make_plan(sizes=(1, 2, 3, 4), runPolicy=policy)
    attempts = [make_attempt(plan, index, job_uid="x") for index in range(4)]
    jobs = [over(plan, attempt, timedelta(minutes=minutes)) for minutes, attempt in enumerate(attempts)]
    summaries = [make_summary(plan, index, **RAISED) for index in range(4)]
    decision = next_for(plan, observe(jobs, results=summaries), attempts=tuple(attempts))

    assert set(deleted(decision)) == {jobs[2].key.name, jobs[3].key.name}
    assert decision.requeue_at == NOW + timedelta(minutes=9)


def test_a_policy_of_none_deletes_them_at_once() -> None:
    plan = make_plan(runPolicy={"failedJobsHistoryLimit": 0})
    attempt = make_attempt(plan, job_uid="x")
    observed = observe([over(plan, attempt)], [ended(attempt)], [make_summary(plan, **RAISED)])
    assert deleted(next_for(plan, observed, attempts=(attempt,))) == [attempt.job]


def test_a_job_whose_pod_has_ended_stays_before_its_controller_reports_the_end() -> None:
    plan = make_plan()
    attempt = make_attempt(plan, job_uid="x")
    going, failed = make_job(plan, attempt), make_summary(plan, **RAISED)
    assert deleted(next_for(plan, observe([going], [ended(attempt)], [failed]), attempts=(attempt,))) == []


def test_a_job_whose_pod_still_holds_a_device_does_not_stay() -> None:
    plan = make_plan()
    attempt = make_attempt(plan, job_uid="x")
    going, failed = make_job(plan, attempt), make_summary(plan, **RAISED)
    held = replace(ended(attempt), phase="Running", still_running=("istio-proxy",))
    for pods in ([], [running(attempt)], [held]):
        assert deleted(next_for(plan, observe([going], pods, [failed]), attempts=(attempt,))) == [attempt.job]
    suspended = replace(going, is_suspended=True)
    observed = observe([suspended], [ended(attempt)], [failed])
    assert deleted(next_for(plan, observed, attempts=(attempt,))) == [attempt.job]


def test_the_end_of_a_job_is_when_its_controller_reported_it() -> None:
    plan = make_plan()
    at = "2026-03-01T12:07:00Z"
    condition = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "lastTransitionTime": at}
    owner = {
        "apiVersion": "accelbench.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "name": "chain",
        "uid": "u",
        "controller": True,
    }
    times = {"creationTimestamp": "2026-03-01T12:00:00Z"}
    metadata = {"name": make_attempt(plan).job, "namespace": "team", "uid": "j", "ownerReferences": [owner]}
    job = observe_job({"metadata": metadata | times, "status": {"conditions": [condition]}})
    assert job is not None
    assert job.ended_at == NOW + timedelta(minutes=7)
