"""The node's own place in the machine's control groups, so that two nodes do not tidy away each other's pods."""

from __future__ import annotations

import contextlib
import functools
from pathlib import Path

from cluster.wait import wait_until

__all__ = ["create_cgroups", "remove_cgroups"]

ROOT = Path("/sys/fs/cgroup")


def create_cgroups(name: str) -> None:
    """Create a group of this name below the root of every hierarchy."""
    if (ROOT / "cgroup.controllers").exists():
        controllers = (ROOT / "cgroup.controllers").read_text().split()
        (ROOT / "cgroup.subtree_control").write_text(" ".join(f"+{controller}" for controller in controllers))
    for hierarchy in _hierarchies():
        (hierarchy / name).mkdir(exist_ok=True)


def remove_cgroups(name: str) -> None:
    """Remove the groups of this name with all below them, once their processes have ended."""
    for hierarchy in _hierarchies():
        group = hierarchy / name
        wait_until(functools.partial(_remove, group), what=f"the end of all in {group}")


def _hierarchies() -> list[Path]:
    # Version 2 is one hierarchy; version 1 is a folder for each, some of which are links to another.
    if (ROOT / "cgroup.controllers").exists():
        return [ROOT]
    # Where a bare root file system has neither, there is no node to be.
    return [path for path in ROOT.glob("*") if path.is_dir() and not path.is_symlink()]


def _remove(group: Path) -> bool:
    for child in sorted(group.rglob("*"), reverse=True):
        if child.is_dir():
            with contextlib.suppress(OSError):
                child.rmdir()
    with contextlib.suppress(OSError):
        group.rmdir()
    return not group.exists()
