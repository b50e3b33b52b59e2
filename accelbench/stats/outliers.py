"""Values that lie far from the rest: counted, named, and kept.

Nothing is dropped. A slow block is part of what a launch takes, and whoever leaves blocks out for being slow chooses
the answer; how many there are says what kind of machine it was.
"""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

FEWEST = 5
"""Of fewer values the quartiles are values themselves, and every spread looks like an outlier."""
MILD, SEVERE = 1.5, 3.0
"""Tukey's fences lie this many times the distance between the quartiles beyond them."""


@dataclass(frozen=True)
class Outliers:
    """How many of `of` values lie beyond the inner fences (mild), and how many beyond the outer ones (severe)."""

    of: int = 0
    low_severe: int = 0
    low_mild: int = 0
    high_mild: int = 0
    high_severe: int = 0

    @property
    def count(self) -> int:
        """All of them."""
        return self.low_severe + self.low_mild + self.high_mild + self.high_severe


def find_outliers(values: Sequence[float]) -> Outliers:
    """Outliers by Tukey's fences ("Exploratory Data Analysis", 1977); none are looked for in fewer than five values.

    Of normal values about 7 in 1,000 lie beyond the inner fences, and 2 in a million beyond the outer ones.
    """
    if len(values) < FEWEST:
        return Outliers(of=len(values))
    quartile, _, third = statistics.quantiles(values, n=4, method="inclusive")
    spread = third - quartile
    mild, severe = MILD * spread, SEVERE * spread
    return Outliers(
        of=len(values),
        low_severe=sum(value < quartile - severe for value in values),
        low_mild=sum(quartile - severe <= value < quartile - mild for value in values),
        high_mild=sum(third + mild < value <= third + severe for value in values),
        high_severe=sum(value > third + severe for value in values),
    )


def together(found: Iterable[Outliers]) -> Outliers:
    """The outliers of several samples, each by its own fences, counted together."""
    counted = tuple(found)
    return Outliers(
        of=sum(each.of for each in counted),
        low_severe=sum(each.low_severe for each in counted),
        low_mild=sum(each.low_mild for each in counted),
        high_mild=sum(each.high_mild for each in counted),
        high_severe=sum(each.high_severe for each in counted),
    )
