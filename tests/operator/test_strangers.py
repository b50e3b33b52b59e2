"""Objects of somebody else under a name or a label of ours: they end nothing of ours, and hold nothing up for ever."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from accelbench.api.reasons import AttemptReason
from accelbench.cluster_api.errors import ForbiddenError
from accelbench_operator.runs.actions import Collect, ConfirmFailure, ReadEvents
from accelbench_operator.runs.apply import ForeignObjectError
from accelbench_operator.runs.attempts import EventsToRead
from accelbench_operator.runs.failure import AttemptFailure
from accelbench_operator.runs.observed import observe_pod
from accelbench_operator.runs.waits import MINIMUM_TRIES, Wait
from operator_world.applying import ATTEMPT, CREATE, KEY, PLAN, World, with_a_stored_result
from operator_world.builders import UID, observe

CONFIRM = ConfirmFailure(ATTEMPT, AttemptFailure(AttemptReason.NODE_LOST, "gone"))


@pytest.fixture
def world() -> World:
    return World()


def test_a_copy_of_a_pod_with_all_its_labels_keeps_no_one_from_giving_up_the_pod(world: World) -> None:
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
def test_of_two_pods_of_one_second_the_same_one_counts_whoever_tells_of_them(world: World, first: int) -> None:
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


def test_a_pod_that_somebody_took_the_labels_off_is_still_its_jobs_pod(world: World) -> None:
    world.do(CREATE)
    world.cluster.start_pods()
    world.cluster.list_into(world.store)
    [pod] = world.cluster.pods.values()
    pod["metadata"]["labels"] = {"batch.kubernetes.io/job-name": ATTEMPT.job}  # the Job controller's own
    world.store.replace("Pod", None, [], world.store.tick)
    world.do(Collect(ATTEMPT, is_last=False))
    assert [pod.case for (pod,) in world.objects.observed(KEY).pods.values()] == [ATTEMPT.case]


def with_a_foreign_result(world: World) -> None:
    with_a_stored_result(world)
    [stored] = world.cluster.results.values()
    stored["metadata"]["labels"] = {}
    world.store.replace("BenchmarkResult", None, [], world.store.tick)


def test_a_result_of_somebody_else_in_place_of_ours_ends_the_case_and_is_named(world: World) -> None:
    with_a_foreign_result(world)
    world.do(Collect(ATTEMPT, is_last=False))
    assert world.failures() == ["ResultRefused"]
    [failure] = world.applier.memory(UID).failures.values()
    assert "exists and does not belong to this run: delete it" in failure.message


def test_a_result_of_somebody_else_is_no_result_of_a_run_that_is_about_to_finish(world: World) -> None:
    with_a_foreign_result(world)
    assert asyncio.run(world.applier.load_missing_results(PLAN, [ATTEMPT.case], observe())) is False


def test_events_that_may_not_be_read_keep_no_case_from_waiting(world: World) -> None:
    world.do(CREATE)

    async def list_events(_: str) -> AsyncIterator[Any]:
        raise ForbiddenError(403, "no")
        yield

    world.cluster.list_events = list_events  # type: ignore[method-assign]
    world.do(ReadEvents(ATTEMPT, EventsToRead(Wait.POD, "x", world.cluster.now)))
    [asked] = world.applier.memory(UID).obstacles.values()
    assert (asked.tries, asked.message) == (1, "")


def test_a_job_of_somebody_else_in_place_of_ours_ends_the_case_in_the_end(world: World) -> None:
    world.do(CREATE)
    world.cluster.jobs[ATTEMPT.job]["metadata"]["ownerReferences"] = []
    known = ATTEMPT.model_copy(update={"job_uid": "x"})
    for _ in range(MINIMUM_TRIES):
        with pytest.raises(ForeignObjectError):
            world.do(Collect(known, is_last=False), observe())
    assert world.failures() == []

    world.cluster.advance(Wait.LOOK.default_limit)
    world.do(Collect(known, is_last=False), observe())
    assert world.failures() == ["ResultLost"]
