"""Arguments and options that commands of `accelbench` and of the kubectl plugin share."""

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


class ReportOutput(StrEnum):
    """Text for people, JSON for scripts, Markdown for a pull request, HTML for a browser, CSV for a spreadsheet."""

    TABLE = "table"
    JSON = "json"
    MARKDOWN = "markdown"
    HTML = "html"
    CSV = "csv"


Printed = Annotated[Output, typer.Option("--output", "-o", help="How to print it.")]
PrintedReport = Annotated[ReportOutput, typer.Option("--output", "-o", help="How to print it.")]
Baseline = Annotated[
    str | None,
    typer.Option(
        metavar="VARIANT", help="Compare with this variant instead; the intervals are then widened for all pairs."
    ),
]
AllowDifferent = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-different",
        metavar="NAME",
        help="Compare even if this differs: an entry of the fingerprint, or a group of them. Repeatable.",
    ),
]
ProfileName = Annotated[
    str | None, typer.Argument(metavar="[NAME]", help="Show one profile, with every node and why it does not fit.")
]
OperatorClass = Annotated[str, typer.Option("--class", help="The className of the operator whose profiles to show.")]
