"""Define arguments and options that commands of `accelbench` and of the kubectl plugin share."""

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import click

TARGET = "A BenchmarkRun manifest (- is standard input), a script (.py), or a workload's name."

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class Output(StrEnum):
    """Name the formats of most commands: for people, or for scripts."""

    TABLE = "table"
    JSON = "json"


class ReportOutput(StrEnum):
    """Name the formats of a report: for people, scripts, a pull request, a browser, a spreadsheet."""

    TABLE = "table"
    JSON = "json"
    MARKDOWN = "markdown"
    HTML = "html"
    CSV = "csv"


def output_option(formats: type[StrEnum], help_text: str = "How to print it.") -> Decorator:
    """Return a decorator that adds the option --output to a command; its default is the first of the formats."""
    # click expects the name of an enum's member, such as `JSON`. If the case is ignored, `json` matches it too.
    choice = click.Choice(formats, case_sensitive=False)
    return click.option("--output", "-o", type=choice, default=next(iter(formats)).value, help=help_text)


target_argument = click.argument("file", metavar="FILE", help=TARGET)
variants_option = click.option(
    "--variant",
    "variants",
    metavar="USE",
    multiple=True,
    help="A variant to compare, such as jax/jit; repeatable, the first is the baseline. A manifest has its own.",
)
environments_option = click.option(
    "--environment",
    "environments",
    metavar="NAME=WORDS",
    multiple=True,
    help="A Python environment of its own for variants: before='jax==0.9.2', with python3.12 or the path of an "
    "interpreter among the words; repeatable. --variant jax/jit@before runs in it.",
)
assignments_option = click.option(
    "--set",
    "assignments",
    metavar="PATH=VALUE",
    multiple=True,
    help="Set a field of the spec, measurement.rounds.max=5, or a parameter, size=128; size=64,128 sweeps; repeatable.",
)
baseline_option = click.option(
    "--baseline",
    metavar="VARIANT",
    help="Compare with this variant instead; the intervals are then widened for all pairs.",
)
allow_different_option = click.option(
    "--allow-different",
    metavar="NAME",
    multiple=True,
    help="Compare even if this differs: an entry of the fingerprint, or a group of them. Repeatable.",
)
profile_argument = click.argument(
    "name", metavar="[NAME]", required=False, help="Show one profile, with every node and why it does not fit."
)
class_option = click.option(
    "--class",
    "class_name",
    metavar="CLASS",
    default="accelbench",
    help="The className of the operator whose profiles to show.",
)
operator_namespace_option = click.option(
    "--operator-namespace",
    metavar="NAMESPACE",
    help="The namespace of the operator whose profiles to show; default: of every operator of that class.",
)
