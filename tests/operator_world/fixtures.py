"""Run the operator's process against a real control plane, behind a kubelet that tests play."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from operator_world.fake_kubelet import FakeKubelet
from operator_world.process import OperatorProcess

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.cluster import Cluster

CRDS = Path(__file__).parents[2] / "crds"


@pytest.fixture(scope="module")
def kubelet(control_plane: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeKubelet]:
    """Play the only node of the control plane, which has the CRDs."""
    control_plane.define(CRDS)
    with FakeKubelet(control_plane, tmp_path_factory.mktemp("kubelet")) as running:
        yield running


@pytest.fixture
def operator(cluster: Cluster, kubelet: FakeKubelet, tmp_path: Path) -> Iterator[OperatorProcess]:
    """Run the operator until the test ends; fail if it logged a traceback."""
    process = OperatorProcess(cluster, tmp_path)
    process.start()
    yield process
    process.terminate()
    assert "Traceback" not in process.log(), process.log()
