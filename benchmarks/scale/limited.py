"""Run the operator in a control group with a memory limit: `python -m scale.limited GROUP`.

It enters the group before it imports anything of the operator, so that all its memory counts.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from accelbench.machine import cgroup

NAME = "accelbench-benchmark"


class MemoryGroup:
    """Limit and measure the memory of the processes in one control group."""

    def __init__(self, directory: Path, version: int) -> None:
        """Store the group's directory and the version of control groups, 1 or 2."""
        self.directory = directory
        self._group = cgroup.ControlGroup(directory, version)
        self._peak = directory / ("memory.peak" if version > 1 else "memory.max_usage_in_bytes")

    @property
    def peak_megabytes(self) -> float:
        """Return the highest memory so far in MB, page cache included."""
        return int(self._peak.read_text()) / 1e6

    @property
    def kills(self) -> int:
        """Return how many processes were killed because of the limit."""
        return cgroup.out_of_memory_kills(self._group) or 0


@contextmanager
def memory_group(limit: int) -> Iterator[MemoryGroup]:
    """Create a control group whose memory limit is `limit` bytes, within the `with` block; this needs root."""
    own = cgroup.find("memory")
    if own is None:
        raise RuntimeError("no control group for memory; run this as root on Linux")
    directory = own.directory / NAME
    directory.mkdir(exist_ok=True)
    try:
        names = ("memory.max",) if own.version > 1 else ("memory.limit_in_bytes",)
        for name in names:
            (directory / name).write_text(str(limit))
        swap = directory / ("memory.swap.max" if own.version > 1 else "memory.swappiness")
        if swap.exists():
            swap.write_text("0")
        yield MemoryGroup(directory, own.version)
    finally:
        directory.rmdir()


if __name__ == "__main__":
    (Path(sys.argv[1]) / "cgroup.procs").write_text(str(os.getpid()))
    from accelbench_operator.__main__ import main

    sys.exit(main())
