"""How each variant's times spread, from its launches: outliers, shares of variance, what its blocks are worth."""

import math
import statistics
from collections.abc import Iterable, Sequence

from accelbench.api.result import OutlierCounts, Spread
from accelbench.launch.record import LaunchRecord
from accelbench.stats.independence import effective_size
from accelbench.stats.interval import student_interval
from accelbench.stats.spread import Outliers, between_launch_share, find_outliers, total


def spreads(launches: Iterable[LaunchRecord], alpha: float) -> dict[str, Spread]:
    """By variant; of those that timed blocks. Intervals on a variant's own time miss it with probability `alpha`."""
    blocks: dict[str, list[list[float]]] = {}
    times: dict[str, list[float]] = {}
    for launch in launches:
        if (seconds := launch.seconds()) is not None:
            series = [block.seconds / block.units for block in launch.blocks]
            blocks.setdefault(launch.variant, []).append(series)
            times.setdefault(launch.variant, []).append(seconds)
    return {variant: _spread(series, times[variant], alpha) for variant, series in blocks.items()}


def _spread(launches: Sequence[Sequence[float]], times: Sequence[float], alpha: float) -> Spread:
    share = between_launch_share(launches)
    interval = student_interval([math.log(each) for each in times], alpha)
    effective = statistics.median(effective_size(blocks) for blocks in launches)
    return Spread(
        block_outliers=_counts(total(find_outliers(blocks) for blocks in launches)),
        launch_outliers=_counts(find_outliers([statistics.median(blocks) for blocks in launches])),
        between_launches=share,
        effective_blocks=effective,
        lower_seconds=interval.lower if interval else None,
        upper_seconds=interval.upper if interval else None,
    )


def _counts(outliers: Outliers) -> OutlierCounts:
    return OutlierCounts(**vars(outliers))
