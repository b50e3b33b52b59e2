"""How each variant's times spread, from its launches: outliers, shares of variance, what its blocks are worth."""

import statistics
from collections.abc import Iterable, Sequence

from accelbench.api.result import OutlierCounts, Spread
from accelbench.document import decimal_string
from accelbench.launch.record import LaunchRecord
from accelbench.stats.independence import effective_size
from accelbench.stats.outliers import Outliers, find_outliers, together
from accelbench.stats.variance import between_launch_share


def spreads(launches: Iterable[LaunchRecord]) -> dict[str, Spread]:
    """By variant; of those that timed blocks."""
    blocks: dict[str, list[list[float]]] = {}
    for launch in launches:
        if launch.blocks:
            series = [block.seconds / block.units for block in launch.blocks]
            blocks.setdefault(launch.variant, []).append(series)
    return {variant: _spread(series) for variant, series in blocks.items()}


def _spread(launches: Sequence[Sequence[float]]) -> Spread:
    share = between_launch_share(launches)
    effective = statistics.median(effective_size(blocks) for blocks in launches)
    return Spread(
        block_outliers=_counts(together(find_outliers(blocks) for blocks in launches)),
        launch_outliers=_counts(find_outliers([statistics.median(blocks) for blocks in launches])),
        between_launches=None if share is None else decimal_string(share, digits=2),
        effective_blocks=decimal_string(effective, digits=3),
    )


def _counts(outliers: Outliers) -> OutlierCounts:
    return OutlierCounts(**vars(outliers))
