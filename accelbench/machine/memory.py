"""How much memory a case needs at least, against what there is: said before anything is drawn or compiled."""

from pathlib import Path
from typing import Any

from accelbench.machine import cgroup
from accelbench.workload import Workload

FLOAT64 = 8
"""Bytes of a number as inputs are drawn and the reference computes, whatever the policy."""


def needed(workload: Workload, parameters: Any) -> int:
    """The least bytes that a launch of the case, or its reference, holds at once; 0 where nobody knows."""
    return round(workload.memory(parameters, FLOAT64))


def installed(root: Path = Path("/")) -> int | None:
    """Bytes that the machine has; None where it does not tell."""
    lines = _read(root / "proc/meminfo").splitlines()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemTotal:")), None)


def available(root: Path = Path("/")) -> int | None:
    """Bytes that this container may use, or this machine has; None where neither is told."""
    told = (installed(root), cgroup.memory_limit(cgroup.find("memory", root / "proc/self")))
    return min((each for each in told if each is not None), default=None)


def refusal(workload: Workload, parameters: Any, limit: int | None) -> str | None:
    """Why the case cannot fit into `limit` bytes, with the estimate and what to do; None where it may."""
    from rich.filesize import decimal

    least = needed(workload, parameters)
    if limit is None or least <= limit:
        return None
    return (
        f"needs at least {decimal(least)} of memory for its numbers in float64, in which inputs are drawn and the "
        f"reference computes, and may use {decimal(limit)}: ask for a smaller case, or for more memory"
    )


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
