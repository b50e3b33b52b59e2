"""One installation for all tests on a real node: what takes minutes is done once."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from cluster.wait import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.cluster import Cluster
    from e2e.installation import Installed

NAMESPACE = "accelbench-e2e"
"""Of the runs: it takes no pod but those that the restricted standard allows."""
SYSTEM = "accelbench-system"
"""Of the operator, which has to be on this node's network."""


@pytest.fixture(scope="session")
def installed(node_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """accelbench, installed by helm on a real node from the Dockerfile's images."""
    # Every test run loads this module, and few need these.
    from e2e.installation import Installed, install
    from image.build import build_image
    from metrics.prometheus import running_prometheus
    from taxonomy.runs import OFFERED, PROFILES

    for target in ("operator", "runner"):
        node_cluster.import_image(build_image(target))
    runs = _namespace(node_cluster, NAMESPACE, enforce="restricted")
    system = _namespace(node_cluster, SYSTEM, enforce="privileged")
    try:
        node_cluster.offer(OFFERED)
        with (
            install(system, PROFILES) as metrics,
            running_prometheus(tmp_path_factory.mktemp("scraping"), metrics) as server,
        ):
            yield Installed(runs, system, server)
    finally:
        node_cluster.kubectl("delete", "namespace", NAMESPACE, SYSTEM, "--wait=false")


def _namespace(cluster: Cluster, name: str, *, enforce: str) -> Cluster:
    """The cluster in a new namespace that holds its pods to a Pod Security standard."""
    cluster.kubectl("create", "namespace", name)
    cluster.kubectl("label", "namespace", name, f"pod-security.kubernetes.io/enforce={enforce}")
    inside = dataclasses.replace(cluster, namespace=name)
    account = ("get", "serviceaccount", "default")
    wait_until(lambda: inside.kubectl(*account, check=False).returncode == 0, what="the namespace's service account")
    return inside
