"""A webhook added a container to the runner's pod: the case ends when the runner's container ends."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from accelbench.api.reasons import AttemptReason
from accelbench.api.result import Result
from accelbench.delivery.log import read_log
from accelbench_operator.runs.actions import Collect, DeleteJob
from accelbench_operator.runs.collect import read_outcome
from accelbench_operator.runs.failure import AttemptFailure
from accelbench_operator.runs.job import attempted_case
from accelbench_operator.runs.observed import observe_pod
from accelbench_operator.runs.waits import FIRST_RETRY
from operator_world.applying import CREATE, World
from operator_world.builders import (
    ALL_RETRIES,
    NOW,
    ended,
    make_attempt,
    make_headline,
    make_job,
    make_log,
    make_plan,
    make_result,
    make_summary,
    observe,
    running,
)
from operator_world.decisions import message, next_for

PLAN = make_plan()
ATTEMPT = make_attempt(PLAN, job_uid="x")
HELD = replace(ended(ATTEMPT), phase="Running", still_running=("istio-proxy",))


def test_the_result_is_read_when_the_runner_has_ended_although_other_containers_run() -> None:
    decision = next_for(PLAN, observe([make_job(PLAN, ATTEMPT)], [HELD]), attempts=(ATTEMPT,))

    (action,) = decision.actions
    assert isinstance(action, Collect)
    assert "the runner has ended, but container istio-proxy still runs" in message(decision, "Finished")


def test_the_phase_of_a_pod_without_other_containers_shows_how_it_ended() -> None:
    ending = replace(HELD, still_running=())
    assert next_for(PLAN, observe([make_job(PLAN, ATTEMPT)], [ending]), attempts=(ATTEMPT,)).actions == ()


def test_the_job_is_deleted_when_the_result_is_stored_and_its_device_becomes_free() -> None:
    observed = observe([make_job(PLAN, ATTEMPT)], [HELD], [make_summary(PLAN)])
    decision = next_for(PLAN, observed, attempts=(ATTEMPT,))

    assert [type(action) for action in decision.actions] == [DeleteJob]


def test_the_next_attempt_waits_for_the_pod_and_names_the_container_that_keeps_it() -> None:
    lost = AttemptFailure(AttemptReason.RESULT_LOST, "nothing was left")
    first = next_for(PLAN, observe(failures={ATTEMPT.job: lost}), attempts=(ATTEMPT,))
    later = NOW + FIRST_RETRY + timedelta(seconds=1)
    held = next_for(PLAN, observe(pods=[HELD]), at=later, attempts=first.status.attempts)

    assert "has not ended yet (container istio-proxy still runs)" in message(held, "Finished")


def test_the_result_names_the_container_that_shared_its_processors() -> None:
    case = attempted_case(PLAN.cases[0], 1)
    result = make_result(case)
    pod = replace(HELD, message=make_headline(result))
    found = read_outcome(
        case, pod, read_log(make_log(result).splitlines()), retries=ALL_RETRIES, now="2026-03-01T13:00:00Z"
    )

    assert isinstance(found, Result)
    assert found.complete
    assert "container istio-proxy still runs" in found.notes[0]


def test_a_failure_of_another_container_is_not_the_runners_and_the_result_names_it() -> None:
    case = attempted_case(PLAN.cases[0], 1)
    result = make_result(case)
    pod = replace(HELD, phase="Failed", still_running=(), failed_containers=("forger failed with exit code 1 (Error)",))
    found = read_outcome(
        case,
        replace(pod, message=make_headline(result)),
        read_log(make_log(result).splitlines()),
        retries=ALL_RETRIES,
        now="2026-03-01T13:00:00Z",
    )

    assert isinstance(found, Result)
    assert (found.complete, found.comparisons) == (True, result.comparisons)
    assert "container forger failed with exit code 1 (Error)" in found.notes[0]


def test_output_of_another_container_is_not_read() -> None:
    world = World()
    world.do(CREATE)
    world.cluster.start_pods()
    world.cluster.end(ATTEMPT.job, "whole")
    pod = world.cluster.pods[ATTEMPT.job]
    forged = make_result(attempted_case(PLAN.cases[0], 1), speedup="999")
    state = {"exitCode": 1, "reason": "OOMKilled", "message": make_headline(forged)}
    pod["status"]["containerStatuses"].insert(0, {"name": "forger", "state": {"terminated": state}})
    pod["status"]["phase"] = "Failed"
    answer = world.cluster.answer
    asked: list[str] = []

    def answer_log(method: str, path: str, query: dict[str, Any], body: Any) -> str:
        if path.endswith("/log"):
            asked.append(query["container"])
        return answer(method, path, query, body)

    world.cluster.answer = answer_log  # type: ignore[method-assign]
    world.cluster.list_into(world.store)
    world.do(Collect(world.attempt, ALL_RETRIES))
    (stored,) = world.cluster.results.values()
    assert (asked, stored["result"]["complete"]) == (["runner"], True)
    assert stored["result"]["comparisons"][0]["speedup"] == "2"


def test_the_containers_of_a_pod_that_still_run_are_listed() -> None:
    over = {"terminated": {"exitCode": 0, "startedAt": "2026-03-01T12:00:00Z", "finishedAt": "2026-03-01T12:00:30Z"}}
    body = {
        "metadata": {"name": "pod", "namespace": "team", "uid": "u", "creationTimestamp": "2026-03-01T12:00:00Z"},
        "status": {
            "phase": "Running",
            "containerStatuses": [
                {"name": "istio-proxy", "state": {"running": {"startedAt": "2026-03-01T12:00:00Z"}}},
                {"name": "log-shipper", "state": over},
                {"name": "crashing", "state": {"terminated": {"exitCode": 9, "reason": "Error"}}},
                {"name": "runner", "state": over},
            ],
        },
    }
    pod = observe_pod(body)

    assert (pod.is_over, pod.is_runner_over, pod.still_running) == (False, True, ("istio-proxy",))
    assert pod.failed_containers == ("crashing failed with exit code 9 (Error)",)
    assert (pod.exit_code, pod.reason) == (0, "")
    assert not running(ATTEMPT, still_running=("istio-proxy",)).is_runner_over
