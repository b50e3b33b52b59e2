"""What is done live, whatever the store has heard: results are asked for, owners compared, losses found out."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from accelbench.api import labels
from accelbench.api.reasons import AttemptReason
from accelbench_operator.apply import LOG_PATIENCE, QUOTA_PATIENCE, Applier, ForeignObjectError
from accelbench_operator.attempts import Observed
from accelbench_operator.decide import Collect, Confirm, CreateJob, DeleteJob
from accelbench_operator.failure import AttemptFailure
from accelbench_operator.kubernetes_api import ApiError, ForbiddenError, InvalidError, UnreachableError
from accelbench_operator.store import Store
from operator_world.builders import NAMESPACE, UID, ended, make_attempt, make_job, make_plan, observe, run_manifest
from operator_world.simulated import SimulatedCluster

PLAN = make_plan()
CASE = PLAN.cases[0].name
ATTEMPT = make_attempt(PLAN)
CREATE = CreateJob(CASE, 1)
CONFIRM = Confirm(ATTEMPT, AttemptFailure(AttemptReason.NODE_LOST, "gone"))


class World:
    def __init__(self) -> None:
        self.cluster = SimulatedCluster(run_manifest(), lambda: "")
        self.store = Store(lambda _: None)
        self.applier = Applier(self.cluster, self.store, self.cluster.clock)

    def do(self, action: Any, observed: Observed | None = None) -> None:
        if isinstance(action, DeleteJob):
            asyncio.run(self.applier.delete_job(action, NAMESPACE))
        else:
            asyncio.run(self.applier.apply(action, PLAN, observed or self.store.observed(NAMESPACE, UID, {})))

    def losses(self) -> list[str]:
        return [loss.reason for loss in self.applier.losses.get(UID, {}).values()]


@pytest.fixture
def world() -> World:
    return World()


def raising(error: ApiError) -> Callable[..., Any]:
    async def request(*_: Any) -> Any:
        raise error

    return request


def with_a_stored_result(world: World) -> None:
    world.do(CREATE)
    world.cluster.start_pods()
    world.cluster.end(ATTEMPT.job, "whole")
    world.cluster.list_into(world.store)
    world.do(Collect(ATTEMPT, last=False))


def test_a_created_job_is_known_before_the_watch_tells_of_it(world: World) -> None:
    world.do(CREATE)

    assert set(world.store.observed(NAMESPACE, UID, {}).jobs) == {ATTEMPT.job}


def test_no_job_is_created_for_a_case_that_has_a_result_even_if_the_store_has_not_heard(world: World) -> None:
    with_a_stored_result(world)
    world.cluster.delete(ATTEMPT.job)
    world.store.replace("BenchmarkResult", None, [], world.store.now)
    world.do(CREATE)

    assert world.cluster.created == [ATTEMPT.job]
    assert set(world.store.observed(NAMESPACE, UID, {}).results) == {CASE}


def test_a_job_that_exists_already_is_ours_where_its_owner_is_the_run(world: World) -> None:
    world.do(CREATE)
    world.do(CREATE)

    assert world.cluster.created == [ATTEMPT.job]


@pytest.mark.parametrize("label", [UID, "another"])
def test_a_job_of_the_same_name_and_another_owner_is_not_taken_for_ours(world: World, label: str) -> None:
    world.do(CREATE)
    metadata = world.cluster.jobs[ATTEMPT.job]["metadata"]
    metadata["ownerReferences"][0]["uid"] = "another"
    metadata["labels"][labels.RUN_UID] = label

    with pytest.raises(ForeignObjectError, match="is not this run's"):
        world.do(CREATE)


def test_a_result_that_is_stored_is_found_even_if_the_store_has_not_heard_and_the_pod_is_gone(world: World) -> None:
    with_a_stored_result(world)
    world.store.replace("BenchmarkResult", None, [], world.store.now)
    world.do(Collect(ATTEMPT, last=False), observe([make_job(PLAN, ATTEMPT, ended=True)]))

    assert world.losses() == []
    assert set(world.store.observed(NAMESPACE, UID, {}).results) == {CASE}


def test_a_job_that_the_api_server_never_takes_ends_the_case_with_its_words(world: World) -> None:
    world.cluster.create_job = raising(InvalidError(422, "spec.template: no"))  # type: ignore[method-assign]
    world.do(CREATE)

    assert world.losses() == ["JobRefused"]


def test_a_job_is_not_deleted_while_its_result_is_not_stored_whatever_the_store_says(world: World) -> None:
    with_a_stored_result(world)
    name = world.cluster.stored[0]
    del world.cluster.results[name]
    world.do(DeleteJob(ATTEMPT.job, world.cluster.jobs[ATTEMPT.job]["metadata"]["uid"], name))

    assert ATTEMPT.job in world.cluster.jobs
    assert world.store.observed(NAMESPACE, UID, {}).results == {}


def test_only_the_job_with_the_uid_that_was_meant_is_deleted(world: World) -> None:
    world.do(CREATE)
    world.do(DeleteJob(ATTEMPT.job, "another"))

    assert ATTEMPT.job in world.cluster.jobs


def test_an_expectation_is_evaluated_when_its_result_is_stored(world: World) -> None:
    plan = make_plan(expectations=[{"metric": "speedup", "variant": "jax/jit", "atLeast": "3"}])
    world.do(CREATE)
    world.cluster.start_pods()
    world.cluster.end(ATTEMPT.job, "whole")
    world.cluster.list_into(world.store)
    asyncio.run(world.applier.apply(Collect(ATTEMPT, last=False), plan, world.store.observed(NAMESPACE, UID, {})))

    (sentence,) = world.store.observed(NAMESPACE, UID, {}).results[CASE].not_met
    assert "jax/jit" in sentence


def test_a_deleted_job_is_a_loss_only_after_it_was_asked_for_live(world: World) -> None:
    world.do(CREATE)
    known = ATTEMPT.model_copy(update={"job_uid": "x"})
    world.do(Collect(known, last=False), observe())
    assert world.losses() == []

    world.cluster.delete(ATTEMPT.job)
    world.do(Collect(known, last=False), observe())
    assert world.losses() == ["JobDeleted"]


def test_a_job_whose_pod_is_gone_is_a_loss(world: World) -> None:
    world.do(Collect(ATTEMPT, last=False), observe([make_job(PLAN, ATTEMPT, ended=True)]))

    assert world.losses() == ["PodLost"]


def test_a_pod_that_the_watch_has_not_told_of_yet_is_found_before_it_counts_as_gone(world: World) -> None:
    world.do(CREATE)
    world.cluster.start_pods()
    world.cluster.end(ATTEMPT.job, "whole")
    world.do(Collect(ATTEMPT, last=False), observe([make_job(PLAN, ATTEMPT, ended=True)]))
    assert world.losses() == []

    world.do(Collect(ATTEMPT, last=False))
    assert CASE in world.store.observed(NAMESPACE, UID, {}).results


def test_a_pod_that_still_runs_after_its_time_is_lost(world: World) -> None:
    world.do(CREATE)
    world.cluster.start_pods()
    world.cluster.list_into(world.store)
    world.do(CONFIRM)

    assert world.losses() == ["NodeLost"]


def test_a_case_whose_job_was_never_created_is_lost_after_its_time(world: World) -> None:
    world.do(CONFIRM)

    assert world.losses() == ["NodeLost"]


@pytest.mark.parametrize("stale", ["pod unknown", "pod runs"])
def test_a_pod_that_ended_while_the_watch_was_behind_is_not_given_up_for_lost(world: World, stale: str) -> None:
    world.do(CREATE)
    world.cluster.start_pods()
    if stale == "pod runs":
        world.cluster.list_into(world.store)
    world.cluster.end(ATTEMPT.job, "whole")
    world.do(CONFIRM)
    assert world.losses() == []

    world.do(Collect(ATTEMPT, last=False))
    assert CASE in world.store.observed(NAMESPACE, UID, {}).results


def test_what_was_deleted_while_the_watch_was_behind_is_no_longer_held(world: World) -> None:
    world.do(CREATE)
    world.cluster.start_pods()
    world.cluster.list_into(world.store)
    world.cluster.delete(ATTEMPT.job)
    world.do(CONFIRM)

    held = world.store.observed(NAMESPACE, UID, {})
    assert (world.losses(), held.jobs, held.pods) == ([], {}, {})


def test_a_log_that_cannot_be_had_for_the_moment_is_asked_for_again_and_counts_as_lost_in_the_end(world: World) -> None:
    world.cluster.read_log = raising(UnreachableError(0, "no route to host"))  # type: ignore[method-assign]
    observed = observe([make_job(PLAN, ATTEMPT, ended=True)], [ended(ATTEMPT, ended=world.cluster.now)])
    with pytest.raises(UnreachableError):
        world.do(Collect(ATTEMPT, last=False), observed)

    world.cluster.advance(LOG_PATIENCE)
    world.do(Collect(ATTEMPT, last=False), observed)
    assert world.losses() == ["ResultLost"]


def test_a_result_that_the_api_server_never_takes_ends_the_case_with_its_words(world: World) -> None:
    world.do(CREATE)
    world.cluster.start_pods()
    world.cluster.end(ATTEMPT.job, "whole")
    world.cluster.list_into(world.store)
    world.cluster.create_result = raising(InvalidError(422, "result: unknown field"))  # type: ignore[method-assign]
    world.do(Collect(ATTEMPT, last=False))

    assert world.losses() == ["ResultRefused"]


def test_a_result_that_a_quota_forbids_is_offered_again_and_ends_the_case_in_the_end(
    world: World,
) -> None:
    world.do(CREATE)
    world.cluster.start_pods()
    world.cluster.end(ATTEMPT.job, "whole")
    world.cluster.list_into(world.store)
    world.cluster.create_result = raising(ForbiddenError(403, "exceeded quota"))  # type: ignore[method-assign]
    with pytest.raises(ForbiddenError):
        world.do(Collect(ATTEMPT, last=False))
    assert world.losses() == []

    world.cluster.advance(QUOTA_PATIENCE)
    world.do(Collect(ATTEMPT, last=False))
    assert world.losses() == ["ResultRefused"]


def test_a_stored_result_of_another_version_is_named_and_stops_nothing_else(world: World) -> None:
    with_a_stored_result(world)
    [stored] = world.cluster.results.values()
    stored["result"] = {"of": "tomorrow"}
    with pytest.raises(ForeignObjectError, match="cannot be read: delete it"):
        world.do(CREATE)
