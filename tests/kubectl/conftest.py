"""Provide a user of the plugin, the real operator, and a simulated node."""

from pathlib import Path

import pytest

from cluster.cluster import Cluster
from cluster.wait import wait_until
from kubectl.plugin import User, user
from operator_world.fake_kubelet import FakeKubelet


@pytest.fixture
def jane(cluster: Cluster, kubelet: FakeKubelet, tmp_path: Path) -> User:
    """Return a user who may edit the namespace, and no more."""
    there = user(cluster, tmp_path, "edit")
    may = ("auth", "can-i", "create", "benchmarkruns", f"--as=system:serviceaccount:{cluster.namespace}:jane")
    wait_until(lambda: cluster.kubectl(*may, check=False).stdout.strip() == "yes", what="the role to be aggregated")
    return there
