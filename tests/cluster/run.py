"""A whole cluster in a directory: started there, found there, and taken down from there, by whoever comes first."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from typing import TYPE_CHECKING

from cluster.build import binaries, cache
from cluster.cluster import Cluster
from cluster.control_plane import LOOPBACK, start_control_plane
from cluster.errors import ClusterError
from cluster.node import NODE_NAME, prepare_node, remove_node_traces, start_node
from cluster.processes import Processes, end_processes, is_running, start_time

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["down", "end_abandoned", "session_directory", "up"]


def up(directory: Path, *, node: bool, die_with_parent: bool) -> tuple[Cluster, Processes]:
    """Start a cluster whose state is the directory, and return it once it is ready; on failure nothing is left.

    With `die_with_parent` its processes end with the calling one, however that ends; otherwise only `down` ends them.
    """
    programs = binaries()
    if directory.exists():
        down(directory)
    directory.mkdir(parents=True)
    processes = Processes(directory, die_with_parent=die_with_parent)
    try:
        address = prepare_node(directory) if node else LOOPBACK
        control_plane = start_control_plane(directory, programs, processes, address)
        cluster = Cluster(kubeconfig=control_plane.kubeconfig, kubectl_program=programs.kubectl)
        if node:
            start_node(directory, programs, processes, control_plane)

            def ready() -> bool:
                path = "--output=jsonpath={.status.conditions[?(@.type=='Ready')].status}"
                return cluster.kubectl("get", "node", NODE_NAME, path, check=False).stdout == "True"

            processes.wait_for("kubelet", ready, what=f"node {NODE_NAME} to be ready")
    except BaseException:
        down(directory)
        processes.reap()
        raise
    return cluster, processes


def down(directory: Path) -> None:
    """End the cluster of this directory and remove all that it left; do nothing where there is none."""
    if directory.exists():
        end_processes(directory)
        remove_node_traces(directory)
        shutil.rmtree(directory)
    _owner(directory).unlink(missing_ok=True)


def session_directory() -> Path:
    """Return a new directory for a cluster that belongs to this process."""
    directory = cache() / "sessions" / secrets.token_hex(4)
    directory.parent.mkdir(parents=True, exist_ok=True)
    owner = {"id": os.getpid(), "started": start_time(os.getpid())}
    _owner(directory).write_text(json.dumps(owner))
    return directory


def end_abandoned() -> None:
    """Take down the clusters of processes that ended without doing it themselves."""
    for record in (cache() / "sessions").glob("*.json"):
        try:
            owner = json.loads(record.read_text())
            if not is_running(owner["id"], owner["started"]):
                down(record.with_suffix(""))
        except (ClusterError, OSError, ValueError):
            # Another test process is at it, or writes the record right now.
            continue


def _owner(directory: Path) -> Path:
    """Return where it is recorded which process a cluster belongs to."""
    return directory.with_suffix(".json")
