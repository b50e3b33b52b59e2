"""The blocks of a case's launches as a report needs them: from the documents that `--out` keeps, or the summaries.

A launch document comes from a process that ran user code; what is not a number to draw is left out.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from accelbench.api.result import Result
from accelbench.stats.summary import QUANTITIES, Quantity, seconds_per_unit


@dataclass(frozen=True)
class LaunchSeries:
    """One launch: seconds a unit of each block, in order; `whole` is False where only a summary is known."""

    round: int
    seconds: tuple[float, ...]
    value: float
    """What the launch comes to: what decides."""
    whole: bool = True


class _Block(BaseModel):
    steps: Annotated[int, Field(ge=1)]
    seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Launch(BaseModel):
    variant: str
    round: int
    blocks: tuple[_Block, ...] = ()
    facts: dict[str, Any] = {}
    parity: Any = None
    """None: its round was never judged, and nothing it timed is shown."""


def of_documents(documents: Iterable[str]) -> dict[str, tuple[LaunchSeries, ...]]:
    """By variant, in the order of rounds; what is no launch with blocks is left out."""
    found: dict[str, list[LaunchSeries]] = {}
    for document in documents:
        try:
            launch = _Launch.model_validate(json.loads(document))
        except (ValidationError, ValueError):
            continue
        pairs = [(block.steps, block.seconds) for block in launch.blocks]
        value = seconds_per_unit(pairs, _quantity(launch))
        if value is not None and launch.parity is not None:
            seconds = tuple(block / steps for steps, block in pairs)
            found.setdefault(launch.variant, []).append(LaunchSeries(launch.round, seconds, value))
    return {variant: tuple(sorted(launches, key=lambda each: each.round)) for variant, launches in found.items()}


def _quantity(launch: _Launch) -> Quantity:
    protocol = launch.facts.get("protocol", "steady")
    return next((quantities[0] for name, quantities in QUANTITIES.items() if name == protocol and quantities), "median")


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
