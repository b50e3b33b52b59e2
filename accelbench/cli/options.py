"""Options that several commands share."""

from enum import StrEnum
from typing import Annotated

import typer

TARGET = "A BenchmarkRun manifest (- is standard input), a script (.py), or a workload's name."

Assignments = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="PATH=VALUE",
        help="Set a field of the spec, measurement.rounds.max=5, or a parameter, size=128; repeatable.",
    ),
]
Variants = Annotated[
    list[str] | None,
    typer.Option(
        "--variant",
        metavar="USE",
        help="A variant to compare, such as jax/jit; repeatable, the first is the baseline. A manifest has its own.",
    ),
]


class Output(StrEnum):
    """Text for people, or JSON for scripts."""

    TABLE = "table"
    JSON = "json"
