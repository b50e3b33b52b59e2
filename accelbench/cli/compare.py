"""Implement `accelbench compare A B`: compare each variant of two results or two series."""

import sys
from collections.abc import Sequence

import click

from accelbench.local.exits import help_text
from accelbench.terminal.options import Output, allow_different_option, output_option
from accelbench.terminal.program import Command

SIDE_HELP = "a result's file, a run's directory, a directory of those, or a pattern in quotes"


@click.command(cls=Command, epilog=help_text())
@click.argument("before", metavar="A", help=f"Before: {SIDE_HELP}.")
@click.argument("after", metavar="B", help="After: the same.")
@allow_different_option
@output_option(Output)
def compare(before: str, after: str, allow_different: Sequence[str], output: Output) -> None:
    """Compare two runs variant by variant.

    Refuses if the two differ in a condition that affects times: source, parameters, precision, seed, hardware,
    versions, environment variables. If a side has ten or more results of a case, it also reports changes within that
    series.
    """
    from accelbench.history.sample import Side
    from accelbench.local.results import read_all
    from accelbench.terminal.comparison import print_comparison, require_scipy

    require_scipy()
    sides = [Side("A", read_all(before), before), Side("B", read_all(after), after)]
    sys.exit(print_comparison(sides, allow_different, output))
