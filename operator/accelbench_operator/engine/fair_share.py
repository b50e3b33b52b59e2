"""Divide a limited number of places between namespaces, so that no tenant takes the places of others."""

import heapq
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def fair_share(items: Iterable[T], namespace_of: Callable[[T], str], maximum: int) -> tuple[T, ...]:
    """Return at most `maximum` of the items: the first of each namespace, then the second of each, and so on."""
    counts: Counter[str] = Counter()
    ranked = []
    for position, item in enumerate(items):
        namespace = namespace_of(item)
        # No two positions are equal, so items are never compared with each other.
        ranked.append((counts[namespace], position, item))
        counts[namespace] += 1
    return tuple(item for _rank, _position, item in heapq.nsmallest(maximum, ranked))
