import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from accelbench.api.profiles import Profiles
from accelbench_operator.apply import Applier
from accelbench_operator.kubernetes_api import ApiError
from accelbench_operator.reconcile import Reconciler, RunKey, read_status
from accelbench_operator.store import Store
from operator_world.builders import NAME, NAMESPACE, UID, run_manifest
from operator_world.simulated import SimulatedCluster

KEY = RunKey(NAMESPACE, NAME, UID)


def reconciler(cluster: SimulatedCluster, leading: Callable[[], bool] = lambda: True) -> Reconciler:
    store = Store(lambda _: None)
    applier = Applier(cluster, store, "runner:1", cluster.clock)
    return Reconciler(cluster, store, applier, Profiles(), cluster.clock, leading)


def new_cluster(**policy: Any) -> SimulatedCluster:
    return SimulatedCluster(run_manifest(sizes=(64, 128), runPolicy=policy), lambda: "")


def test_a_run_that_changed_while_it_was_decided_on_is_looked_at_again_before_anything_is_done() -> None:
    cluster = new_cluster()
    read = cluster.get_run

    async def get_run(namespace: str, name: str) -> Any:
        run = await read(namespace, name)
        cluster.set_policy(suspend=True)
        return run

    cluster.get_run = get_run  # type: ignore[method-assign]

    assert asyncio.run(reconciler(cluster)(KEY)) == 0
    assert cluster.created == []
    assert "status" not in cluster.run


def test_one_cases_trouble_does_not_hold_up_the_others_and_is_not_forgotten() -> None:
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
        asyncio.run(reconciler(cluster)(KEY))
    assert len(cluster.created) == 1


def test_a_run_that_is_gone_or_another_of_the_same_name_is_left_alone() -> None:
    cluster = new_cluster()

    assert asyncio.run(reconciler(cluster)(KEY._replace(uid="another"))) is None
    assert cluster.created == []


def test_who_does_not_lead_writes_nothing() -> None:
    cluster = new_cluster()
    asyncio.run(reconciler(cluster, leading=lambda: False)(KEY))

    assert cluster.created == []
    assert "status" not in cluster.run


def test_an_event_that_cannot_be_posted_stops_nothing() -> None:
    cluster = new_cluster()

    async def create_event(event: Any) -> None:
        raise ApiError(403, "forbidden")

    cluster.create_event = create_event  # type: ignore[method-assign]
    asyncio.run(reconciler(cluster)(KEY))

    assert len(cluster.created) == 1
    assert read_status(cluster.run).phase == "Queued"
