"""How much memory a case needs at least, against what there is: said before anything is drawn or compiled."""

from pathlib import Path
from typing import Any

from accelbench import cgroup
from accelbench.workload import Workload

FLOAT64 = 8
"""Bytes of a number as inputs are drawn and the reference computes, whatever the policy."""


def needed(workload: Workload, parameters: Any) -> int:
    """The least bytes that a launch of the case, or its reference, holds at once; 0 where nobody knows."""
    if workload.measure(parameters).protocol == "observe":
        return 0
    return round(workload.memory(parameters, FLOAT64))


def available(root: Path = Path("/")) -> int | None:
    """Bytes that this container may use, or this machine has; None where neither is told."""
    limit = cgroup.memory_limit(cgroup.find("memory", root / "proc/self"))
    installed = [int(line.split()[1]) * 1024 for line in _lines(root / "proc/meminfo") if line.startswith("MemTotal:")]
    return min([*installed, *([limit] if limit else [])], default=None)


def refusal(workload: Workload, parameters: Any, limit: int | None) -> str | None:
    """Why the case cannot fit into `limit` bytes, with the estimate and what to do; None where it may."""
    least = needed(workload, parameters)
    if limit is None or least <= limit:
        return None
    return (
        f"needs at least {readable(least)} of memory for its numbers in float64, in which inputs are drawn and the "
        f"reference computes, and may use {readable(limit)}: ask for a smaller case, or for more memory"
    )


def readable(count: int) -> str:
    """`4.0 GiB`."""
    amount, units = float(count), ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]
    while amount >= 1024 and len(units) > 1:  # noqa: PLR2004 - the next unit
        amount /= 1024
        units.pop(0)
    return f"{amount:.1f} {units[0]}"


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
