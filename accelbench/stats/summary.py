"""What a launch and a variant are boiled down to; the standard library alone, for the supervisor reads this too."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from accelbench.workload import ProtocolName

Quantity = Literal["median", "p50", "p99", "mean"]
"""What of a launch's blocks is compared."""
LaunchProtocol = ProtocolName | Literal["compile"]
"""How a launch measures: as its workload says, or not at all, where it compiles for a target."""
QUANTITIES: Mapping[LaunchProtocol, tuple[Quantity, ...]] = {
    "steady": ("median",),
    "latency": ("p50", "p99"),
    "episode": ("mean",),
    "observe": (),
    "compile": (),
}
"""By protocol: the first decides, the others are compared beside it and share its alpha. An episode's calls differ by
design, so all of them count alike; the median of a steady launch's blocks leaves what happened to a few of them out."""
TIME: Mapping[LaunchProtocol, str] = {
    "steady": "geometric mean over launches of each launch's median block",
    "latency": "geometric mean over launches of each launch's median call",
    "episode": "geometric mean over launches of each launch's mean",
}
"""What a variant's time is, in words. The ratio of two such means over the same rounds is exactly the speedup."""


def seconds_per_unit(blocks: Iterable[tuple[int, float]], quantity: Quantity = "median") -> float | None:
    """A launch's seconds per unit over its blocks, each (units, seconds); None without a block."""
    pairs = list(blocks)
    if not pairs:
        return None
    if quantity == "mean":
        return math.fsum(seconds for _, seconds in pairs) / sum(units for units, _ in pairs)
    return quantile([seconds / units for units, seconds in pairs], 99 if quantity == "p99" else 50)


def geometric_mean(values: Iterable[float]) -> float:
    """The mean on a logarithmic scale, of values above zero: a variant's time from those of its launches."""
    return math.exp(statistics.fmean(map(math.log, values)))


def quantile(values: Sequence[float], percent: int) -> float:
    """The quantile, 1 to 99, by linear interpolation between order statistics (type 7 of Hyndman and Fan, 1996).

    Of a single value it is that value; raises ValueError for an empty sample.
    """
    if not values:
        raise ValueError("an empty sample has no quantiles")
    if len(values) == 1:
        return values[0]
    if percent == 50:  # noqa: PLR2004 - the same number, a few times as fast as all hundred of them
        return statistics.median(values)
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]
