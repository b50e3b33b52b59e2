"""The last cache before memory: how large it is, and how to have nothing of ours left in it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

CPU = Path("/sys/devices/system/cpu")
MOST_BYTES = 256 * 1024 * 1024
"""Walked at most: a cloud's virtual machine is told of a cache that the whole host shares."""
LINE_BYTES = 64
UNITS = {"K": 1024, "M": 1024**2, "G": 1024**3}


def last_level_bytes(root: Path = CPU) -> int | None:
    """Of the first processor's last level of data; None where the kernel does not say."""
    found: dict[int, int] = {}
    for index in (root / "cpu0/cache").glob("index[0-9]*"):
        try:
            if (index / "type").read_text().strip() != "Instruction":
                found[int((index / "level").read_text())] = _bytes((index / "size").read_text().strip())
        except (OSError, ValueError):
            continue
    return found[max(found)] if found else None


def evictor(cache_bytes: int | None) -> Callable[[], None] | None:
    """A call that walks twice the cache's size, so that what was in it is gone; None where that cannot be done."""
    if cache_bytes is None or 2 * cache_bytes > MOST_BYTES:
        return None
    buffer = np.zeros(2 * cache_bytes, dtype=np.uint8)

    def evict() -> None:
        buffer[::LINE_BYTES] += 1

    return evict


def _bytes(text: str) -> int:
    unit = UNITS.get(text[-1:])
    return int(text[:-1]) * unit if unit else int(text)
