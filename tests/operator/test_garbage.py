"""What lives long is looked at once, and what is dropped goes all the same."""

from __future__ import annotations

import gc
import resource
import weakref
from typing import TYPE_CHECKING

import pytest

from accelbench_operator.engine.garbage import THRESHOLDS, USUAL, SmallCollections, small_collections

if TYPE_CHECKING:
    from collections.abc import Iterator

MANY = 100_000
FEW = MANY // 4


class Cycle:
    """Only the collector frees it."""

    def __init__(self) -> None:
        self.me = self


@pytest.fixture
def collections() -> Iterator[SmallCollections]:
    with small_collections() as found:
        found.settle()
        yield found
    gc.unfreeze()


@pytest.mark.usefixtures("collections")
def test_no_collection_looks_at_many() -> None:
    kept, most = [], 0
    for _ in range(MANY):
        kept.append([])
        if len(kept) % 1000 == 0:
            most = max(most, len(gc.get_objects()))
    assert (len(kept), most < FEW) == (MANY, True), most


@pytest.mark.usefixtures("collections")
def test_a_cycle_that_was_dropped_early_is_freed() -> None:
    dropped = weakref.ref(Cycle())
    kept = [[] for _ in range(MANY)]
    assert (len(kept), dropped()) == (MANY, None)


@pytest.mark.usefixtures("collections")
def test_a_cycle_that_was_dropped_late_is_freed_once_the_memory_in_use_has_doubled() -> None:
    cycle = Cycle()
    gc.collect()
    dropped = weakref.ref(cycle)
    del cycle
    gc.collect()
    late = dropped() is not None
    # Twice the most that there ever was: the kernel may have taken back pages since the collector was set up.
    filled = b"x" * (2 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
    kept = [[] for _ in range(MANY)]
    assert (len(filled) > len(kept), late, dropped()) == (True, True, None)


def test_outside_the_collector_is_as_it_was() -> None:
    before = list(gc.callbacks)
    with small_collections():
        inside = gc.get_threshold(), len(gc.callbacks)
    assert (inside, gc.get_threshold(), list(gc.callbacks)) == ((THRESHOLDS, len(before) + 1), USUAL, before)
