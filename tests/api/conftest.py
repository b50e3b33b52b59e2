"""A real API server that has our CRDs."""

import pytest

from accelbench.api.crd import DIRECTORY
from cluster.cluster import Cluster


@pytest.fixture(scope="session")
def crds(control_plane: Cluster) -> Cluster:
    """The control plane with the generated CRDs, served."""
    control_plane.define(DIRECTORY)
    return control_plane


@pytest.fixture
def server(crds: Cluster, cluster: Cluster) -> Cluster:
    """That server, in a namespace of the test's own."""
    del crds
    return cluster
