"""Find change points of a series: results after which a variant takes lastingly more or less time. Pure.

Needs numpy and ruptures, the extra `series`; `missing` returns what is not installed.
"""

import importlib.util
import math
from dataclasses import dataclass

from accelbench.history.sample import ComparedQuantity, Key, Side, label, sample
from accelbench.stats.change_points import MINIMUM_RESULTS, find_change_points

NEEDS = ("numpy", "ruptures")


@dataclass(frozen=True)
class SeriesChange:
    """Describe a lasting change of one variant's seconds."""

    side: str
    case: Key
    variant: str
    since: str
    """Start time of the first result after it."""
    number: int
    """That result's position in the series, from 1."""
    of: int
    """Results in the series."""
    ratio: float
    """Seconds after it divided by seconds before it; above 1 the variant became slower."""

    @property
    def sentence(self) -> str:
        """Return the finding in a sentence."""
        change = f"{self.ratio:.3g} times as long" if self.ratio > 1 else f"{1 / self.ratio:.3g} times as fast"
        takes = "takes" if self.ratio > 1 else "is"
        where = f"result {self.number} of {self.of} in {self.side}"
        return f"{label(self.case)}: {self.variant} {takes} {change} since {self.since} ({where})."


def missing() -> str | None:
    """Return how to install what is missing to find change points, without importing it; None if all is there."""
    absent = [name for name in NEEDS if importlib.util.find_spec(name) is None]
    return f"looking for steps needs {' and '.join(absent)}: pip install 'accelbench[series]'" if absent else None


def has_enough_results(side: Side, *others: Side) -> bool:
    """Return True if any case of the side has at least `MINIMUM_RESULTS` results.

    `others` are the sides that it is compared with.
    """
    return any(len(results) >= MINIMUM_RESULTS for results in side.cases(*others).values())


def find_changes(side: Side, *others: Side) -> tuple[SeriesChange, ...]:
    """Return every change beyond the equivalence margin, for each variant of each case that has enough results."""
    changes = []
    for key, results in side.cases(*others).items():
        margin = float(results[-1].case.measurement.equivalence_margin)
        quantity: ComparedQuantity = "p50" if results[-1].protocol == "latency" else "median"
        for name in dict.fromkeys(variant.name for result in results for variant in result.variants):
            series = sample(side, results, name, quantity)
            seconds = list(map(math.exp, series.results))
            changes += [
                SeriesChange(
                    side.name, key, name, series.started[point.index], point.index + 1, len(seconds), point.ratio
                )
                for point in find_change_points(seconds, minimum_change=margin)
            ]
    return tuple(changes)
