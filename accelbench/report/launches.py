"""Read the blocks of launches for plots: from the documents that `--out` keeps, or from the result's summaries.

A launch document comes from a process that ran user code, so documents that are not valid are skipped.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from pydantic import ValidationError

from accelbench.api.result import LaunchSummary, Result
from accelbench.launch.record import LaunchRecord


@dataclass(frozen=True)
class LaunchSeries:
    """Hold the times of one launch."""

    round: int
    seconds: tuple[float, ...]
    """Seconds per unit of each block, in order, or quantiles of them."""
    value: float
    """Seconds per unit of the launch, on which the verdict rests."""
    has_blocks: bool = True
    """False if `seconds` are only quantiles."""


def read_launches(documents: Iterable[str]) -> tuple[LaunchRecord, ...]:
    """Parse the JSON records of launches; skip invalid ones, because user code ran in the process that wrote them."""
    records = []
    for document in documents:
        with suppress(ValidationError):
            records.append(LaunchRecord.model_validate_json(document))
    return tuple(records)


def series_from_documents(documents: Iterable[str]) -> dict[str, tuple[LaunchSeries, ...]]:
    """Return the times of each variant's launches, in the order of their rounds, from the JSON records of launches."""
    launches: dict[str, list[LaunchSeries]] = {}
    for launch in read_launches(documents):
        value = launch.seconds()
        # A launch without parity does not count, because its outputs were not checked.
        if value is not None and launch.parity is not None:
            seconds = tuple(launch.seconds_of_blocks())
            launches.setdefault(launch.variant, []).append(LaunchSeries(launch.round, seconds, value))
    return {variant: tuple(sorted(series, key=lambda launch: launch.round)) for variant, series in launches.items()}


def series_from_result(result: Result) -> dict[str, tuple[LaunchSeries, ...]]:
    """Return the times of each variant's launches: only quantiles, because a result does not contain the blocks."""
    return {
        variant.name: tuple(map(_series_from_summary, variant.launches))
        for variant in result.variants
        if variant.launches
    }


def _series_from_summary(launch: LaunchSummary) -> LaunchSeries:
    """Return the times of a launch from its summary, which has quantiles of the blocks instead of all blocks."""
    quantiles = (launch.p5_seconds, launch.seconds, launch.p95_seconds)
    seconds = tuple(float(value) for value in quantiles if value)  # a summary may lack the percentiles
    return LaunchSeries(launch.round, seconds, float(launch.seconds), has_blocks=False)
