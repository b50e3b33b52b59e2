"""Provide one node and one installation for all tests of this directory.

Both end with its last test. Taking a node down removes gigabytes, which takes minutes: other workers run meanwhile.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from cluster.fixtures import running_cluster
from cluster.wait import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.cluster import Cluster
    from e2e.installation import Installed

NAMESPACE = "accelbench-e2e"
"""Of the runs: it takes no pod but those that the restricted standard allows."""
SYSTEM = "accelbench-system"
"""Of the operator, which is held to the same."""


@pytest.fixture(scope="package")
def node_cluster() -> Iterator[Cluster]:
    """A real cluster of one node that runs pods; it has no DNS, no service addresses and no way out to the network."""
    with running_cluster(node=True) as cluster:
        yield cluster


@pytest.fixture(scope="package")
def installed(node_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """accelbench, installed by helm on a real node from the Dockerfile's images."""
    # Every test run loads this module, and few need these.
    from e2e.installation import REPLICAS, Installed, install
    from e2e.monitoring import monitored
    from image.build import build_image
    from taxonomy.runs import OFFERED, PROFILES

    for target in ("operator", "runner"):
        node_cluster.import_image(build_image(target))
    runs, system = (_namespace(node_cluster, name) for name in (NAMESPACE, SYSTEM))
    try:
        node_cluster.offer(OFFERED)
        with (
            install(system, PROFILES),
            monitored(system, tmp_path_factory.mktemp("monitoring"), REPLICAS) as (server, notifications),
        ):
            yield Installed(runs, system, server, notifications)
    finally:
        node_cluster.kubectl("delete", "namespace", NAMESPACE, SYSTEM, "--wait=false")


def _namespace(cluster: Cluster, name: str) -> Cluster:
    """The cluster in a new namespace that takes no pod but those that the restricted standard allows."""
    cluster.kubectl("create", "namespace", name)
    cluster.kubectl("label", "namespace", name, "pod-security.kubernetes.io/enforce=restricted")
    inside = dataclasses.replace(cluster, namespace=name)
    account = ("get", "serviceaccount", "default")
    wait_until(lambda: inside.kubectl(*account, check=False).returncode == 0, what="the namespace's service account")
    return inside
