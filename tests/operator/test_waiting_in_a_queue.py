"""Runs in a queue: their reason, how long they wait, and what happens to a pod that the queue takes back."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from accelbench.api import labels
from accelbench.cluster_api.errors import ApiError, ForbiddenError, NotFoundError
from accelbench.document import timestamp
from accelbench_operator.engine.store import Store
from accelbench_operator.runs.actions import Collect, ConfirmFailure, ReadEvents, ReadQueue
from accelbench_operator.runs.apply import Applier
from accelbench_operator.runs.cluster import JOB_UID_LABEL
from accelbench_operator.runs.decide import Decision
from accelbench_operator.runs.job import build_job
from accelbench_operator.runs.kueue import LONGEST_PAUSE, SHORTEST_PAUSE, QueueReport, Queues
from accelbench_operator.runs.objects import RunObjects
from accelbench_operator.runs.observed import TRACKED, observe_job, observe_pod
from accelbench_operator.runs.waits import DELAY_BEFORE_FIRST_READ, Wait
from operator_world.builders import (
    NAMESPACE,
    NOW,
    UID,
    ended,
    make_attempt,
    make_job,
    make_plan,
    make_pod,
    observe,
    run_manifest,
    running,
)
from operator_world.decisions import finished, message, next_for
from operator_world.played import PlayedCluster

PLAN = make_plan()
LIMITED = make_plan(runPolicy={"startDeadlineSeconds": 60})
HELD = make_job(PLAN, make_attempt(PLAN), is_suspended=True)
ATTEMPT = make_attempt(PLAN, job_uid=HELD.key.uid)
MINUTE = timedelta(minutes=1)


def reports(asked: timedelta, *, in_queue: bool = True, held: Any = NOW) -> dict[str, QueueReport]:
    return {ATTEMPT.job: QueueReport(held, NOW + asked, "the reason", in_queue)}


def at(after: timedelta, plan: Any = PLAN, *, queues: Any = None, job: Any = HELD, pods: Any = ()) -> Decision:
    observed = replace(observe([job], pods), queues=queues or {})
    return next_for(plan, observed, at=NOW + after, attempts=(ATTEMPT,))


# -- when it is asked for -----------------------------------------------------------------------------------------


def test_a_job_that_its_queue_admits_at_once_costs_no_request() -> None:
    decision = at(timedelta(0))
    assert (decision.actions, decision.requeue_at) == ((), NOW + SHORTEST_PAUSE)
    assert finished(decision) == ("False", "Queued")
    assert message(decision, "Finished").endswith(f"Job {ATTEMPT.job} waits in queue team-a.")


def test_the_reason_of_a_job_that_stays_suspended_is_read_and_reported() -> None:
    assert at(SHORTEST_PAUSE).actions == (ReadQueue(ATTEMPT),)
    after = at(SHORTEST_PAUSE, queues=reports(SHORTEST_PAUSE))
    assert after.actions == ()
    assert message(after, "Finished").endswith("the reason.")


@pytest.mark.parametrize(
    ("waited", "pause"),
    [(SHORTEST_PAUSE, SHORTEST_PAUSE), (MINUTE, MINUTE), (60 * MINUTE, LONGEST_PAUSE)],
)
def test_the_longer_a_job_waits_the_less_often_its_queue_is_read(waited: timedelta, pause: timedelta) -> None:
    assert at(waited, queues=reports(waited)).requeue_at == NOW + waited + pause
    assert at(waited + pause, queues=reports(waited)).actions == (ReadQueue(ATTEMPT),)


def test_the_reason_of_an_earlier_wait_is_not_reported_for_the_present_one() -> None:
    anew = replace(HELD, suspended_since=NOW + 60 * MINUTE)
    decision = at(60 * MINUTE, queues=reports(MINUTE), job=anew)
    assert "the reason" not in message(decision, "Finished")


# -- for how long it waits ----------------------------------------------------------------------------------------


def test_a_run_waits_in_a_queue_without_a_limit() -> None:
    assert at(3 * Wait.NO_QUEUE.default_limit, queues=reports(3 * Wait.NO_QUEUE.default_limit)).actions == ()


def test_a_suspended_job_in_no_queue_waits_only_as_long_as_for_a_node() -> None:
    early = at(MINUTE, queues=reports(MINUTE, in_queue=False))
    assert early.actions == ()
    late = at(Wait.NO_QUEUE.default_limit, queues=reports(Wait.NO_QUEUE.default_limit, in_queue=False))
    [confirm] = late.actions
    assert isinstance(confirm, ConfirmFailure)
    assert confirm.failure.reason == "StartDeadlineExceeded"
    assert "did not start within 86400 s. the reason" in confirm.failure.message


def test_a_deadline_counts_in_a_queue_and_is_reported_with_the_latest_reason() -> None:
    waits = at(50 * MINUTE / 60, LIMITED, queues=reports(50 * MINUTE / 60))
    assert waits.requeue_at == NOW + MINUTE
    assert at(MINUTE, LIMITED, queues=reports(50 * MINUTE / 60)).actions == (ReadQueue(ATTEMPT),)
    [confirm] = at(MINUTE, LIMITED, queues=reports(MINUTE)).actions
    assert isinstance(confirm, ConfirmFailure)
    assert "the reason" in confirm.failure.message


def test_a_deadline_counts_anew_where_the_queue_takes_the_job_back_after_hours() -> None:
    hours = timedelta(hours=5)
    taken_back = replace(HELD, suspended_since=NOW + hours)
    known = reports(hours + MINUTE / 2, held=NOW + hours)
    assert at(hours + MINUTE / 2, LIMITED, job=taken_back, queues=known).actions == ()
    not_noted = replace(HELD, suspended_since=None)
    assert at(hours, LIMITED, job=not_noted).actions == ()


def test_the_wait_for_a_node_begins_when_the_queue_admits_the_job() -> None:
    admitted = make_job(PLAN, ATTEMPT, started_at=NOW + 2 * Wait.NO_QUEUE.default_limit)
    decision = at(2 * Wait.NO_QUEUE.default_limit, job=admitted)
    assert (decision.actions, decision.requeue_at) == (
        (),
        NOW + 2 * Wait.NO_QUEUE.default_limit + DELAY_BEFORE_FIRST_READ,
    )
    late = at(3 * Wait.START.default_limit, job=admitted, pods=[make_pod(ATTEMPT, waiting="Unschedulable: no")])
    assert [type(action) for action in late.actions] == [ConfirmFailure]


def job_body(*, suspend: bool, noted: str = "", at: str = "2026-03-01T13:00:00Z") -> Any:
    """Return the Job as the API server stores it, with the spec and the Job controller's status."""
    body = build_job(PLAN.run, PLAN.cases[0], 1, PLAN.runner)
    body["metadata"] |= {"creationTimestamp": timestamp(NOW), "uid": "x"}
    body["spec"]["suspend"] = suspend
    noted_so = {"type": "Suspended", "status": noted, "lastTransitionTime": at}
    return {**body, "status": {"conditions": [noted_so] if noted else []}}


@pytest.mark.parametrize(
    ("suspend", "noted", "suspended", "held"),
    [
        (True, "", True, NOW),
        (True, "True", True, NOW + 60 * MINUTE),
        (False, "True", True, NOW + 60 * MINUTE),
        (False, "False", False, None),
        (True, "False", True, None),
        (False, "", False, None),
    ],
)
def test_a_job_is_held_from_when_to_when_the_job_controller_has_noted(
    suspend: bool, noted: str, suspended: bool, held: Any
) -> None:
    job = observe_job(job_body(suspend=suspend, noted=noted))
    assert job is not None
    assert (job.is_suspended, job.suspended_since) == (suspended, held)


# -- what was taken back ------------------------------------------------------------------------------------------

ADMITTED = make_job(PLAN, ATTEMPT, started_at=NOW + 2 * MINUTE)


def test_a_job_that_its_queue_has_taken_back_waits_for_its_next_pod() -> None:
    decision = at(timedelta(0), pods=[ended(ATTEMPT, 143)])
    (after,) = decision.status.attempts
    assert decision.actions == ()
    assert (after.number, after.job, after.reason, after.finished) == (1, ATTEMPT.job, None, False)
    assert finished(decision) == ("False", "Queued")


def test_a_pod_that_its_queue_took_back_is_neither_collected_nor_counted_as_active_time() -> None:
    gone = ended(ATTEMPT, 143, deletion_time=NOW + MINUTE, is_untracked=True)
    decision = at(3 * MINUTE, job=ADMITTED, pods=[gone])
    assert [type(action) for action in decision.actions] == [ReadEvents]  # why there is no other pod yet
    assert "has no pod yet" in message(decision, "Finished")

    going = running(ATTEMPT, deletion_time=NOW + 3 * MINUTE, is_untracked=True)
    decision = at(3 * MINUTE, job=ADMITTED, pods=[going])
    assert finished(decision) == ("False", "Queued")
    assert f"Pod {going.key.name} has not ended yet" in message(decision, "Finished")
    assert decision.actions == ()
    assert decision.status.active_start_time is None


def test_a_pod_that_somebody_else_deletes_counts_and_so_does_the_end_of_its_job() -> None:
    drained = ended(ATTEMPT, 143, deletion_time=NOW + 4 * MINUTE)
    for job, pod in ((ADMITTED, drained), (replace(ADMITTED, has_ended=True), replace(drained, is_untracked=True))):
        [action] = at(4 * MINUTE, job=job, pods=[pod]).actions
        assert isinstance(action, Collect)


@pytest.mark.parametrize(
    ("deleted", "finalizers", "is_untracked"),
    [(True, [], True), (True, [TRACKED], False), (False, [], False), (False, [TRACKED], False)],
)
def test_a_deleted_pod_without_the_finalizer_of_its_job_is_no_longer_tracked_by_it(
    deleted: bool, finalizers: list[str], is_untracked: bool
) -> None:
    metadata = {"name": "p", "namespace": NAMESPACE, "creationTimestamp": timestamp(NOW), "finalizers": finalizers}
    deletion = {"deletionTimestamp": "2026-03-01T12:01:30Z"} if deleted else {}
    assert observe_pod({"metadata": metadata | deletion}).is_untracked is is_untracked


# -- in whose words -----------------------------------------------------------------------------------------------


def of_job(uid: str) -> Any:
    """Return the metadata of Kueue's Workload of a Job."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": ATTEMPT.job, "uid": uid, "controller": True}
    return {"name": "job-chain", "labels": {JOB_UID_LABEL: uid}, "ownerReferences": [owner]}


def workload(*conditions: tuple[str, str, str, str], active: bool = True, checks: Any = ()) -> Any:
    named = [dict(zip(("type", "status", "reason", "message"), each, strict=True)) for each in conditions]
    return {
        "metadata": of_job(HELD.key.uid),
        "spec": {"active": active},
        "status": {"conditions": named, "admissionChecks": list(checks)},
    }


def asked(found: Any = None, queues: tuple[str, ...] = ("team-a",), job: Any = HELD) -> QueueReport:
    cluster = PlayedCluster(run_manifest(), lambda: "")
    cluster.workload, cluster.queues = found, queues
    return asyncio.run(Queues(cluster, lambda: NOW, lambda _: {job.key.uid}).report(job))


FULL = ("QuotaReserved", "False", "Pending", "couldn't assign flavors: insufficient quota for cpu, 1 more needed.")
PREEMPTED = ("Evicted", "True", "Preempted", "Preempted to accommodate a workload")
MISSING = workload(("QuotaReserved", "False", "Inadmissible", "LocalQueue team-a doesn't exist"))
CHECK = {"name": "budget", "state": "Pending", "message": "ask finance"}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (workload(FULL), "waits in queue team-a: couldn't assign flavors: insufficient quota for cpu, 1 more needed"),
        (workload(PREEMPTED), ": Kueue took it back (Preempted): Preempted to accommodate a workload"),
        (workload(PREEMPTED, ("QuotaReserved", "False", "Pending", PREEMPTED[3])), "accommodate a workload"),
        (workload(PREEMPTED, FULL), "accommodate a workload; couldn't assign flavors: insufficient quota"),
        (workload(("QuotaReserved", "True", "x", "y"), checks=[CHECK]), "check budget is Pending: ask finance"),
        (workload(), "Kueue has given no reason yet"),
        (workload(("QuotaReserved", "False", "Inadmissible", "ClusterQueue c is inactive")), "c is inactive"),
        (None, "Kueue has created no Workload for it: check that its controller runs and manages batch/job"),
    ],
)
def test_a_run_in_a_queue_reports_kueues_message(found: Any, expected: str) -> None:
    report = asked(found)
    assert expected in report.message
    assert report.message.count("accommodate") <= 1
    assert report.in_queue


def pending(message: str, reason: str = "Pending") -> Any:
    return workload(("QuotaReserved", "False", reason, message))


@pytest.mark.parametrize(
    ("found", "remedy"),
    [
        (
            pending("couldn't assign flavors to pod set main: resource ephemeral-storage unavailable in ClusterQueue"),
            "coveredResources of ClusterQueue shared",
        ),
        (
            pending("insufficient quota for cpu in flavor x, request > maximum capacity (8 > 4)"),
            "ClusterQueue shared never has that much",
        ),
        (pending("insufficient unused quota for cpu in flavor x, 1 more needed"), "Wait until others in ClusterQueue"),
        (pending("ClusterQueue shared is inactive", "Inadmissible"), "kubectl describe localqueue team-a"),
        (pending("LocalQueue team-a is inactive", "Inadmissible"), "kubectl describe localqueue team-a"),
        (pending("ClusterQueue shared doesn't exist", "Inadmissible"), "Have ClusterQueue shared created"),
        (pending("Workload namespace doesn't match ClusterQueue selector"), "namespaceSelector of ClusterQueue shared"),
        (pending("untolerated taint {a b NoSchedule <nil>} in flavor x"), "Add a toleration"),
        (pending("flavor x doesn't match node affinity"), "Check the node selection"),
        (workload(("Evicted", "True", "PodsReadyTimeout", "Exceeded the timeout")), "waitForPodsReady.timeout"),
        (workload(PREEMPTED), "kueue.x-k8s.io/priority-class"),
    ],
)
def test_a_run_in_a_queue_names_the_queue_and_the_remedy(found: Any, remedy: str) -> None:
    message = asked(found).message
    assert message.startswith(f"Job {ATTEMPT.job} waits in queue team-a: ")
    assert remedy in message


@pytest.mark.parametrize(
    ("found", "queues", "queue", "expected"),
    [
        (None, ("team-b", "vision"), "team-a", "does not exist in namespace team (did you mean team-b?)"),
        (None, ("vision",), "team-a", "(one of: vision)"),
        (None, (), "team-a", "(the namespace has none)"),
        (MISSING, (), "team-a", "LocalQueue team-a does not exist"),
        (None, ("vision",), "", "is suspended and names no queue"),
        (workload(PREEMPTED, active=False), (), "team-a", "is deactivated (Preempted to accommodate a workload)"),
        (workload(("Finished", "True", "FailedToStart", "conflict")), (), "team-a", "(FailedToStart: conflict)"),
    ],
)
def test_a_run_that_no_queue_will_admit_reports_that_and_the_remedy(
    found: Any, queues: tuple[str, ...], queue: str, expected: str
) -> None:
    report = asked(found, queues, replace(HELD, queue=queue))
    assert expected in report.message
    assert not report.in_queue


@pytest.mark.parametrize(
    "owners", [[], [{"apiVersion": "v1", "kind": "ConfigMap", "uid": HELD.key.uid, "controller": True}]]
)
def test_a_workload_of_another_job_ends_no_wait_in_a_queue(owners: Any) -> None:
    forged = workload(active=False)
    forged["metadata"] = forged["metadata"] | {"ownerReferences": owners}
    report = asked(forged)
    assert report.in_queue
    assert "has created no Workload for it" in report.message


@pytest.mark.parametrize(
    ("error", "expected", "in_queue"),
    [
        (NotFoundError(404, "404 page not found"), "this cluster has no Kueue to admit it: install Kueue, or", False),
        (ForbiddenError(403, "workloads is forbidden"), "cannot read the Workload: workloads is forbidden", True),
        (ApiError(500, "conversion webhook failed."), "cannot read the Workload: conversion webhook failed", True),
    ],
)
def test_an_error_while_reading_the_queue_is_reported(error: ApiError, expected: str, in_queue: bool) -> None:
    class Refusing:
        async def list_workloads(self, *_: str) -> AsyncIterator[Any]:
            raise error
            yield

    report = asyncio.run(Queues(Refusing(), lambda: NOW, lambda _: ()).report(HELD))  # type: ignore[arg-type]
    assert expected in report.message
    assert report.in_queue is in_queue


def test_one_list_answers_for_all_jobs_of_a_namespace_and_other_workloads_are_not_kept() -> None:
    jobs = [replace(HELD, key=HELD.key._replace(uid=f"u-{number}")) for number in range(100)]

    class Kueue:
        lists = 0

        async def list_workloads(self, _: str) -> AsyncIterator[Any]:
            self.lists += 1
            for number in range(200):
                yield workload(FULL) | {"metadata": of_job(f"u-{number}")}

        async def list_local_queues(self, _: str) -> AsyncIterator[Any]:
            self.lists += 1
            yield {"metadata": {"name": "team-a"}, "spec": {"clusterQueue": "shared"}}

    kueue = Kueue()
    queues = Queues(kueue, lambda: NOW, lambda _: {job.key.uid for job in jobs})  # type: ignore[arg-type]

    async def reports() -> list[QueueReport]:
        return list(await asyncio.gather(*map(queues.report, jobs)))

    assert all("insufficient quota" in report.message for report in asyncio.run(reports()))
    assert kueue.lists == 2  # one of Workloads, one of LocalQueues
    assert len(asyncio.run(queues._read_workloads("team"))) == len(jobs)


def test_a_run_that_names_a_priority_and_no_queue_is_not_held() -> None:
    marked = make_plan(labels={labels.QUEUE_PRIORITY: "urgent"})
    job = build_job(marked.run, marked.cases[0], 1, marked.runner)
    assert job["spec"]["suspend"] is False
    assert job["metadata"]["labels"][labels.QUEUE_PRIORITY] == "urgent"


def test_the_operator_reads_the_queue_by_itself_and_forgets_the_answer_with_the_run() -> None:
    cluster = PlayedCluster(run_manifest(), lambda: "")
    objects = RunObjects(Store())
    objects.store.put(HELD)
    applier = Applier(cluster, objects, cluster.clock)
    cluster.workload = workload(FULL)
    asyncio.run(applier.apply(ReadQueue(ATTEMPT), PLAN, observe([HELD])))
    assert "insufficient quota" in applier.memory(UID).queues[ATTEMPT.job].message
    applier.forget(UID)
    assert applier.memory(UID).queues == {}
