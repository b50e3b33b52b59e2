"""One of several replicas gets the Lease of a real API server, and the others log that in one line."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest
from kubernetes.aio.client import ApiClient
from kubernetes.aio.leaderelection.leaderelectionrecord import LeaderElectionRecord

from accelbench_operator.engine.election import Lock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from cluster.cluster import Cluster

LEASE = "accelbench"
REPLICAS = ("first", "second")


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[ApiClient]:
    async with ApiClient(await cluster.configuration()) as found:
        yield found


@pytest.fixture
def lock(cluster: Cluster, client: ApiClient) -> Callable[[str], Lock]:
    return lambda identity: Lock(LEASE, cluster.namespace, identity, client)


def record(identity: str) -> LeaderElectionRecord:
    now = "2026-11-27 13:04:53.437123"
    return LeaderElectionRecord(identity, "10", now, now)


def one_line_for_the_second(caplog: pytest.LogCaptureFixture) -> bool:
    lines = [entry for entry in caplog.records if entry.levelno >= logging.INFO]
    return [(entry.levelname, entry.exc_info) for entry in lines] == [("INFO", None)]


async def test_only_one_of_two_replicas_creates_the_lease(
    cluster: Cluster, lock: Callable[[str], Lock], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    made = [await lock(each).create(LEASE, cluster.namespace, record(each)) for each in REPLICAS]
    assert made == [True, False]
    assert one_line_for_the_second(caplog), caplog.text
    _, kept = await lock("reader").get(LEASE, cluster.namespace)
    assert kept.holder_identity == "first"


async def test_only_one_of_two_replicas_acquires_a_free_lease(
    cluster: Cluster, lock: Callable[[str], Lock], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await lock("before").create(LEASE, cluster.namespace, record("before"))
    replicas = [lock(each) for each in REPLICAS]
    for each in replicas:
        await each.get(LEASE, cluster.namespace)
    taken = [await each.update(LEASE, cluster.namespace, record(each.identity)) for each in replicas]
    assert taken == [True, False]
    assert one_line_for_the_second(caplog), caplog.text
    _, kept = await lock("reader").get(LEASE, cluster.namespace)
    assert kept.holder_identity == "first"


async def test_a_lease_that_may_not_be_written_is_reported_with_the_reason(
    lock: Callable[[str], Lock], caplog: pytest.LogCaptureFixture
) -> None:
    assert not await lock("first").create(LEASE, "nowhere", record("first"))
    assert 'namespaces \\"nowhere\\" not found' in caplog.text
