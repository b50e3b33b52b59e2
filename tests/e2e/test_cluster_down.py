"""`make cluster-down` leaves nothing behind."""

from __future__ import annotations

import contextlib
from pathlib import Path

from cluster.node import mark_of
from cluster.run import down, session_directory, up


def test_deleting_a_cluster_leaves_nothing_behind() -> None:
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
