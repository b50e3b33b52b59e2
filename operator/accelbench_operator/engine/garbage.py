"""Garbage collection in small steps, as the event loop stands still meanwhile.

By itself the interpreter looks at everything that has lived long, whenever that has grown by a quarter: with a thousand
runs in progress, that takes 50 ms. Here what one collection finds in use is frozen, so that no later one looks at it
again. Reference counts still free it. Only a cycle that has lived long and is then dropped would stay, so everything is
looked at once more when the memory in use has doubled.
"""

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

THRESHOLDS = 700, 10, 1
"""After how many new objects, collections of the youngest, and of the middle generation; the last is 10 by default."""
OLDEST = len(THRESHOLDS) - 1
USUAL = gc.get_threshold()


class SmallCollections:
    """A callback of the collector."""

    def __init__(self) -> None:
        """Nothing is looked at once more until `settle`."""
        self._most = 0
        self._unfrozen = False

    def settle(self) -> None:
        """What is there by now stays: everything has been imported and listed."""
        gc.freeze()
        gc.collect()  # of next to nothing: the collector waits for a quarter of what it last found in use
        self._most = 2 * _resident_pages()

    def __call__(self, phase: str, info: Mapping[str, int]) -> None:
        """At a collection's start and end."""
        if phase == "start" or info["generation"] < OLDEST:
            return
        if self._unfrozen:
            self._unfrozen = False
            self.settle()
            return
        gc.freeze()
        if self._most and _resident_pages() > self._most:
            # For the next collection; within one, no other can be asked for.
            gc.unfreeze()
            self._unfrozen = True


def _resident_pages() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1])


@contextmanager
def small_collections() -> Iterator[SmallCollections]:
    """Inside, collections are small."""
    collections = SmallCollections()
    gc.freeze()
    gc.collect()
    gc.set_threshold(*THRESHOLDS)
    gc.callbacks.append(collections)
    try:
        yield collections
    finally:
        gc.callbacks.remove(collections)
        gc.set_threshold(*USUAL)
