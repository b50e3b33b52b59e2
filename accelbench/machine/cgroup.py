"""Read the limits and counters of this process's control groups: CPU quota, memory limit, out-of-memory kills.

Both versions are read, v1 and v2, each controller where it is mounted. What cannot be read is None: a laptop outside
any container has no limits.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

UNLIMITED_BYTES = 1 << 60
"""Minimum value that means no limit: v1 writes 2**63, rounded to a page."""


class ControlGroup(NamedTuple):
    """Hold the directory of this process's own group for one controller, and the version, 1 or 2."""

    directory: Path
    version: int


def find(controller: str, proc: Path = Path("/proc/self")) -> ControlGroup | None:
    """Return this process's group for `controller` (`cpu`, `memory`); None if no hierarchy has it."""
    try:
        memberships = (proc / "cgroup").read_text().splitlines()
        mounts = (proc / "mountinfo").read_text().splitlines()
    except OSError:
        return None
    unified = None
    for membership in memberships:
        _, controllers, path = membership.split(":", 2)
        if controller in controllers.split(","):
            return _find_mounted(mounts, path, controller)
        if not controllers:
            unified = path
    return _find_mounted(mounts, unified, None) if unified is not None else None


def _find_mounted(mounts: list[str], path: str, controller: str | None) -> ControlGroup | None:
    """Return the group at `path` of the hierarchy of `controller` (v1), or of the unified one (v2, None).

    None if the hierarchy is not mounted. In a container the mount's root may be the group itself.
    """
    for mount in mounts:
        fields, _, rest = mount.partition(" - ")
        kind, _, options = rest.split(" ", 2)
        if kind != ("cgroup2" if controller is None else "cgroup"):
            continue
        if controller is not None and controller not in options.split(","):
            continue
        root, point = fields.split(" ")[3:5]
        inside = path.removeprefix(root) if root != "/" else path
        directory = Path(point) / inside.lstrip("/")
        return ControlGroup(directory if directory.is_dir() else Path(point), 2 if controller is None else 1)
    return None


def processor_quota(group: ControlGroup | None) -> float | None:
    """Return the processors that the group and its parents may use, by the smallest quota; None: no limit."""
    return min((quota for directory in _ancestors(group) if (quota := _quota(directory))), default=None)


def memory_limit(group: ControlGroup | None) -> int | None:
    """Return the smallest memory limit of the group and its parents, in bytes; None: no limit."""
    limits = []
    for directory in _ancestors(group):
        for name in ("memory.max", "memory.limit_in_bytes"):
            text = _read(directory / name)
            if text and text.isdecimal() and int(text) < UNLIMITED_BYTES:
                limits.append(int(text))
    return min(limits, default=None)


def out_of_memory_kills(group: ControlGroup | None) -> int | None:
    """Return the number of the group's processes that the kernel killed for lack of memory; None if unknown."""
    if group is None:
        return None
    text = _read(group.directory / ("memory.events" if group.version == 2 else "memory.oom_control"))  # noqa: PLR2004
    counts = dict(line.split(" ", 1) for line in (text or "").splitlines() if " " in line)
    return int(counts["oom_kill"]) if "oom_kill" in counts else None


def refaulted_bytes(group: ControlGroup | None) -> int | None:
    """Return the bytes of files that were read again after the kernel evicted them; None if unknown.

    A process whose code does not fit into memory with its data is not killed: the kernel evicts its code again and
    again, and it makes no progress.
    """
    text = _read(group.directory / "memory.stat") if group else None
    counts = dict(line.split(" ", 1) for line in (text or "").splitlines() if " " in line)
    pages = counts.get("workingset_refault_file", counts.get("workingset_refault"))  # without _file before Linux 5.9
    return None if pages is None else int(pages) * os.sysconf("SC_PAGE_SIZE")


def _quota(directory: Path) -> float | None:
    """Return the number of processors that this one group's CPU quota allows, or None."""
    words = (_read(directory / "cpu.max") or "").split()
    if not words:
        words = [_read(directory / name) or "" for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us")]
    quota, period = words
    if not (quota.isdecimal() and period.isdecimal() and int(period)):
        return None  # "max" in v2, -1 in v1, no file at the root
    return int(quota) / int(period)


def _ancestors(group: ControlGroup | None) -> Iterator[Path]:
    """Yield the group's directory and its parents, as far as the hierarchy goes."""
    directory = group.directory if group else None
    while directory is not None and (directory / "cgroup.procs").exists():
        yield directory
        directory = directory.parent


def _read(path: Path) -> str | None:
    """Return the file's content without surrounding space; None if it cannot be read."""
    try:
        return path.read_text().strip()
    except OSError:
        return None
