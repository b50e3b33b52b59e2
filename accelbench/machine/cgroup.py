"""Read the limits and counters of this process's control groups: CPU quota, memory limit, out-of-memory kills.

Both versions are read, v1 and v2, each controller where it is mounted. Values that cannot be read are None: a laptop
outside any container has no limits.
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
    """Return the control group that limits this process for a controller, such as `cpu`; None if there is none."""
    try:
        memberships = (proc / "cgroup").read_text().splitlines()
        mount_lines = (proc / "mountinfo").read_text().splitlines()
    except OSError:
        return None
    unified_path = None
    for membership in memberships:
        _, controllers, path = membership.split(":", 2)
        if controller in controllers.split(","):
            return _find_mounted(mount_lines, path, controller)
        if not controllers:  # the line of cgroup v2, which has one hierarchy for all controllers
            unified_path = path
    return None if unified_path is None else _find_mounted(mount_lines, unified_path, None)


def _find_mounted(mount_lines: list[str], path: str, controller: str | None) -> ControlGroup | None:
    """Return the control group at `path` and its directory below the hierarchy's mount point; None without a mount.

    The hierarchy is that of a cgroup v1 `controller` or, if it is None, the one of cgroup v2. `mount_lines` are the
    lines of /proc/self/mountinfo.
    """
    version = 2 if controller is None else 1
    for line in mount_lines:
        general_fields, _, filesystem_fields = line.partition(" - ")  # see proc_pid_mountinfo(5)
        filesystem, _, options = filesystem_fields.split(" ", 2)
        if filesystem != ("cgroup2" if controller is None else "cgroup"):
            continue
        if controller is not None and controller not in options.split(","):
            continue
        # The fields before the dash begin with mount ID, parent ID, device, root and mount point; `root` is the group
        # that is mounted.
        root, mount_point = general_fields.split(" ")[3:5]
        path_below_root = path if root == "/" else path.removeprefix(root)
        directory = Path(mount_point) / path_below_root.lstrip("/")
        if not directory.is_dir():  # in a container the mount point can be the group itself
            directory = Path(mount_point)
        return ControlGroup(directory, version)
    return None


def cpu_quota(group: ControlGroup | None) -> float | None:
    """Return the smallest CPU quota of the group and its parents, such as 1.5 CPUs; None without a quota."""
    quotas = [_group_quota(directory) for directory in _group_directories(group)]
    return min((quota for quota in quotas if quota), default=None)


def memory_limit(group: ControlGroup | None) -> int | None:
    """Return the smallest memory limit of the group and its parents, in bytes; None without a limit."""
    limits = []
    for directory in _group_directories(group):
        for name in ("memory.max", "memory.limit_in_bytes"):  # cgroup v2, v1
            text = _read(directory / name)
            if text and text.isdecimal() and int(text) < UNLIMITED_BYTES:
                limits.append(int(text))
    return min(limits, default=None)


def out_of_memory_kills(group: ControlGroup | None) -> int | None:
    """Return how many processes of the group the kernel has killed for lack of memory; None if it is not counted."""
    if group is None:
        return None
    name = "memory.oom_control" if group.version == 1 else "memory.events"
    kills = _read_counters(group.directory / name).get("oom_kill")
    return None if kills is None else int(kills)


def refaulted_bytes(group: ControlGroup | None) -> int | None:
    """Return how many bytes of files the group read again after they were evicted from memory; None if not counted.

    The number grows fast if processes do not fit into memory: they read even their own code again and again.
    """
    if group is None:
        return None
    counters = _read_counters(group.directory / "memory.stat")
    pages = counters.get("workingset_refault_file")
    if pages is None:
        pages = counters.get("workingset_refault")  # the counter's name before Linux 5.9
    return None if pages is None else int(pages) * os.sysconf("SC_PAGE_SIZE")


def _read_counters(path: Path) -> dict[str, str]:
    """Return the values in a file that has a name and a value on each line, by name; empty if it cannot be read."""
    lines = (_read(path) or "").splitlines()
    return dict(line.split(" ", 1) for line in lines if " " in line)


def _group_quota(directory: Path) -> float | None:
    """Return how many CPUs the quota of one control group allows, such as 1.5; None without a quota."""
    values = (_read(directory / "cpu.max") or "").split()  # cgroup v2
    if not values:  # cgroup v1
        values = [_read(directory / name) or "" for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us")]
    quota, period = values
    if not (quota.isdecimal() and period.isdecimal() and int(period)):
        return None  # without a limit, the quota is "max" in v2 and -1 in v1; the root group has no file for it
    return int(quota) / int(period)


def _group_directories(group: ControlGroup | None) -> Iterator[Path]:
    """Yield the directories of the group and of its parents, up to the mount point; their limits apply together."""
    directory = group.directory if group else None
    # Every group has this file. The directory above the mount point has not.
    while directory is not None and (directory / "cgroup.procs").exists():
        yield directory
        directory = directory.parent


def _read(path: Path) -> str | None:
    """Return a file's text without space at its ends; None if it cannot be read."""
    try:
        return path.read_text().strip()
    except OSError:
        return None
