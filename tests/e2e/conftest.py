"""One installation for all end-to-end tests: what takes minutes is done once."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from cluster.wait import wait_until
from e2e.installation import Installed, install
from image.build import build_image
from metrics.prometheus import running_prometheus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.cluster import Cluster

NAMESPACE = "accelbench-e2e"


@pytest.fixture(scope="session")
def installed(node_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """accelbench, installed by helm on a real node from the Dockerfile's images."""
    for target in ("operator", "runner"):
        node_cluster.import_image(build_image(target))
    cluster = dataclasses.replace(node_cluster, namespace=NAMESPACE)
    cluster.kubectl("create", "namespace", NAMESPACE)
    account = ("get", "serviceaccount", "default")
    wait_until(lambda: cluster.kubectl(*account, check=False).returncode == 0, what="the namespace's service account")
    try:
        with install(cluster) as metrics, running_prometheus(tmp_path_factory.mktemp("scraping"), metrics) as server:
            yield Installed(cluster, server)
    finally:
        cluster.kubectl("delete", "namespace", NAMESPACE, "--wait=false")
