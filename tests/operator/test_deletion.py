"""Jobs that others delete, kept Jobs that make room, and runs whose deletion waits."""

import asyncio
import contextlib
from datetime import timedelta
from typing import Any

from accelbench.cluster_api.errors import ForbiddenError
from accelbench_operator.runs.known import read_status
from operator_world.played import PlayedCluster
from operator_world.reconciling import KEY, new_cluster, reconciler


def events(cluster: PlayedCluster, reason: str) -> list[str]:
    return [event["message"] for event in cluster.events.values() if event["reason"] == reason]


def test_a_time_to_live_on_a_job_causes_a_warning_and_is_named_when_the_job_is_deleted() -> None:
    cluster = new_cluster()
    create = cluster.create_job

    async def create_job(job: Any) -> Any:
        return await create(job | {"spec": job["spec"] | {"ttlSecondsAfterFinished": 1}})

    cluster.create_job = create_job  # type: ignore[method-assign]
    operator = reconciler(cluster)
    for _ in range(3):
        asyncio.run(operator.reconcile(KEY))
        cluster.list_into(operator._objects.store)
    [warning] = events(cluster, "JobExpires")
    [job] = cluster.created
    assert f"Job {job} has ttlSecondsAfterFinished: 1" in warning
    assert "app.kubernetes.io/managed-by=accelbench" in warning

    cluster.delete(job)
    cluster.list_into(operator._objects.store)
    for _ in range(3):
        asyncio.run(operator.reconcile(KEY))
    attempt, *_ = read_status(cluster.run).attempts
    assert (attempt.reason, attempt.retries, attempt.finished) == ("JobExpired", 1, False)


FULL = "jobs.batch is forbidden: exceeded quota: q, requested: count/jobs.batch=1, used: count/jobs.batch=1"


def test_a_job_kept_for_its_log_is_deleted_if_a_quota_of_jobs_blocks_the_next() -> None:
    cluster = new_cluster()
    operator = reconciler(cluster)
    asyncio.run(operator.reconcile(KEY))
    cluster.start_pods()
    [failed] = cluster.created
    cluster.end(failed, "variant-failed")
    create = cluster.create_job

    async def create_job(job: Any) -> Any:
        if cluster.jobs:
            raise ForbiddenError(403, FULL)
        return await create(job)

    cluster.create_job = create_job  # type: ignore[method-assign]
    for _ in range(8):
        cluster.list_into(operator._objects.store)
        with contextlib.suppress(ForbiddenError):
            asyncio.run(operator.reconcile(KEY))
    assert len(cluster.created) == 2
    assert list(cluster.jobs) == cluster.created[1:]
    assert failed in str(events(cluster, "MadeRoom"))


def test_jobs_of_a_run_that_a_finalizer_keeps_from_going_are_deleted() -> None:
    cluster = new_cluster()
    operator = reconciler(cluster)
    asyncio.run(operator.reconcile(KEY))
    cluster.list_into(operator._objects.store)
    cluster.run["metadata"] |= {"deletionTimestamp": "2026-03-01T12:00:00Z", "finalizers": ["example.com/backup"]}
    assert operator.changed(KEY, cluster.run)
    assert asyncio.run(operator.reconcile(KEY)) > 0
    assert (len(cluster.created), cluster.jobs, events(cluster, "DeletionHeld")) == (1, {}, [])

    cluster.advance(timedelta(minutes=10))
    asyncio.run(operator.reconcile(KEY))
    [held] = events(cluster, "DeletionHeld")
    assert "finalizer example.com/backup, which another program has set" in held


def test_a_run_whose_deletion_waits_for_a_job_names_that_job_and_who_refuses_its_deletion() -> None:
    cluster = new_cluster()
    operator = reconciler(cluster)
    asyncio.run(operator.reconcile(KEY))
    cluster.list_into(operator._objects.store)
    cluster.run["metadata"] |= {"deletionTimestamp": "2026-03-01T12:00:00Z", "finalizers": ["foregroundDeletion"]}
    operator.changed(KEY, cluster.run)

    async def delete_job(namespace: str, name: str, uid: str) -> None:
        raise ForbiddenError(403, "Jobs are kept for audit")

    cluster.delete_job = delete_job  # type: ignore[method-assign]
    for _ in range(2):
        assert asyncio.run(operator.reconcile(KEY)) >= 60
    [held] = events(cluster, "DeletionHeld")
    assert f"Job {cluster.created[0]}, which the operator cannot delete: Jobs are kept for audit." in held


def test_a_run_whose_deletion_waits_for_a_pod_names_the_pod_and_its_node() -> None:
    cluster = new_cluster()
    operator = reconciler(cluster)
    asyncio.run(operator.reconcile(KEY))
    cluster.start_pods()
    for pod in cluster.pods.values():
        pod["spec"]["nodeName"] = "node-7"
    cluster.list_into(operator._objects.store)
    cluster.run["metadata"] |= {"deletionTimestamp": "2026-03-01T12:00:00Z", "finalizers": ["foregroundDeletion"]}
    operator.changed(KEY, cluster.run)
    cluster.advance(timedelta(minutes=2))
    asyncio.run(operator.reconcile(KEY))
    [held] = events(cluster, "DeletionHeld")
    assert "on node node-7, which has not ended" in held
