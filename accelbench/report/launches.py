"""The blocks of a case's launches as a report needs them: from the documents that `--out` keeps, or the summaries.

A launch document comes from a process that ran user code; what is not a number to draw is left out.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import ValidationError

from accelbench.api.result import Result
from accelbench.launch.record import LaunchRecord


@dataclass(frozen=True)
class LaunchSeries:
    """One launch: seconds a unit of each block, in order; `whole` is False where only a summary is known."""

    round: int
    seconds: tuple[float, ...]
    value: float
    """What the launch comes to: what decides."""
    whole: bool = True


def of_documents(documents: Iterable[str]) -> dict[str, tuple[LaunchSeries, ...]]:
    """By variant, in the order of rounds; what is no launch with blocks is left out."""
    found: dict[str, list[LaunchSeries]] = {}
    for document in documents:
        try:
            launch = LaunchRecord.model_validate_json(document)
        except ValidationError:
            continue
        value = launch.seconds()
        if value is not None and launch.parity is not None:
            seconds = tuple(block.seconds / block.units for block in launch.blocks)
            found.setdefault(launch.variant, []).append(LaunchSeries(launch.round, seconds, value))
    return {variant: tuple(sorted(launches, key=lambda each: each.round)) for variant, launches in found.items()}


def of_result(result: Result) -> dict[str, tuple[LaunchSeries, ...]]:
    """What the result itself holds of each launch: its 5 % quantile, median and 95 % quantile."""
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
