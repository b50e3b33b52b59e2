"""Summarise launches and variants in one number; with the standard library only, as the supervisor imports this."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from accelbench.workload import ProtocolName

Quantity = Literal["median", "p50", "p99", "mean"]
"""Statistic over a launch's blocks that is compared."""
LaunchProtocol = ProtocolName | Literal["compile"]
"""How a launch measures: by its workload's protocol, or `compile` for a target, without measuring."""
QUANTITIES: Mapping[LaunchProtocol, tuple[Quantity, ...]] = {
    "steady": ("median",),
    "latency": ("p50", "p99"),
    "arrivals": ("p50", "p99"),
    "episode": ("mean",),
    "observe": (),
    "compile": (),
}
"""Statistics by protocol. The first one decides; the others are compared too and share its alpha. An episode's calls
differ by design, so all of them count alike; the median of a steady launch's blocks ignores a few disturbed ones."""
TIME: Mapping[LaunchProtocol, str] = {
    "steady": "geometric mean over launches of each launch's median block",
    "latency": "geometric mean over launches of each launch's median call",
    "arrivals": "geometric mean over launches of each launch's median response, from arrival to answer",
    "episode": "geometric mean over launches of each launch's mean",
}
"""Definition of a variant's time, in words. The ratio of two such means over the same rounds is exactly the speedup."""


def has_tail(protocol: LaunchProtocol | None) -> bool:
    """Return True if the protocol times calls one by one, so that their 99th percentile is compared too."""
    return protocol is not None and "p99" in QUANTITIES[protocol]


def seconds_per_unit(blocks: Iterable[tuple[int, float]], quantity: Quantity = "median") -> float | None:
    """Return the median, mean or 99th percentile of a launch's seconds per unit; None without blocks.

    Each block is a pair (units of work, seconds). The mean is over units and not over blocks.
    """
    pairs = list(blocks)
    if not pairs:
        return None
    if quantity == "mean":
        return math.fsum(seconds for _, seconds in pairs) / sum(units for units, _ in pairs)
    percent = 99 if quantity == "p99" else 50  # `p50` and `median` are the same
    return quantile([seconds / units for units, seconds in pairs], percent)


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean of positive values."""
    return math.exp(statistics.fmean(map(math.log, values)))


def quantile(values: Sequence[float], percent: int) -> float:
    """Return the quantile at `percent` percent, by linear interpolation (type 7 of Hyndman and Fan).

    `percent` must be from 1 to 99. Raises ValueError without values.
    """
    if not values:
        raise ValueError("an empty sample has no quantiles")
    if len(values) == 1:
        return values[0]
    if percent == 50:  # noqa: PLR2004 - the median is the same number, and faster to compute
        return statistics.median(values)
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]
