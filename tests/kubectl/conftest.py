"""A user of the plugin, the real operator, and a node that is played."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.cluster import Cluster
from cluster.wait import wait_until
from kubectl.plugin import User, user
from operator_world.fake_kubelet import FakeKubelet
from operator_world.process import OperatorProcess

CRDS = Path(__file__).parents[2] / "crds"


@pytest.fixture(scope="module")
def kubelet(control_plane: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeKubelet]:
    control_plane.define(CRDS)
    with FakeKubelet(control_plane, tmp_path_factory.mktemp("kubelet")) as running:
        yield running


@pytest.fixture
def operator(cluster: Cluster, kubelet: FakeKubelet, tmp_path: Path) -> Iterator[OperatorProcess]:
    process = OperatorProcess(cluster, tmp_path)
    process.start()
    yield process
    process.terminate()
    assert "Traceback" not in process.log(), process.log()


@pytest.fixture
def jane(cluster: Cluster, kubelet: FakeKubelet, tmp_path: Path) -> User:
    """Whoever may edit the namespace, and no more."""
    there = user(cluster, tmp_path, "edit")
    may = ("auth", "can-i", "create", "benchmarkruns", f"--as=system:serviceaccount:{cluster.namespace}:jane")
    wait_until(lambda: cluster.kubectl(*may, check=False).stdout.strip() == "yes", what="the role to be aggregated")
    return there
