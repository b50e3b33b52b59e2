"""Where a series stepped: since when a variant takes longer, or less, than the results before. Pure.

Needs ruptures, the extra `series`; `missing()` says so before anything is looked for.
"""

import importlib.util
import math
from dataclasses import dataclass

from accelbench.history.sample import Key, Quantity, Side, label, sample
from accelbench.stats.change_points import FEWEST, find_change_points

NEEDS = ("numpy", "ruptures")


@dataclass(frozen=True)
class SeriesStep:
    """A lasting change in one variant's seconds."""

    side: str
    case: Key
    variant: str
    since: str
    """When the first result after it began."""
    number: int
    """That result's place in the series, from 1."""
    of: int
    ratio: float
    """Seconds after it over seconds before it: above 1 it takes longer since."""

    @property
    def sentence(self) -> str:
        """What happened, to which variant, and since when."""
        change = f"{self.ratio:.3g} times as long" if self.ratio > 1 else f"{1 / self.ratio:.3g} times as fast"
        takes = "takes" if self.ratio > 1 else "is"
        where = f"result {self.number} of {self.of} in {self.side}"
        return f"{label(self.case)}: {self.variant} {takes} {change} since {self.since} ({where})."


def missing() -> str | None:
    """What to install before steps can be looked for; None where all is there. Nothing is imported."""
    absent = [name for name in NEEDS if importlib.util.find_spec(name) is None]
    return f"looking for steps needs {' and '.join(absent)}: pip install 'accelbench[series]'" if absent else None


def long_enough(side: Side, *beside: Side) -> bool:
    """Whether any case of the side is a series in which steps are looked for; `beside` it are those compared with."""
    return any(len(results) >= FEWEST for results in side.cases(*beside).values())


def steps(side: Side, *beside: Side) -> tuple[SeriesStep, ...]:
    """Every step beyond the equivalence margin, of every variant of every case with ten results or more that count."""
    found = []
    for key, results in side.cases(*beside).items():
        margin = float(results[-1].case.measurement.equivalence_margin)
        quantity: Quantity = "p50" if results[-1].protocol == "latency" else "median"
        for variant in dict.fromkeys(each.name for result in results for each in result.variants):
            known = sample(side, results, variant, quantity)
            values = list(map(math.exp, known.results))
            found += [
                SeriesStep(side.name, key, variant, known.started[at.index], at.index + 1, len(values), at.ratio)
                for at in find_change_points(values, least=margin)
            ]
    return tuple(found)
