"""The tests touch no cluster of somebody else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cluster.errors import ForeignClusterError
from cluster.given import given_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.cluster import Cluster


@pytest.fixture
def others_namespace(control_plane: Cluster) -> Iterator[str]:
    control_plane.kubectl("create", "namespace", "payments")
    yield "payments"
    control_plane.kubectl("delete", "namespace", "payments")


def test_a_cluster_with_namespaces_of_others_is_refused(
    control_plane: Cluster, monkeypatch: pytest.MonkeyPatch, others_namespace: str
) -> None:
    monkeypatch.setenv("ACCELBENCH_TEST_KUBECONFIG", str(control_plane.kubeconfig))

    with pytest.raises(ForeignClusterError, match=others_namespace):
        given_cluster()

    monkeypatch.setenv("ACCELBENCH_TEST_KUBECONFIG_CONFIRM", "accelbench-tests")
    given = given_cluster()
    assert given is not None
    assert given.server == control_plane.server
