"""Foreign objects with a name or a label of ours end no case, and block none for ever."""

import asyncio
import copy
from collections.abc import AsyncIterator
from typing import Any

import pytest

from accelbench.api.profiles import Profiles, parse_profiles
from accelbench.api.reasons import AttemptReason
from accelbench.cluster_api.errors import ForbiddenError
from accelbench_operator.runs.actions import Collect, ConfirmFailure, DeleteJob, ReadEvents
from accelbench_operator.runs.apply import ForeignObjectError
from accelbench_operator.runs.attempts import AttemptPhase, EventsToRead, state_of
from accelbench_operator.runs.failure import AttemptFailure
from accelbench_operator.runs.job import build_claim_template, build_job
from accelbench_operator.runs.observed import observe_pod
from accelbench_operator.runs.waits import MINIMUM_TRIES, Wait
from operator_world.api_server import Id
from operator_world.applying import ATTEMPT, CREATE, PLAN, World, with_a_stored_result
from operator_world.builders import ALL_RETRIES, NAMESPACE, NO_RETRIES, UID, make_plan, observe
from operator_world.decisions import next_for

CONFIRM = ConfirmFailure(ATTEMPT, AttemptFailure(AttemptReason.NODE_LOST, "gone"))


@pytest.fixture
def world() -> World:
    return World()


def test_a_copy_of_a_pod_with_all_its_labels_does_not_keep_the_pod_from_being_given_up(world: World) -> None:
    world.do(CREATE)
    world.cluster.start_pods()
    world.cluster.list_into(world.store)
    [pod] = world.cluster.pods.values()
    copy = pod | {"metadata": pod["metadata"] | {"name": "zz-copy", "uid": "zz", "ownerReferences": []}}

    async def list_pods(*_: Any) -> list[Any]:
        return [copy, pod]

    world.cluster.list_pods = list_pods  # type: ignore[method-assign]
    world.do(CONFIRM)
    assert world.failures() == ["NodeLost"]


@pytest.mark.parametrize("first", [0, 1])
def test_two_pods_created_in_the_same_second_are_ranked_alike_in_any_order(world: World, first: int) -> None:
    world.do(CREATE)
    world.cluster.start_pods()
    [pod] = world.cluster.pods.values()
    twin = pod | {"metadata": pod["metadata"] | {"name": "another", "uid": "another"}}
    both = [pod, twin]
    for body in (both[first], both[1 - first]):
        world.store.put(observe_pod(body))

    async def list_pods(*_: Any) -> list[Any]:
        return both

    world.cluster.list_pods = list_pods  # type: ignore[method-assign]
    world.do(CONFIRM)
    assert world.failures() == ["NodeLost"]


def test_a_pod_without_its_labels_still_belongs_to_its_job(world: World) -> None:
    world.do(CREATE)
    world.cluster.start_pods()
    world.cluster.list_into(world.store)
    [pod] = world.cluster.pods.values()
    pod["metadata"]["labels"] = {"batch.kubernetes.io/job-name": ATTEMPT.job}  # the Job controller's own
    world.store.replace("Pod", None, [], world.store.tick)
    world.do(Collect(ATTEMPT, ALL_RETRIES))
    assert [pod.case for (pod,) in world.observed().pods.values()] == [ATTEMPT.case]


def with_a_running_pod(world: World) -> Any:
    world.do(CREATE)
    world.cluster.start_pods()
    [pod] = world.cluster.pods.values()
    return pod


OWNERS = {
    "a ConfigMap of the Job's name": {"apiVersion": "v1", "kind": "ConfigMap", "name": ATTEMPT.job, "uid": "y"},
    "another Job of that name": {"apiVersion": "batch/v1", "kind": "Job", "name": ATTEMPT.job, "uid": "y"},
    "a Job of another group": {"apiVersion": "example.com/v1", "kind": "Job", "name": ATTEMPT.job},
}


@pytest.mark.parametrize("owner", OWNERS.values(), ids=OWNERS.keys())
@pytest.mark.parametrize("asked", ["the watch", "the API server"])
def test_a_pod_of_another_controller_brings_no_result(world: World, owner: Any, asked: str) -> None:
    pod = with_a_running_pod(world)
    own_uid = pod["metadata"]["ownerReferences"][0]["uid"]
    forged = copy.deepcopy(pod)
    forged["metadata"] |= {"name": "forged", "uid": "forged", "ownerReferences": [{"uid": own_uid} | owner]}
    forged["metadata"]["ownerReferences"][0]["controller"] = True
    forged["status"]["phase"] = "Succeeded"
    if asked == "the watch":
        for body in (pod, forged):
            world.store.put(observe_pod(body))
    world.cluster.server._store("ADDED", Id("pods", NAMESPACE, "forged"), forged)
    state = state_of(ATTEMPT, PLAN, world.observed(), world.cluster.now)
    assert state.phase is not AttemptPhase.OVER
    world.do(CONFIRM)  # asks for the pods
    if asked == "the API server":
        world.do(CONFIRM)
    assert world.failures() == ["NodeLost"]  # of the real pod: the forged one has succeeded


def with_a_foreign_job(world: World, **changes: Any) -> None:
    """Create the attempt's Job as another user, with its labels, the run as its owner, and another image."""
    job = build_job(PLAN.run, PLAN.case(ATTEMPT.case), ATTEMPT.number, PLAN.runner)
    job["spec"]["template"]["spec"]["containers"][0] |= changes
    world.cluster.server.create("jobs", job)


CHANGES: tuple[dict[str, Any], ...] = (
    {"image": "attacker"},
    {"lifecycle": {"postStart": {"exec": {"command": ["forge"]}}}},
    {"env": []},
)


@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_a_job_that_differs_from_the_operators_own_is_replaced(world: World, changes: dict[str, Any]) -> None:
    with_a_foreign_job(world, **changes)
    world.cluster.list_into(world.store)
    assert state_of(ATTEMPT, PLAN, world.observed(), world.cluster.now).phase is AttemptPhase.RECORDED
    with pytest.raises(ForeignObjectError, match="was not created by this operator, which has deleted it"):
        world.do(CREATE)
    assert world.observed().job(ATTEMPT) is None

    world.do(CREATE)
    assert world.observed().job(ATTEMPT) is not None
    [job] = world.cluster.jobs.values()
    assert job["spec"]["template"]["spec"]["containers"][0]["image"] == PLAN.runner.image


def test_a_job_that_an_earlier_process_of_the_operator_created_is_adopted(world: World) -> None:
    world.do(CREATE)
    [job] = world.cluster.jobs.values()
    job["spec"]["suspend"] = True  # by its queue
    world.applier.forget_all()  # another process continues
    world.cluster.list_into(world.store)
    assert world.observed().job(ATTEMPT) is None
    world.do(CREATE)
    assert world.observed().job(ATTEMPT) is not None
    assert world.cluster.created == [ATTEMPT.job]


def test_a_dry_run_that_a_quota_refuses_proves_nothing(world: World) -> None:
    world.do(CREATE)
    world.applier.forget_all()

    async def preview(*_: Any) -> Any:
        raise ForbiddenError(403, "exceeded quota")

    world.cluster.preview = preview  # type: ignore[method-assign]
    with pytest.raises(ForeignObjectError):
        world.do(CREATE)
    assert not world.cluster.jobs


def test_a_foreign_job_in_place_of_the_operators_does_not_count_as_the_attempts(world: World) -> None:
    world.do(CREATE)
    known = world.attempt
    world.cluster.delete(ATTEMPT.job)
    with_a_foreign_job(world)
    world.cluster.list_into(world.store)
    assert world.observed().job(known) is None
    decision = next_for(PLAN, world.observed(), at=world.cluster.now, attempts=(known,))
    assert [type(action) for action in decision.actions] == [Collect, DeleteJob]
    world.do(Collect(known, ALL_RETRIES))
    assert world.failures() == ["JobDeleted"]


def test_the_log_of_another_pod_of_the_same_name_brings_no_result(world: World) -> None:
    pod = with_a_running_pod(world)
    world.cluster.end(ATTEMPT.job, "whole")
    pod["status"]["containerStatuses"][0]["state"]["terminated"]["message"] = ""  # the log alone has the result
    world.cluster.list_into(world.store)
    # The pod is deleted, and another user creates one with its name, which prints the same.
    world.cluster.logs["another"] = world.cluster.logs[pod["metadata"]["uid"]]
    pod["metadata"]["uid"] = "another"
    world.do(Collect(ATTEMPT, NO_RETRIES))
    assert world.failures() == ["ResultLost"]


def test_a_disruption_of_a_foreign_pod_explains_nothing(world: World) -> None:
    pod = copy.deepcopy(with_a_running_pod(world))
    world.cluster.list_into(world.store)
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "Forged", "message": "by hand"}
    pod["status"]["conditions"] = [condition]
    pod["metadata"] |= {
        "name": "forged",
        "ownerReferences": [OWNERS["another Job of that name"] | {"controller": True}],
    }
    world.store.put(observe_pod(pod))
    world.store.remove("Pod", (NAMESPACE, "forged"))
    assert world.observed().removals == {}


def test_a_claim_template_for_another_device_is_not_used(world: World) -> None:
    profiles = Profiles(parse_profiles("dra: {preset: dra-nvidia}", "x"))
    plan = make_plan(profiles=profiles, accelerator={"profile": "dra"})
    template = build_claim_template(plan.run, plan.profile)
    template["spec"]["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = "another"
    world.cluster.server.create("resourceclaimtemplates", template)
    with pytest.raises(ForeignObjectError, match="does not belong to this run: delete it"):
        asyncio.run(world.applier.apply(CREATE, plan, observe()))
    assert not world.cluster.jobs


def with_a_foreign_result(world: World) -> None:
    with_a_stored_result(world)
    [stored] = world.cluster.results.values()
    stored["metadata"]["labels"] = {}
    world.store.replace("BenchmarkResult", None, [], world.store.tick)


def test_a_foreign_result_under_the_cases_name_ends_the_case_and_is_named(world: World) -> None:
    with_a_foreign_result(world)
    world.do(Collect(ATTEMPT, ALL_RETRIES))
    assert world.failures() == ["ResultRefused"]
    [failure] = world.applier.memory(UID).failures.values()
    assert "exists and does not belong to this run: delete it" in failure.message


def test_a_foreign_result_does_not_count_when_a_run_is_about_to_finish(world: World) -> None:
    with_a_foreign_result(world)
    assert asyncio.run(world.applier.load_missing_results(PLAN, [ATTEMPT.case], observe())) is False


def test_a_case_waits_although_the_operator_may_not_read_events(world: World) -> None:
    world.do(CREATE)

    async def list_events(_: str) -> AsyncIterator[Any]:
        raise ForbiddenError(403, "no")
        yield

    world.cluster.list_events = list_events  # type: ignore[method-assign]
    world.do(ReadEvents(ATTEMPT, EventsToRead(Wait.POD, "x", world.cluster.now)))
    [asked] = world.applier.memory(UID).obstacles.values()
    assert (asked.tries, asked.message) == (1, "")


def test_a_job_that_stays_without_its_owner_ends_the_case(world: World) -> None:
    world.do(CREATE)
    known = world.attempt
    world.cluster.jobs[ATTEMPT.job]["metadata"]["ownerReferences"] = []
    for _ in range(MINIMUM_TRIES):
        with pytest.raises(ForeignObjectError):
            world.do(Collect(known, ALL_RETRIES), observe())
    assert world.failures() == []

    world.cluster.advance(Wait.FIND_POD.default_limit)
    world.do(Collect(known, ALL_RETRIES), observe())
    assert world.failures() == ["ResultLost"]
