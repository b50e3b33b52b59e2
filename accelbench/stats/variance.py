"""Where a variant's spread comes from: from launch to launch, or from block to block inside one.

It says what more measuring would help: where launches differ, only more launches do (Kalibera and Jones, "Rigorous
benchmarking in reasonable time", ISMM 2013).
"""

import math
from collections.abc import Sequence

FEWEST_LAUNCHES = 2


def between_launch_share(launches: Sequence[Sequence[float]]) -> float | None:
    """The share of a block's variance that is the launch's, 0 to 1, of the logarithms of seconds per unit.

    `launches`: each launch's blocks, above zero. The estimate is the analysis of variance's, for numbers of blocks that
    may differ (Searle, Casella and McCulloch, "Variance Components", 1992, section 3.6); where launches differ less
    than their blocks would make them, it is 0. Blocks that follow each other make it larger than it is. None with fewer
    than two launches, or where every launch has one block, so that the two cannot be told apart, or nothing varies.
    """
    logs = [[math.log(value) for value in blocks] for blocks in launches if blocks]
    count, total = len(logs), sum(map(len, logs))
    if count < FEWEST_LAUNCHES or total <= count:
        return None
    means = [math.fsum(blocks) / len(blocks) for blocks in logs]
    grand = math.fsum(math.fsum(blocks) for blocks in logs) / total
    within = math.fsum((value - mean) ** 2 for blocks, mean in zip(logs, means, strict=True) for value in blocks)
    between = math.fsum(len(blocks) * (mean - grand) ** 2 for blocks, mean in zip(logs, means, strict=True))
    within_square, between_square = within / (total - count), between / (count - 1)
    blocks_each = (total - sum(len(blocks) ** 2 for blocks in logs) / total) / (count - 1)
    launch = max(0.0, (between_square - within_square) / blocks_each)
    return launch / (launch + within_square) if launch + within_square > 0 else None
