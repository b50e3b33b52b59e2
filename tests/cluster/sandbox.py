"""A process and mount namespace of the node's own, so that whatever it starts and mounts ends with it.

containerd and its shims outlive whoever started them, and a container's mounts outlive its processes. When the first
process of a namespace ends, however it ends, the kernel ends all others and unmounts everything. The namespace also
makes the paths built into containerd and the kubelet the node's own, and keeps the kubelet's kernel settings off the
machine.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from cluster.errors import ToolMissingError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cluster.processes import Processes

__all__ = ["check_machine", "enter", "start_sandbox"]

# Built into containerd, its shims, the CNI plugins or the kubelet: they have no setting for these.
HIDDEN = ("/run", "/var/lib", "/var/log")
# The first process waits for its child alone but reaps all: the shims' parents end at once.
FIRST_PROCESS = """\
set -eu
own=$1; shift
mount -t tmpfs tmpfs /run
for path in /var/lib /var/log; do
    mkdir -p "$own$path"
    mount --bind "$own$path" "$path"
done
for setting in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops \
        kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
    mkdir -p "$own/sysctl/${setting%/*}"
    cat "/proc/sys/$setting" > "$own/sysctl/$setting"
    mount --bind "$own/sysctl/$setting" "/proc/sys/$setting"
done
"$@" &
wait $!
"""


def check_machine(directory: Path) -> None:
    """Raise `ToolMissingError` where this machine or user cannot run a node in this directory."""
    if os.geteuid() != 0:
        raise ToolMissingError("a node needs root: it creates namespaces, control groups and a network bridge")
    for tool in ("unshare", "nsenter", "mount", "ip", "containerd", "ctr", "runc"):
        if shutil.which(tool) is None:
            raise ToolMissingError(f"a node needs {tool} (Debian: util-linux, iproute2, containerd, runc)")
    if any(directory.resolve().is_relative_to(path) for path in HIDDEN):
        raise ToolMissingError(f"a node cannot live in {directory}: set XDG_CACHE_HOME to a path outside {HIDDEN}")


def start_sandbox(name: str, command: Sequence[str | Path], directory: Path, processes: Processes) -> int:
    """Start a command in namespaces of its own, with its files below the directory; return the first process's id."""
    namespaces = ("unshare", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc")
    outside = processes.start(name, [*namespaces, "sh", "-c", FIRST_PROCESS, "sh", directory, *command])
    children = Path(f"/proc/{outside}/task/{outside}/children")
    processes.wait_for(name, lambda: children.read_text().split(), what=f"the first process of {name}")
    return int(children.read_text().split()[0])


def enter(first: int) -> tuple[str, ...]:
    """Return what to put before a command so that it runs in the namespaces of that first process."""
    return ("nsenter", f"--target={first}", "--mount", "--pid")
