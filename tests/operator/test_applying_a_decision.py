"""Actions do not rely on the store alone: they read results, owners and pods from the API server first."""

import asyncio
import contextlib
from dataclasses import replace
from datetime import timedelta

import pytest

from accelbench.api import labels
from accelbench.api.profiles import Profiles, parse_profiles
from accelbench.api.reasons import AttemptReason
from accelbench.api.run import Attempt
from accelbench.cluster_api.errors import (
    ApiError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    NotFoundError,
    TooLargeError,
    UnreachableError,
)
from accelbench_operator.runs.actions import Collect, ConfirmFailure, DeleteJob
from accelbench_operator.runs.apply import ForeignObjectError
from accelbench_operator.runs.attempts import state_of
from accelbench_operator.runs.failure import AttemptFailure
from accelbench_operator.runs.observed import observe_job
from accelbench_operator.runs.waits import MINIMUM_TRIES, Wait
from operator_world.applying import ATTEMPT, CASE, CREATE, KEY, PLAN, World, raising, with_a_stored_result
from operator_world.builders import ALL_RETRIES, NAMESPACE, NO_RETRIES, UID, make_job, make_plan, observe, running

CONFIRM = ConfirmFailure(ATTEMPT, AttemptFailure(AttemptReason.NODE_LOST, "gone"))


@pytest.fixture
def world() -> World:
    return World()


def test_a_created_job_is_known_before_the_watch_delivers_it(world: World) -> None:
    world.do(CREATE)

    assert set(world.objects.observed(KEY).jobs) == {ATTEMPT.job}


def test_no_job_is_created_for_a_case_with_a_result_that_the_store_does_not_have_yet(world: World) -> None:
    with_a_stored_result(world)
    world.cluster.delete(ATTEMPT.job)
    world.store.replace("BenchmarkResult", None, [], world.store.tick)
    world.do(CREATE)

    assert world.cluster.created == [ATTEMPT.job]
    assert set(world.objects.observed(KEY).results) == {CASE}


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

    with pytest.raises(ForeignObjectError, match="does not belong to this run"):
        world.do(CREATE)


def test_a_result_that_the_store_does_not_have_yet_is_found_after_its_pod_is_deleted(world: World) -> None:
    with_a_stored_result(world)
    world.store.replace("BenchmarkResult", None, [], world.store.tick)
    world.cluster.pods.clear()
    world.do(Collect(ATTEMPT, ALL_RETRIES), observe([make_job(PLAN, ATTEMPT, has_ended=True)]))

    assert world.failures() == []
    assert set(world.objects.observed(KEY).results) == {CASE}


def test_a_job_that_the_api_server_always_refuses_ends_the_case_with_its_message(world: World) -> None:
    world.cluster.create_job = raising(InvalidError(422, "spec.template: no"))  # type: ignore[method-assign]
    world.do(CREATE)

    assert world.failures() == ["JobRefused"]


def test_a_job_is_not_deleted_before_the_api_server_confirms_its_result(world: World) -> None:
    with_a_stored_result(world)
    name = world.cluster.stored[0]
    del world.cluster.results[name]
    world.applier.forget_all()  # as another process, which has not stored it itself
    world.do(DeleteJob(ATTEMPT.job, world.cluster.jobs[ATTEMPT.job]["metadata"]["uid"], name))

    assert ATTEMPT.job in world.cluster.jobs
    assert world.objects.observed(KEY).results == {}


def test_only_the_job_with_the_uid_that_was_meant_is_deleted(world: World) -> None:
    world.do(CREATE)
    with pytest.raises(ConflictError, match="UID"):
        world.do(DeleteJob(ATTEMPT.job, "another"))

    assert ATTEMPT.job in world.cluster.jobs


def test_an_expectation_is_evaluated_when_its_result_is_stored(world: World) -> None:
    plan = make_plan(expectations=[{"metric": "speedup", "variant": "jax/jit", "atLeast": "3"}])
    world.do(CREATE)
    world.cluster.start_pods()
    world.cluster.end(ATTEMPT.job, "whole")
    world.cluster.list_into(world.store)
    asyncio.run(world.applier.apply(Collect(ATTEMPT, ALL_RETRIES), plan, world.observed()))

    (sentence,) = world.objects.observed(KEY).results[CASE].not_met
    assert "jax/jit" in sentence


def test_a_job_counts_as_deleted_only_after_a_live_read(world: World) -> None:
    world.do(CREATE)
    known = world.attempt
    world.do(Collect(known, ALL_RETRIES), observe())
    assert world.failures() == []

    world.cluster.delete(ATTEMPT.job)
    world.do(Collect(known, ALL_RETRIES), observe())
    assert world.failures() == ["JobDeleted"]


def expiring(world: World) -> Attempt:
    """Let a policy set a time to live for the attempt's Job, and the operator know that."""
    world.do(CREATE)
    world.applier.memory(UID).times_to_live[ATTEMPT.job] = 1
    return world.attempt


def test_a_case_does_not_fail_if_its_job_expired(world: World) -> None:
    known = expiring(world)
    world.cluster.delete(ATTEMPT.job)
    world.do(Collect(known, ALL_RETRIES), observe())
    [failure] = world.applier.memory(UID).failures.values()
    assert failure.reason == "JobExpired"
    assert f"Job {ATTEMPT.job} was deleted" in failure.message
    assert "ttlSecondsAfterFinished of 1 s" in failure.message
    assert "The case itself did not fail. Have the policy" in failure.message


def test_a_job_that_was_deleted_while_its_pod_ran_was_not_deleted_by_its_time_to_live(world: World) -> None:
    known = expiring(world)
    world.cluster.delete(ATTEMPT.job)
    world.do(Collect(known, ALL_RETRIES), replace(observe([], [running(known)]), own_jobs={}))
    assert world.failures() == ["JobDeleted"]


def test_a_case_does_not_fail_if_the_pod_of_its_expired_job_was_deleted(world: World) -> None:
    job = make_job(PLAN, ATTEMPT, has_ended=True, time_to_live=0)
    world.do(Collect(ATTEMPT, ALL_RETRIES), observe([job]))
    assert world.failures() == ["JobExpired"]


def test_an_attempt_whose_pod_was_deleted_is_lost(world: World) -> None:
    world.do(Collect(ATTEMPT, ALL_RETRIES), observe([make_job(PLAN, ATTEMPT, has_ended=True)]))

    assert world.failures() == ["PodLost"]


def test_a_pod_is_read_live_before_it_counts_as_deleted(world: World) -> None:
    world.do(CREATE)
    world.cluster.start_pods()
    world.cluster.end(ATTEMPT.job, "whole")
    world.do(Collect(ATTEMPT, ALL_RETRIES), observe([make_job(PLAN, world.attempt, has_ended=True)]))
    assert world.failures() == []

    world.do(Collect(ATTEMPT, ALL_RETRIES))
    assert CASE in world.objects.observed(KEY).results


def test_the_existing_pod_of_two_is_read_even_if_the_watch_still_has_the_other(world: World) -> None:
    world.do(CREATE)
    world.cluster.start_pods()
    world.cluster.end(ATTEMPT.job, "whole")
    world.cluster.list_into(world.store)
    ((pod,),) = world.objects.observed(KEY).pods.values()
    gone = replace(
        pod, key=pod.key._replace(name="newer"), phase="Running", created_at=pod.created_at + timedelta(hours=1)
    )
    world.store.remove("Pod", (NAMESPACE, pod.key.name))
    world.store.put(gone)
    world.do(Collect(ATTEMPT, ALL_RETRIES))
    world.do(Collect(ATTEMPT, ALL_RETRIES))
    assert CASE in world.objects.observed(KEY).results


@pytest.mark.parametrize("stale", ["waits", "runs"])
def test_a_pod_whose_end_the_watch_has_not_delivered_is_read_as_ended(world: World, stale: str) -> None:
    world.do(CREATE)
    world.cluster.start_pods()
    world.cluster.list_into(world.store)
    ((pod,),) = world.objects.observed(KEY).pods.values()
    if stale == "waits":
        world.store.put(replace(pod, phase="Pending", started_at=None))
    world.cluster.end(ATTEMPT.job, "whole")
    job = observe_job(world.cluster.jobs[ATTEMPT.job])
    assert job
    world.store.put(job)
    world.do(Collect(ATTEMPT, ALL_RETRIES))
    assert world.failures() == []

    world.do(Collect(ATTEMPT, ALL_RETRIES))
    assert CASE in world.objects.observed(KEY).results


def test_a_pod_whose_node_does_not_report_its_end_is_read_nevertheless(world: World) -> None:
    world.do(CREATE)
    world.cluster.start_pods()
    world.cluster.list_into(world.store)
    ((pod,),) = world.objects.observed(KEY).pods.values()
    with pytest.raises(NotFoundError, match=pod.key.name):  # of its log
        world.do(Collect(ATTEMPT, ALL_RETRIES), observe([make_job(PLAN, world.attempt, has_ended=True)], [pod]))


def test_a_pod_that_still_runs_after_its_time_is_lost(world: World) -> None:
    world.do(CREATE)
    world.cluster.start_pods()
    world.cluster.list_into(world.store)
    world.do(CONFIRM)

    assert world.failures() == ["NodeLost"]


def test_a_case_whose_job_was_never_created_is_lost_after_its_time(world: World) -> None:
    world.do(CONFIRM)

    assert world.failures() == ["NodeLost"]


@pytest.mark.parametrize("stale", ["pod unknown", "pod runs"])
def test_a_pod_that_ended_while_the_watch_was_behind_does_not_count_as_lost(world: World, stale: str) -> None:
    world.do(CREATE)
    world.cluster.start_pods()
    if stale == "pod runs":
        world.cluster.list_into(world.store)
    world.cluster.end(ATTEMPT.job, "whole")
    world.do(CONFIRM)
    assert world.failures() == []

    world.do(Collect(ATTEMPT, ALL_RETRIES))
    assert CASE in world.objects.observed(KEY).results


def test_objects_that_were_deleted_while_the_watch_was_behind_are_forgotten(world: World) -> None:
    world.do(CREATE)
    world.cluster.start_pods()
    world.cluster.list_into(world.store)
    world.cluster.delete(ATTEMPT.job)
    world.do(CONFIRM)

    held = world.objects.observed(KEY)
    assert (world.failures(), held.jobs, held.pods) == ([], {}, {})


def with_an_ended_pod(world: World) -> None:
    world.do(CREATE)
    world.cluster.start_pods()
    world.cluster.end(ATTEMPT.job, "whole")
    world.cluster.list_into(world.store)


@pytest.mark.parametrize(
    "error",
    [
        UnreachableError(0, "no route to host"),
        ApiError(503, "the kubelet is not ready"),
        InvalidError(400, "container runner is not available"),
        NotFoundError(404, "pods not found"),
    ],
    ids=lambda error: str(error.status),
)
def test_a_log_counts_as_lost_only_after_several_tries_over_minutes(world: World, error: ApiError) -> None:
    with_an_ended_pod(world)
    world.cluster.advance(timedelta(hours=2))  # the operator was away
    world.cluster.read_log = raising(error)  # type: ignore[method-assign]
    for _ in range(MINIMUM_TRIES):
        with pytest.raises(type(error)):
            world.do(Collect(ATTEMPT, ALL_RETRIES))
        assert world.cluster.results == {}

    world.cluster.advance(Wait.READ_LOG.default_limit)
    world.do(Collect(ATTEMPT, ALL_RETRIES))
    [result] = world.cluster.results.values()
    assert result["result"]["complete"] is False


def test_a_log_that_becomes_readable_again_is_used(world: World) -> None:
    with_an_ended_pod(world)
    read_log = world.cluster.read_log
    world.cluster.read_log = raising(ApiError(503, "busy"))  # type: ignore[method-assign]
    with pytest.raises(ApiError):
        world.do(Collect(ATTEMPT, ALL_RETRIES))
    message = "the log of its pod cannot be read: busy. Check that its node is Ready"
    assert message in str(world.applier.memory(UID).obstacles[ATTEMPT.job])

    world.cluster.read_log = read_log  # type: ignore[method-assign]
    world.do(Collect(ATTEMPT, ALL_RETRIES))
    [result] = world.cluster.results.values()
    assert result["result"]["complete"] is True
    assert world.applier.memory(UID).obstacles == {}


def test_the_log_of_a_deleted_pod_is_not_waited_for(world: World) -> None:
    with_an_ended_pod(world)
    world.cluster.logs.clear()
    del world.cluster.pods[ATTEMPT.job]
    world.do(Collect(ATTEMPT, ALL_RETRIES))

    [result] = world.cluster.results.values()
    assert result["result"]["complete"] is False


def test_at_most_two_logs_are_read_at_a_time(world: World) -> None:
    at_work = most = 0
    with_an_ended_pod(world)
    read_log = world.cluster.read_log

    async def counted(namespace: str, pod: str) -> str:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        for _ in range(5):
            await asyncio.sleep(0)
        at_work -= 1
        return await read_log(namespace, pod)

    async def collect_often() -> None:
        observed = world.observed()
        await asyncio.gather(*(world.applier.apply(Collect(ATTEMPT, ALL_RETRIES), PLAN, observed) for _ in range(8)))

    world.cluster.read_log = counted  # type: ignore[method-assign]
    asyncio.run(collect_often())
    assert most == 2


@pytest.mark.parametrize("error", [InvalidError(422, "result: unknown field"), TooLargeError(413, "too large")])
def test_a_result_that_the_api_server_always_refuses_ends_the_case_with_its_message(
    world: World, error: ApiError
) -> None:
    world.do(CREATE)
    world.cluster.start_pods()
    world.cluster.end(ATTEMPT.job, "whole")
    world.cluster.list_into(world.store)
    world.cluster.create_result = raising(error)  # type: ignore[method-assign]
    world.do(Collect(ATTEMPT, ALL_RETRIES))

    assert world.failures() == ["ResultRefused"]


@pytest.mark.parametrize("broken", ["read_outcome", "build_result"])
def test_a_bug_while_a_result_is_read_ends_the_case_and_asks_for_a_report(
    world: World, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    with_an_ended_pod(world)
    monkeypatch.setattr(f"accelbench_operator.runs.apply.{broken}", lambda *_, **__: {}["rounds"])
    world.do(Collect(ATTEMPT, ALL_RETRIES))
    assert world.failures() == ["RunnerError"]
    [failure] = world.applier.memory(UID).failures.values()
    assert "cannot read its pod's log: KeyError: 'rounds'. Report it as a bug" in failure.message


@pytest.mark.parametrize("error", [ForbiddenError(403, "exceeded quota"), ApiError(500, "etcd")])
def test_storing_a_result_is_tried_again_and_finally_ends_the_case(world: World, error: ApiError) -> None:
    with_an_ended_pod(world)
    world.cluster.advance(timedelta(hours=2))
    world.cluster.create_result = raising(error)  # type: ignore[method-assign]
    for _ in range(MINIMUM_TRIES):
        with pytest.raises(type(error)):
            world.do(Collect(ATTEMPT, ALL_RETRIES))
    assert world.failures() == []

    world.cluster.advance(Wait.STORE_RESULT.default_limit)
    world.do(Collect(ATTEMPT, ALL_RETRIES))
    assert world.failures() == ["ResultRefused"]


def test_a_temporary_refusal_of_a_job_is_reported_with_the_servers_message(world: World) -> None:
    world.cluster.create_job = raising(ForbiddenError(403, "exceeded quota: pods"))  # type: ignore[method-assign]
    for _ in range(2):
        with pytest.raises(ForbiddenError):
            world.do(CREATE)

    observed = world.objects.observed(KEY, world.applier.memory(UID))
    assert state_of(ATTEMPT, PLAN, observed, world.cluster.now).pending_reason == (
        f"{CASE}: Its Job cannot be created: exceeded quota: pods. Wait for others to end, have the quota raised, or "
        "ask for less."
    )


def test_a_stored_result_of_another_version_is_named_and_stops_nothing_else(world: World) -> None:
    with_a_stored_result(world)
    [stored] = world.cluster.results.values()
    stored["result"] = {"of": "tomorrow"}
    for _ in range(2):
        with pytest.raises(ForeignObjectError, match="cannot be read: delete it"):
            world.do(CREATE)
    observed = world.objects.observed(KEY, world.applier.memory(UID))
    waiting = replace(observed, jobs={}, pods={})
    assert "exists and cannot be read: delete it" in state_of(ATTEMPT, PLAN, waiting, world.cluster.now).pending_reason


def test_a_stored_result_with_unknown_fields_is_read(world: World) -> None:
    with_a_stored_result(world)
    [stored] = world.cluster.results.values()
    stored["result"] |= {"tomorrow": 1}
    world.store.replace("BenchmarkResult", None, [], world.store.tick)
    world.do(CREATE)
    assert set(world.objects.observed(KEY).results) == {CASE}


def test_a_bug_in_building_a_job_is_what_the_case_waits_for(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("accelbench_operator.runs.apply.build_job", lambda *_: {}["image"])
    for _ in range(2):
        with pytest.raises(KeyError):
            world.do(CREATE)
    observed = world.objects.observed(KEY, world.applier.memory(UID))
    assert "KeyError: 'image'" in state_of(ATTEMPT, PLAN, observed, world.cluster.now).pending_reason


def test_a_log_and_a_result_that_are_both_refused_end_the_case(world: World) -> None:
    with_an_ended_pod(world)
    world.cluster.read_log = raising(ApiError(503, "no kubelet"))  # type: ignore[method-assign]
    world.cluster.create_result = raising(ForbiddenError(403, "exceeded quota"))  # type: ignore[method-assign]
    for _ in range(40):
        with contextlib.suppress(ApiError):
            world.do(Collect(ATTEMPT, ALL_RETRIES))
        world.cluster.advance(timedelta(minutes=2))
    assert world.failures() == ["ResultRefused"]


def test_a_replica_that_leads_again_starts_from_the_state_of_the_cluster() -> None:
    world = World()
    world.do(CONFIRM)
    world.cluster.create_job = raising(ForbiddenError(403, "exceeded quota"))  # type: ignore[method-assign]
    with pytest.raises(ForbiddenError):
        world.do(CREATE)
    assert world.failures() == ["NodeLost"]

    world.applier.forget_all()
    assert world.failures() == []
    assert world.applier.memory(UID).obstacles == {}


CLAIMING = make_plan(
    profiles=Profiles(parse_profiles("dra: {preset: dra-nvidia}", "x")), accelerator={"profile": "dra"}
)


def create_claiming(world: World) -> None:
    asyncio.run(world.applier.apply(CREATE, CLAIMING, world.objects.observed(KEY)))


def test_a_claim_template_belongs_to_the_run_and_exists_before_the_job(world: World) -> None:
    create_claiming(world)
    ((name, template),) = world.cluster.claim_templates.items()
    (job,) = world.cluster.jobs.values()

    assert template["spec"]["spec"]["devices"]["requests"][0]["exactly"] == {"deviceClassName": "gpu.nvidia.com"}
    assert template["metadata"]["ownerReferences"][0]["uid"] == UID
    assert job["spec"]["template"]["spec"]["resourceClaims"][0]["resourceClaimTemplateName"] == name


def test_a_job_is_created_only_if_an_existing_claim_template_is_the_runs_own(world: World) -> None:
    create_claiming(world)
    world.cluster.jobs.clear()
    create_claiming(world)
    assert world.cluster.jobs

    world.cluster.jobs.clear()
    (template,) = world.cluster.claim_templates.values()
    template["metadata"]["ownerReferences"][0]["uid"] = "another"
    with pytest.raises(ForeignObjectError, match="does not belong to this run: delete it"):
        create_claiming(world)
    assert not world.cluster.jobs


def test_no_job_is_created_if_its_claim_template_is_deleted_at_the_same_moment(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world.cluster, "create_claim_template", raising(ConflictError(409, "already exists")))
    with pytest.raises(ConflictError):
        create_claiming(world)
    assert not world.cluster.jobs


def test_a_cluster_without_claims_is_what_the_run_waits_for(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = NotFoundError(404, "the server could not find the requested resource")
    monkeypatch.setattr(world.cluster, "create_claim_template", raising(missing))
    with pytest.raises(ApiError, match="this cluster does not serve resource"):
        create_claiming(world)

    assert not world.cluster.jobs
    [obstacle] = world.applier.memory(UID).obstacles.values()
    assert "claims a device of DeviceClass gpu.nvidia.com" in str(obstacle)


def test_a_conflict_over_a_result_that_does_not_exist_is_tried_again(world: World) -> None:
    world.do(CREATE)
    world.cluster.start_pods()
    world.cluster.end(ATTEMPT.job, "whole")
    world.cluster.list_into(world.store)
    create = world.cluster.create_result
    world.cluster.create_result = raising(ConflictError(409, "modified"))  # type: ignore[method-assign]
    with pytest.raises(ConflictError):
        world.do(Collect(ATTEMPT, NO_RETRIES))
    assert world.failures() == []

    world.cluster.create_result = create  # type: ignore[method-assign]
    world.do(Collect(ATTEMPT, NO_RETRIES))
    assert len(world.cluster.stored) == 1


def test_a_job_that_was_deleted_is_not_deleted_again_while_the_watch_is_behind(world: World) -> None:
    world.do(CREATE)
    uid = world.cluster.jobs[ATTEMPT.job]["metadata"]["uid"]
    delete, deleted = world.cluster.delete_job, []

    async def delete_job(*job: str) -> None:
        deleted.append(job)
        await delete(*job)

    world.cluster.delete_job = delete_job  # type: ignore[method-assign]
    for _ in range(3):
        world.do(DeleteJob(ATTEMPT.job, uid))
    assert deleted == [(NAMESPACE, ATTEMPT.job, uid)]
