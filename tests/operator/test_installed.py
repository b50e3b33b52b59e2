"""`helm test` succeeds if an operator works, and otherwise names what is missing."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from accelbench.api.profiles import Profiles
from accelbench_operator.engine.api import KubernetesApi
from accelbench_operator.engine.election import LeaseName
from accelbench_operator.installed import NotAtWorkError, run_checks
from accelbench_operator.settings import Settings
from operator_world.process import OperatorProcess

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from cluster.cluster import Cluster

CRDS = Path(__file__).parents[2] / "crds"
LEASE = "accelbench"


@pytest.fixture
async def api(cluster: Cluster) -> AsyncIterator[KubernetesApi]:
    async with KubernetesApi(await cluster.configuration()) as found:
        yield found


@pytest.fixture
def settings(cluster: Cluster) -> Settings:
    cluster.define(CRDS)
    lease = LeaseName(cluster.namespace, LEASE)
    return Settings(
        runner_image="accelbench-runner:test", profiles=Profiles(), namespaces=(cluster.namespace,), lease=lease
    )


async def printed(api: KubernetesApi, settings: Settings, *, wait_seconds: float) -> list[str]:
    return [line async for line in run_checks(api, settings, wait_seconds=wait_seconds)]


async def test_helm_test_succeeds_if_an_operator_leads(
    cluster: Cluster, api: KubernetesApi, settings: Settings, tmp_path: Path
) -> None:
    process = OperatorProcess(cluster, tmp_path, lease=LEASE)
    process.start()
    try:
        lines = await printed(api, settings, wait_seconds=60)
    finally:
        process.terminate()
    assert "as this release writes them" in lines[0]
    assert f"may list runs in {cluster.namespace}" in lines[1]
    assert f"renews the Lease {cluster.namespace}/{LEASE}" in lines[2]


async def test_helm_test_fails_if_the_lease_is_not_renewed(
    cluster: Cluster, api: KubernetesApi, settings: Settings
) -> None:
    cluster.apply(
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": LEASE},
            "spec": {"holderIdentity": "who is gone", "renewTime": "2026-11-24T00:00:00.000000Z"},
        }
    )
    with pytest.raises(NotAtWorkError, match=f"no replica .* the Lease {cluster.namespace}/{LEASE}.*kubectl logs"):
        await printed(api, settings, wait_seconds=0)


async def test_helm_test_fails_without_a_lease(api: KubernetesApi, settings: Settings) -> None:
    with pytest.raises(NotAtWorkError, match="no replica renews"):
        await printed(api, settings, wait_seconds=0)


async def test_helm_test_names_the_missing_setting_of_the_lease(api: KubernetesApi, settings: Settings) -> None:
    with pytest.raises(NotAtWorkError, match="ACCELBENCH_LEASE is not set"):
        await printed(api, dataclasses.replace(settings, lease=None), wait_seconds=0)
