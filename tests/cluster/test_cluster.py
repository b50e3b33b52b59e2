"""The tests touch no cluster of somebody else, and `make cluster-down` leaves nothing behind."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cluster.errors import ForeignClusterError
from cluster.given import given_cluster
from cluster.node import mark_of
from cluster.run import down, session_directory, up

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.cluster import Cluster

pytestmark = pytest.mark.cluster


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


@pytest.mark.node
def test_a_cluster_that_is_taken_down_leaves_nothing() -> None:
    directory = session_directory()
    _, processes = up(directory, node=True, die_with_parent=True)
    assert {trace.split()[0] for trace in traces(directory)} >= {"process", "interface", "file"}

    down(directory)
    down(directory)
    processes.reap()

    assert traces(directory) == set()


def traces(directory: Path) -> set[str]:
    """Return the processes, interfaces, mounts, control groups and files of a cluster on this machine."""
    mark = mark_of(directory)
    found = {f"file {path}" for path in directory.parent.glob(f"{directory.name}*")}
    found |= {f"interface {path.name}" for path in Path("/sys/class/net").iterdir() if path.name == mark}
    found |= {f"group {path}" for path in Path("/sys/fs/cgroup").glob(f"**/{mark}")}
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    found |= {f"mount {line}" for line in mounts if str(directory) in line or mark in line}
    for process in Path("/proc").glob("[0-9]*"):
        # Any process may end while it is inspected.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            # A component names the directory in its arguments, a container runs in the node's control group.
            command = (process / "cmdline").read_text().replace("\0", " ")
            if str(directory) in command or mark in (process / "cgroup").read_text():
                found.add(f"process {process.name} {command}")
    return found
