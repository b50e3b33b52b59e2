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
    """Return the records in these JSON texts, without those that are not valid."""
    records = []
    for document in documents:
        with suppress(ValidationError):
            records.append(LaunchRecord.model_validate_json(document))
    return tuple(records)


def of_documents(documents: Iterable[str]) -> dict[str, tuple[LaunchSeries, ...]]:
    """Return the launches of each variant that these JSON texts record, in the order of their rounds."""
    launches: dict[str, list[LaunchSeries]] = {}
    for launch in read_launches(documents):
        value = launch.seconds()
        # Without parity, the outputs were not compared, and the launch does not count.
        if value is not None and launch.parity is not None:
            seconds = tuple(block.seconds / block.units for block in launch.blocks)
            launches.setdefault(launch.variant, []).append(LaunchSeries(launch.round, seconds, value))
    return {variant: tuple(sorted(series, key=lambda launch: launch.round)) for variant, series in launches.items()}


def of_result(result: Result) -> dict[str, tuple[LaunchSeries, ...]]:
    """Return the launches of each variant, with quantiles instead of blocks.

    A result does not contain the blocks.
    """
    return {
        variant.name: tuple(map(_from_summary, variant.launches)) for variant in result.variants if variant.launches
    }


def _from_summary(launch: LaunchSummary) -> LaunchSeries:
    """Return a launch with quantiles instead of its blocks."""
    quantiles = (launch.p5_seconds, launch.seconds, launch.p95_seconds)
    seconds = tuple(float(value) for value in quantiles if value)
    return LaunchSeries(launch.round, seconds, float(launch.seconds), has_blocks=False)
