"""The test cluster as pytest fixtures.

`control_plane` is for objects. Tests in `e2e` also have `node_cluster`, which runs pods. `cluster` is either of them,
in a namespace of the test's own.

Each worker of pytest-xdist that needs one starts its own, once. A control plane takes 4 seconds; what it is made of has
been built beforehand (`python -m prepare`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import secrets
from typing import TYPE_CHECKING

import pytest

from cluster.errors import ToolMissingError
from cluster.given import given_cluster
from cluster.run import down, end_abandoned, session_directory, up
from cluster.wait import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.cluster import Cluster

__all__ = ["cluster", "control_plane", "namespace"]


@pytest.fixture(scope="session")
def control_plane() -> Iterator[Cluster]:
    """A real API server with its controllers and scheduler, and no node: pods stay pending."""
    with running_cluster(node=False) as cluster:
        yield cluster


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """`node_cluster` where the test is marked `node`, else `control_plane`, in a new namespace of the test's own."""
    fixture = "node_cluster" if request.node.get_closest_marker("node") else "control_plane"
    shared: Cluster = request.getfixturevalue(fixture)
    own = dataclasses.replace(shared, namespace=f"accelbench-test-{secrets.token_hex(4)}")
    own.kubectl("create", "namespace", own.namespace)
    try:
        # Until it has its service account, a namespace refuses pods.
        account = ("get", "serviceaccount", "default")
        wait_until(lambda: own.kubectl(*account, check=False).returncode == 0, what="the namespace's service account")
        yield own
    finally:
        own.kubectl("delete", "namespace", own.namespace, "--wait=false")


@pytest.fixture
def namespace(cluster: Cluster) -> str:
    """The name of the test's own namespace."""
    return cluster.namespace


@contextlib.contextmanager
def running_cluster(*, node: bool) -> Iterator[Cluster]:
    given = given_cluster()
    if given:
        yield given
        return
    end_abandoned()
    directory = session_directory()
    try:
        cluster, processes = up(directory, node=node, die_with_parent=True)
    except ToolMissingError:
        down(directory)
        raise
    try:
        yield cluster
    finally:
        down(directory)
        processes.reap()
