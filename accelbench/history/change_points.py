"""Find change points of a series: results after which a variant takes lastingly more or less time. Pure.

Needs numpy and ruptures, the extra `series`; `install_hint` explains how to install them.
"""

import importlib.util
import math
from dataclasses import dataclass

from accelbench.history.sample import CaseKey, ComparedQuantity, Side, collect_sample, describe_case
from accelbench.stats.change_points import MINIMUM_RESULTS, find_change_points
from accelbench.stats.summary import has_tail

NEEDS = ("numpy", "ruptures")


@dataclass(frozen=True)
class SeriesChange:
    """Describe a lasting change of one variant's seconds."""

    side: str
    case: CaseKey
    variant: str
    since: str
    """Start time of the first result after the change."""
    position: int
    """Position of that result in the series, from 1."""
    series_length: int
    """Number of results in the series."""
    ratio: float
    """Seconds after the change divided by seconds before; above 1 the variant became slower."""

    @property
    def sentence(self) -> str:
        """Describe since which result the variant takes more or less time, in a sentence."""
        slower = f"takes {self.ratio:.3g} times as long"
        faster = f"is {1 / self.ratio:.3g} times as fast"
        change = slower if self.ratio > 1 else faster
        result = f"result {self.position} of {self.series_length} in {self.side}"
        return f"{describe_case(self.case)}: {self.variant} {change} since {self.since} ({result})."


def install_hint() -> str | None:
    """Return how to install the packages that change points need; None if all are installed."""
    absent = [name for name in NEEDS if importlib.util.find_spec(name) is None]
    if not absent:
        return None
    return f"looking for change points needs {' and '.join(absent)}: pip install 'accelbench[series]'"


def has_enough_results(side: Side, *others: Side) -> bool:
    """Return True if a case on this side of a comparison has enough results over time to look for change points.

    `others` are the other sides of the comparison: parameters that they sweep distinguish cases of this side too.
    """
    return any(len(results) >= MINIMUM_RESULTS for results in side.results_by_case(*others).values())


def find_changes(side: Side, *others: Side) -> tuple[SeriesChange, ...]:
    """Find the results from which a variant lastingly takes more or less time, by more than the equivalence margin.

    Each case on this side of a comparison is a series of results over time. `others` are the other sides: parameters
    that they sweep distinguish cases of this side too. Of protocols that time calls one by one, only medians (`p50`)
    are examined.
    """
    changes = []
    for key, results in side.results_by_case(*others).items():
        latest = results[-1]  # its margin and its protocol apply to the whole series
        margin = float(latest.case.measurement.equivalence_margin)
        quantity: ComparedQuantity = "p50" if has_tail(latest.protocol) else "median"
        for name in dict.fromkeys(variant.name for result in results for variant in result.variants):
            sample = collect_sample(side, results, name, quantity)
            seconds = list(map(math.exp, sample.result_logarithms))  # one number for each result that counts
            changes += [
                SeriesChange(
                    side=side.name,
                    case=key,
                    variant=name,
                    since=sample.started[point.index],
                    position=point.index + 1,
                    series_length=len(seconds),
                    ratio=point.ratio,
                )
                for point in find_change_points(seconds, minimum_change=margin)
            ]
    return tuple(changes)
