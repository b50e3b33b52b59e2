"""Provide a real API server that serves our CRDs."""

from collections.abc import Iterator

import pytest

from accelbench.api.crd import DIRECTORY
from api.requests import Runs, runs_of
from cluster.cluster import Cluster


@pytest.fixture(scope="session")
def crds(control_plane: Cluster) -> Cluster:
    """Return the control plane when it serves the generated CRDs."""
    control_plane.define(DIRECTORY)
    return control_plane


@pytest.fixture
def server(crds: Cluster, cluster: Cluster) -> Cluster:
    """Return that server with a namespace of the test's own."""
    del crds
    return cluster


@pytest.fixture(scope="module")
def runs(crds: Cluster) -> Iterator[Runs]:
    """Return a client for runs in that control plane's own namespace."""
    with runs_of(crds) as found:
        yield found
