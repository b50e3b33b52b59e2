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
        help="Change the spec, as in measurement.rounds.max=5, or a parameter: size=128. Repeatable.",
    ),
]
Variants = Annotated[
    list[str] | None,
    typer.Option(
        "--variant",
        metavar="USE",
        help="What competes, as jax/jit; the first is the baseline. Of a script or a workload. Repeatable.",
    ),
]


class Output(StrEnum):
    """Text for people, or JSON for scripts."""

    TABLE = "table"
    JSON = "json"
