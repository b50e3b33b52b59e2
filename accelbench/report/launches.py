"""Read the blocks of launches for plots: from the documents that `--out` keeps, or from the result's summaries.

A launch document comes from a process that ran user code, so documents that are not valid are skipped.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import ValidationError

from accelbench.api.result import Result
from accelbench.launch.record import LaunchRecord


@dataclass(frozen=True)
class LaunchSeries:
    """Hold one launch: seconds per unit of each block, in order; `whole` is False if only a summary is known."""

    round: int
    seconds: tuple[float, ...]
    value: float
    """Seconds per unit of the launch, on which the verdict rests."""
    whole: bool = True


def of_documents(documents: Iterable[str]) -> dict[str, tuple[LaunchSeries, ...]]:
    """Return the launches of each variant by round, without those that have no time or were not checked for parity."""
    launches: dict[str, list[LaunchSeries]] = {}
    for document in documents:
        try:
            launch = LaunchRecord.model_validate_json(document)
        except ValidationError:
            continue
        value = launch.seconds()
        if value is not None and launch.parity is not None:
            seconds = tuple(block.seconds / block.units for block in launch.blocks)
            launches.setdefault(launch.variant, []).append(LaunchSeries(launch.round, seconds, value))
    return {variant: tuple(sorted(series, key=lambda launch: launch.round)) for variant, series in launches.items()}


def of_result(result: Result) -> dict[str, tuple[LaunchSeries, ...]]:
    """Return the 5 % quantile, the median and the 95 % quantile of each launch, as the result has them."""
    return {
        variant.name: tuple(
            LaunchSeries(
                launch.round,
                tuple(float(value) for value in (launch.p5_seconds, launch.seconds, launch.p95_seconds) if value),
                float(launch.seconds),
                whole=False,
            )
            for launch in variant.launches
        )
        for variant in result.variants
        if variant.launches
    }
