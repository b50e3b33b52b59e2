"""Compare the memory that a case needs with what is available, before anything is generated or compiled."""

from pathlib import Path
from typing import Any

from accelbench.machine import cgroup
from accelbench.workload import Workload

FLOAT64_BYTES = 8
"""Bytes of a number: inputs are drawn and the reference computes in float64, whatever the policy."""


def needed_bytes(workload: Workload, parameters: Any) -> int:
    """Return the minimum number of bytes of memory that a launch of the case needs; 0 if unknown."""
    return round(workload.memory(parameters, FLOAT64_BYTES))


def installed_bytes(root: Path = Path("/")) -> int | None:
    """Return the machine's memory in bytes; None if `root` has no /proc/meminfo."""
    for line in _read(root / "proc/meminfo").splitlines():
        if line.startswith("MemTotal:"):
            _name, kib, *_unit = line.split()
            return int(kib) * 1024
    return None


def available_bytes(root: Path = Path("/")) -> int | None:
    """Return the bytes of memory that a process may use: the machine's memory or the container's limit, if smaller.

    Returns None if both are unknown.
    """
    container_limit = cgroup.memory_limit(cgroup.find("memory", root / "proc/self"))
    limits = [limit for limit in (installed_bytes(root), container_limit) if limit is not None]
    return min(limits, default=None)


def refusal(workload: Workload, parameters: Any, limit: int | None) -> str | None:
    """Return the reason to refuse a case that needs more than `limit` bytes of memory; None if the case may run.

    A `limit` of None is no limit. The need is computed then too, so that an exception of the workload is raised.
    """
    from rich.filesize import decimal

    minimum_bytes = needed_bytes(workload, parameters)
    if limit is None or minimum_bytes <= limit:
        return None
    minimum, maximum = decimal(minimum_bytes), decimal(limit)
    return (
        f"needs at least {minimum} of memory for its numbers in float64, in which inputs are drawn and the "
        f"reference computes, but may use only {maximum}: choose a smaller case, or request more memory"
    )


def _read(path: Path) -> str:
    """Return a file's text; empty if it cannot be read."""
    try:
        return path.read_text()
    except OSError:
        return ""
