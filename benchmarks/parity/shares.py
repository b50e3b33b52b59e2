"""Compute shares of outputs that have a property, with their range over seeds."""

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from benchmarks.parity.measure import Row

Predicate = Callable[[Row], bool]
"""Property of an output, such as that it passes."""


@dataclass(frozen=True)
class Share:
    """Hold a share of outputs: the median over seeds, the smallest and the largest, and their number."""

    median: float
    low: float
    high: float
    count: int

    def __str__(self) -> str:
        """Return the median in per cent, with the range over seeds if it has one."""
        if round(100 * self.low) == round(100 * self.high):
            return f"{100 * self.median:.0f}"
        return f"{100 * self.median:.0f} ({100 * self.low:.0f} to {100 * self.high:.0f})"


def share(rows: Iterable[Row], has_property: Predicate) -> Share | None:
    """Return the share of rows with a property; None without rows."""
    by_seed: dict[int, list[bool]] = defaultdict(list)
    for row in rows:
        by_seed[row.output.seed].append(has_property(row))
    if not by_seed:
        return None
    shares = [statistics.mean(outcomes) for outcomes in by_seed.values()]
    return Share(statistics.median(shares), min(shares), max(shares), sum(map(len, by_seed.values())))


def passes_before(row: Row) -> bool:
    """Return True if the old rule accepts the output."""
    return not row.before


def passes_now(row: Row) -> bool:
    """Return True if the check `parity` passes."""
    return row.now.parity == "passed"


def passes_all_now(row: Row) -> bool:
    """Return True if `parity` passes and `formula` does not fail, so that there is a verdict."""
    return row.now.parity == "passed" and row.now.formula != "failed"


def passes_own(row: Row) -> bool:
    """Return True if `parity` passes when the baseline's own program is the reference."""
    return row.own.parity == "passed"


def passes_all_own(row: Row) -> bool:
    """Return True if, with the baseline's own program as reference, `parity` passes and `formula` does not fail."""
    return row.own.parity == "passed" and row.own.formula != "failed"


def is_refused_now(row: Row) -> bool:
    """Return True if a check fails."""
    return "failed" in {row.now.parity, row.now.formula}


def is_refused_own(row: Row) -> bool:
    """Return True if a check fails when the baseline's own program is the reference."""
    return "failed" in {row.own.parity, row.own.formula}


def is_untested_now(row: Row) -> bool:
    """Return True if no check fails, and parity cannot compare the output."""
    return row.now.parity == "untested" and row.now.formula != "failed"


def is_untested_own(row: Row) -> bool:
    """Return True if, with the baseline's own program as reference, no check fails and parity cannot compare."""
    return row.own.parity == "untested" and row.own.formula != "failed"
