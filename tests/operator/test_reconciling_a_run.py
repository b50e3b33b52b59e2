import asyncio
import gc
import weakref
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from accelbench.api.profiles import Profiles, parse_profiles
from accelbench.api.run import BenchmarkRunStatus
from accelbench.cluster_api.errors import ApiError, ConflictError, ForbiddenError, InvalidError
from accelbench_operator.engine.kinds import Key
from accelbench_operator.engine.store import Store
from accelbench_operator.runs.accept import FinishedRun, RunRetention
from accelbench_operator.runs.apply import Applier
from accelbench_operator.runs.known import UnreadableStatusError, read_status
from accelbench_operator.runs.objects import RunObjects
from accelbench_operator.runs.observed import observe_job, observe_pod
from accelbench_operator.runs.reconcile import Reconciler
from accelbench_operator.settings import Settings
from operator_world.builders import NAME, NAMESPACE, SETTINGS, UID, run_manifest
from operator_world.played import PlayedCluster
from operator_world.reconciling import KEY, new_cluster, reconciler


class Log:
    """Represent a log of the maximal size."""


def test_a_run_that_changes_during_its_decision_is_decided_again_before_any_action() -> None:
    cluster = new_cluster()
    read = cluster.get_run

    async def get_run(namespace: str, name: str) -> Any:
        run = await read(namespace, name)
        cluster.set_policy(suspend=True)
        return run

    cluster.get_run = get_run  # type: ignore[method-assign]

    assert asyncio.run(reconciler(cluster).reconcile(KEY)) == 0
    assert cluster.created == []
    assert "status" not in cluster.run


def test_a_failure_of_one_case_does_not_delay_the_others_and_is_tried_again() -> None:
    cluster = new_cluster(parallelism=2)
    create = cluster.create_job
    refused: list[str] = []

    async def create_job(job: Any) -> Any:
        if not refused:
            refused.append(job["metadata"]["name"])
            raise ApiError(403, "exceeded quota")
        return await create(job)

    cluster.create_job = create_job  # type: ignore[method-assign]

    with pytest.raises(ApiError, match="exceeded quota"):
        asyncio.run(reconciler(cluster).reconcile(KEY))
    assert len(cluster.created) == 1


def test_a_refused_deletion_of_a_job_is_tried_again_and_is_one_event() -> None:
    cluster = new_cluster()
    operator = reconciler(cluster)
    asyncio.run(operator.reconcile(KEY))
    cluster.list_into(operator._objects.store)
    cluster.set_policy(cancel=True)
    operator.changed(KEY, cluster.run)
    allowed = cluster.delete_job

    async def delete_job(namespace: str, name: str, uid: str) -> None:
        raise ForbiddenError(403, "Jobs are kept for audit")

    cluster.delete_job = delete_job  # type: ignore[method-assign]
    for _ in range(3):
        with pytest.raises(ForbiddenError):
            asyncio.run(operator.reconcile(KEY))
    refusals = [event["message"] for event in cluster.events.values() if event["reason"] == "DeletionRefused"]
    assert len(refusals) == 1
    assert "Jobs are kept for audit" in refusals[0]

    cluster.delete_job = allowed  # type: ignore[method-assign]
    asyncio.run(operator.reconcile(KEY))
    assert cluster.jobs == {}


def test_a_refused_request_is_not_kept_in_memory() -> None:
    """A traceback keeps its frames alive, and one of them holds a log of many MB."""
    cluster = new_cluster(parallelism=2)
    logs: list[weakref.ref[Log]] = []

    async def create_job(job: Any) -> Any:
        log = Log()
        logs.append(weakref.ref(log))
        raise ApiError(403, "exceeded quota")

    cluster.create_job = create_job  # type: ignore[method-assign]

    async def refused() -> None:
        with pytest.raises(ApiError):
            await reconciler(cluster).reconcile(KEY)

    gc.disable()
    try:
        asyncio.run(refused())
        assert [log() for log in logs] == [None, None]
    finally:
        gc.enable()


def test_a_status_that_names_another_job_is_left_unchanged_and_reported() -> None:
    cluster = new_cluster()
    asyncio.run(reconciler(cluster).reconcile(KEY))
    cluster.run["status"]["attempts"][0]["job"] = "another"
    with pytest.raises(UnreadableStatusError, match="another is not the Job of attempt 1 at size-64"):
        asyncio.run(reconciler(cluster).reconcile(KEY))
    assert len(cluster.created) == 1


def test_a_refused_action_is_decided_again_at_its_deadline() -> None:
    cluster = new_cluster(startDeadlineSeconds=75)
    looks: list[float] = []

    async def create_job(job: Any) -> Any:
        raise ApiError(403, "exceeded quota")

    cluster.create_job = create_job  # type: ignore[method-assign]
    store = Store()
    applier = Applier(cluster, RunObjects(store), cluster.clock)
    operator = Reconciler(
        cluster, RunObjects(store), applier, SETTINGS, cluster.clock, requeue=lambda _, seconds: looks.append(seconds)
    )

    for _ in range(2):  # from the second on, the attempt is one that waits
        with pytest.raises(ApiError, match="exceeded quota"):
            asyncio.run(operator.reconcile(KEY))
    assert looks == [pytest.approx(75, abs=1)]


def test_a_deleted_run_or_another_of_the_same_name_is_left_alone() -> None:
    cluster = new_cluster()

    assert asyncio.run(reconciler(cluster).reconcile(KEY._replace(uid="another"))) is None
    assert cluster.created == []


def test_an_event_that_cannot_be_created_stops_nothing() -> None:
    cluster = new_cluster()

    async def create_event(event: Any) -> None:
        raise ApiError(403, "forbidden")

    cluster.create_event = create_event  # type: ignore[method-assign]
    asyncio.run(reconciler(cluster).reconcile(KEY))

    assert len(cluster.created) == 1
    assert read_status(cluster.run).phase == "Queued"


def test_a_run_of_another_class_is_left_alone() -> None:
    cluster = PlayedCluster(run_manifest(className="staging"), lambda: "")
    assert asyncio.run(reconciler(cluster).reconcile(KEY)) is None
    assert cluster.created == []
    assert "status" not in cluster.run


def test_an_unreadable_status_is_left_unchanged_and_reported() -> None:
    cluster = new_cluster()
    cluster.run["status"] = {"conditions": [{"type": "Finished", "status": "Perhaps"}]}
    with pytest.raises(UnreadableStatusError, match="install the release that wrote it"):
        asyncio.run(reconciler(cluster).reconcile(KEY))
    assert cluster.run["status"] == {"conditions": [{"type": "Finished", "status": "Perhaps"}]}
    assert cluster.created == []
    assert [event["reason"] for event in cluster.events.values()] == ["StatusUnreadable"]


def test_a_refused_status_is_shortened_and_reported() -> None:
    cluster = new_cluster()
    cluster.run["status"] = {"forecast": "sunny"}
    put = cluster.put_run_status

    async def put_run_status(run: Any) -> Any:
        if "forecast" in run["status"]:
            raise InvalidError(422, "status.forecast: no such field")
        return await put(run)

    cluster.put_run_status = put_run_status  # type: ignore[method-assign]
    asyncio.run(reconciler(cluster).reconcile(KEY))
    assert [attempt["number"] for attempt in cluster.run["status"]["attempts"]] == [1]
    assert len(cluster.created) == 1
    messages = {event["reason"]: event["message"] for event in cluster.events.values()}
    assert messages["StatusRefused"] == "status.forecast: no such field"


def test_a_bug_in_planning_ends_the_run_and_is_reported_as_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = new_cluster()
    monkeypatch.setattr("accelbench_operator.runs.reconcile.accept", lambda *_, **__: {}["profile"])
    asyncio.run(reconciler(cluster).reconcile(KEY))
    [finished] = [each for each in cluster.run["status"]["conditions"] if each["type"] == "Finished"]
    [accepted] = [each for each in cluster.run["status"]["conditions"] if each["type"] == "Accepted"]
    assert (finished["status"], cluster.created) == ("True", [])
    assert "accelbench itself failed while planning, which is a bug: KeyError: 'profile'" in accepted["message"]


def test_fields_of_a_newer_operator_stay_in_a_status_and_hide_nothing() -> None:
    cluster = new_cluster()
    newer = {"type": "example.com/Audited", "status": "True", "reason": "Yes", "message": ""}
    newer["lastTransitionTime"] = "2026-03-01T12:00:00Z"
    cluster.run["status"] = {"conditions": [newer], "forecast": "sunny", "cases": {"total": 2, "waiting": 1}}
    asyncio.run(reconciler(cluster).reconcile(KEY))
    status = cluster.run["status"]
    assert status["forecast"] == "sunny"
    assert [condition["type"] for condition in status["conditions"]] == [
        *("Accepted", "Finished", "Succeeded", "Reconciling"),
        "example.com/Audited",
    ]
    assert newer in status["conditions"]


def test_an_accepted_run_keeps_its_profile_and_image_if_the_operators_settings_change() -> None:
    big = Profiles(parse_profiles("big: {platform: cpu, cpu: 8}", "x"))
    cluster = PlayedCluster(run_manifest(sizes=(64, 128), accelerator={"profile": "big"}), lambda: "")
    asyncio.run(reconciler(cluster, settings=replace(SETTINGS, profiles=big)).reconcile(KEY))
    later = reconciler(cluster, settings=Settings(runner_image="runner:2", profiles=Profiles()))
    cluster.set_policy(parallelism=2)
    asyncio.run(later.reconcile(KEY))

    assert len(cluster.created) == 2
    for job in cluster.jobs.values():
        (container,) = job["spec"]["template"]["spec"]["containers"]
        assert (container["image"], container["resources"]["limits"]["cpu"]) == (SETTINGS.runner_image, "8")
    assert cluster.run["status"]["runner"]["image"] == SETTINGS.runner_image
    assert cluster.run["status"]["runner"]["profile"]["cpu"] == 8


def test_two_operators_of_one_class_agree_on_what_the_first_wrote() -> None:
    cluster = new_cluster()
    first = reconciler(cluster)
    second = reconciler(cluster, settings=replace(SETTINGS, runner_image="runner:2"))
    put = cluster.put_run_status
    raced: list[Any] = []

    async def put_run_status(run: Any) -> Any:
        if not raced:
            raced.append(run)
            await first.reconcile(KEY)
        return await put(run)

    cluster.put_run_status = put_run_status  # type: ignore[method-assign]
    for turn in (second, first, second, first):
        asyncio.run(turn.reconcile(KEY))
        assert cluster.run["status"]["runner"]["image"] == SETTINGS.runner_image


def test_a_finished_run_of_a_removed_platform_can_be_read_and_is_deleted_when_it_expires() -> None:
    cluster = new_cluster(ttlSecondsAfterFinished=60)
    asyncio.run(reconciler(cluster).reconcile(KEY))
    status = cluster.run["status"]
    status["runner"]["profile"]["platform"] = "example.com/gone"
    for condition in status["conditions"]:
        condition["status"] = "True"
    cluster.advance(timedelta(seconds=120))
    asyncio.run(reconciler(cluster).reconcile(KEY))
    assert cluster.run is None


def test_a_refused_run_is_deleted_when_it_expires() -> None:
    manifest = run_manifest(workload={"name": "nothing"}, runPolicy={"ttlSecondsAfterFinished": 60})
    cluster = PlayedCluster(manifest, lambda: "")
    asyncio.run(reconciler(cluster).reconcile(KEY))
    assert read_status(cluster.run).phase == "InvalidSpec"
    cluster.advance(timedelta(seconds=120))
    asyncio.run(reconciler(cluster).reconcile(KEY))
    assert cluster.run is None


def test_a_refused_run_is_measured_once_its_spec_is_corrected() -> None:
    cluster = PlayedCluster(run_manifest(variants=[{"use": "jax/jitt"}, {"use": "pytorch/eager"}]), lambda: "")
    operator = reconciler(cluster)
    asyncio.run(operator.reconcile(KEY))
    refused = read_status(cluster.run)
    assert (refused.phase, cluster.created) == ("InvalidSpec", [])

    correct(cluster, "jax/jitted")
    assert operator.changed(KEY, cluster.run)
    asyncio.run(operator.reconcile(KEY))
    again = read_status(cluster.run)
    assert (again.phase, cluster.created) == ("InvalidSpec", [])
    assert "jitted" in again.headline

    correct(cluster, "jax/jit")
    assert operator.changed(KEY, cluster.run)
    asyncio.run(operator.reconcile(KEY))
    status = read_status(cluster.run)
    assert (status.phase, status.completion_time, len(cluster.created)) == ("Queued", None, 1)
    assert {condition.type: condition.status for condition in status.conditions} == {
        "Accepted": "True",
        "Finished": "False",
        "Succeeded": "Unknown",
        "Reconciling": "True",
    }


def test_a_refused_run_that_has_results_stays_finished() -> None:
    cluster = new_cluster()
    asyncio.run(reconciler(cluster).reconcile(KEY))
    cluster.run["status"] |= {"phase": "InvalidSpec", "measuredCases": [], "completionTime": "2026-03-01T12:00:00Z"}
    cluster.run["status"]["conditions"][1]["status"] = "True"
    before = cluster.created[:]
    cluster.set_policy(parallelism=2)
    asyncio.run(reconciler(cluster).reconcile(KEY))
    assert (read_status(cluster.run).phase, cluster.created) == ("InvalidSpec", before)


def correct(cluster: PlayedCluster, use: str) -> None:
    """Change the first variant, as `kubectl apply` does."""
    cluster.run["spec"]["variants"][0]["use"] = use
    cluster.run["metadata"]["generation"] += 1
    cluster.run["metadata"]["resourceVersion"] += "1"


def test_a_users_change_is_news_to_the_operator_and_its_own_is_not() -> None:
    cluster = new_cluster()
    operator = reconciler(cluster)
    asyncio.run(operator.reconcile(KEY))
    assert not operator.changed(KEY, cluster.run)

    cluster.set_policy(suspend=True)
    assert operator.changed(KEY, cluster.run)
    asyncio.run(operator.reconcile(KEY))
    assert cluster.run["status"]["phase"] == "Suspended"


def counted(cluster: PlayedCluster, request: str) -> list[Any]:
    """Return a list that records the arguments of that request from now on."""
    made: list[Any] = []
    real = getattr(cluster, request)

    async def request_counted(*arguments: Any) -> Any:
        made.append(arguments)
        return await real(*arguments)

    setattr(cluster, request, request_counted)
    return made


def test_a_run_that_only_this_operator_changes_is_never_read_again() -> None:
    cluster = new_cluster()
    operator = reconciler(cluster)
    asked = counted(cluster, "get_run")
    operator.changed(KEY, cluster.run)
    for _ in range(12):
        asyncio.run(operator.reconcile(KEY))
        measure_next(cluster, operator, "Job", "Pod")
    assert cluster.run["status"]["phase"] == "Succeeded"
    assert asked == []


def test_the_operator_reads_a_run_again_before_it_acts_on_a_watch() -> None:
    cluster = new_cluster()
    asyncio.run(reconciler(cluster).reconcile(KEY))
    (job,) = cluster.jobs
    older = next(run for run in cluster.run_versions if run.get("status"))
    cluster.set_policy(cancel=True)

    follower = reconciler(cluster)  # its watches have delivered neither the Job nor the cancellation
    follower.changed(KEY, older)
    asyncio.run(follower.reconcile(KEY))
    asyncio.run(follower.reconcile(KEY))
    assert cluster.created == [job]
    assert cluster.run["status"]["phase"] == "Cancelled"


def test_a_new_leader_reads_a_run_again_before_it_decides() -> None:
    cluster = new_cluster()
    operator = reconciler(cluster)
    asyncio.run(operator.reconcile(KEY))
    asyncio.run(operator.reconcile(KEY))
    assert cluster.run["status"]["phase"] == "Queued"

    cluster.set_policy(cancel=True)  # while another led, and this one's watches are behind
    asyncio.run(reconciler(cluster).reconcile(KEY))
    operator.reset()
    asked = counted(cluster, "get_run")
    asyncio.run(operator.reconcile(KEY))
    assert len(asked) == 1
    assert operator.phases[KEY] == "Cancelled"


def test_progress_alone_is_written_later_and_other_changes_of_the_status_at_once() -> None:
    cluster = new_cluster()
    operator = reconciler(cluster)
    written = counted(cluster, "put_run_status")
    asyncio.run(operator.reconcile(KEY))
    asyncio.run(operator.reconcile(KEY))  # the Job is there, and has a UID
    assert len(written) == 1

    cluster.advance(timedelta(seconds=3))
    asyncio.run(operator.reconcile(KEY))
    (attempt,) = read_status(cluster.run).attempts
    assert (len(written), attempt.job_uid) == (2, cluster.jobs[attempt.job]["metadata"]["uid"])

    measure_next(cluster, operator, "Pod")
    asyncio.run(operator.reconcile(KEY))
    asyncio.run(operator.reconcile(KEY))
    assert read_status(cluster.run).cases.measured == 1


def test_a_finished_run_causes_no_requests() -> None:
    cluster = new_cluster(cancel=True)
    asyncio.run(reconciler(cluster).reconcile(KEY))
    operator = reconciler(cluster)
    asked = counted(cluster, "get_run")
    assert not operator.changed(KEY, cluster.run)
    assert asyncio.run(operator.reconcile(KEY)) is None
    assert (asked, operator.phases) == ([], {KEY: "Cancelled"})


def test_a_finished_run_is_not_planned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = new_cluster(cancel=True, ttlSecondsAfterFinished=60)
    operator = reconciler(cluster)
    asyncio.run(operator.reconcile(KEY))
    assert cluster.run["status"]["phase"] == "Cancelled"

    monkeypatch.setattr("accelbench_operator.runs.reconcile.accept", lambda *_: pytest.fail("it was planned again"))
    asyncio.run(operator.reconcile(KEY))
    cluster.advance(timedelta(seconds=61))
    asyncio.run(operator.reconcile(KEY))
    assert cluster.run is None


def test_a_finished_run_whose_status_a_user_removes_is_planned_again() -> None:
    cluster = new_cluster(cancel=True, ttlSecondsAfterFinished=60)
    operator = reconciler(cluster)
    asyncio.run(operator.reconcile(KEY))

    cluster.server.change(cluster._run, UID, lambda run: run.pop("status"))
    assert operator.changed(KEY, cluster.run)
    asyncio.run(operator.reconcile(KEY))
    assert cluster.run["status"]["phase"] == "Cancelled"


def measure_next(cluster: PlayedCluster, operator: Reconciler, *kinds: str) -> None:
    """End the existing pods, and deliver objects of these kinds from the operator's watches."""
    cluster.start_pods()
    for name in list(cluster.jobs):
        cluster.end(name, "whole")
    delivered: dict[str, list[Any]] = {
        "Job": [observe_job(job) for job in cluster.jobs.values()],
        "Pod": [observe_pod(pod) for pod in cluster.pods.values()],
    }
    for kind in kinds:
        for held in delivered[kind]:
            operator._objects.store.put(held)


def test_a_run_does_not_finish_without_a_stored_result_that_the_watch_has_not_delivered() -> None:
    cluster = new_cluster()
    first = reconciler(cluster)
    while read_status(cluster.run).cases.measured < 1:
        asyncio.run(first.reconcile(KEY))
        measure_next(cluster, first, "Job", "Pod")
    assert len(cluster.results) == 1

    follower = reconciler(cluster)  # it leads, and no watch has delivered that result
    for _ in range(6):
        asyncio.run(follower.reconcile(KEY))
        measure_next(cluster, follower, "Job", "Pod")
    status = read_status(cluster.run)
    assert (status.phase, status.cases.measured) == ("Succeeded", 2)


def test_a_finished_run_that_waits_to_be_deleted_keeps_no_plan_in_memory() -> None:
    cluster = new_cluster(cancel=True, ttlSecondsAfterFinished=3600)
    operator = reconciler(cluster)
    asyncio.run(operator.reconcile(KEY))
    known = operator._known.get(UID)
    assert known is not None
    assert known.plan == FinishedRun(RunRetention(ttl=timedelta(seconds=3600)))


def test_only_the_pod_of_an_attempts_own_job_shows_its_progress() -> None:
    cluster = new_cluster()
    operator = reconciler(cluster)
    asyncio.run(operator.reconcile(KEY))
    asyncio.run(operator.reconcile(KEY))  # its UID is known by now
    cluster.start_pods()
    [pod] = map(observe_pod, cluster.pods.values())
    found = operator.running_case(pod)
    assert found is not None
    assert (found.run, found.case, found.variants) == (NAME, pod.case, {"pytorch/eager", "jax/jit"})
    for foreign in ({"job_uid": "another"}, {"job_uid": ""}, {"owner": "another"}):
        assert operator.running_case(replace(pod, **foreign)) is None


def test_a_namespace_with_many_runs_leaves_series_to_the_others() -> None:
    cluster = new_cluster()
    operator = reconciler(cluster)
    asyncio.run(operator.reconcile(KEY))
    cases = operator._case_counts[KEY]
    for number in range(50):
        other = Key("BenchmarkRun", "crowded", f"run-{number}", f"uid-{number}")
        operator._record_progress(other, BenchmarkRunStatus(phase="Queued", cases=cases))
    counts, omitted = operator.case_counts(3)
    assert {namespace for namespace, _run, _state in counts} == {NAMESPACE, "crowded"}
    assert (len(counts), omitted) == (3 * 4, 48)


def test_a_run_whose_time_to_live_is_extended_at_the_last_moment_stays() -> None:
    cluster = new_cluster(cancel=True, ttlSecondsAfterFinished=60)
    operator = reconciler(cluster)
    asyncio.run(operator.reconcile(KEY))
    cluster.advance(timedelta(seconds=61))
    cluster.set_policy(ttlSecondsAfterFinished=3600)
    with pytest.raises(ConflictError):
        asyncio.run(operator.reconcile(KEY))  # the watch is behind
    operator.changed(KEY, cluster.run)
    asyncio.run(operator.reconcile(KEY))
    assert cluster.run is not None
