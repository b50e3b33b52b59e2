"""`accelbench compare A B`: two results or two series, each variant before and after."""

from typing import Annotated

import typer

from accelbench.local.exits import Exit
from accelbench.terminal.options import AllowDifferent, Output, Printed

SIDE = "a result's file, a run's directory, a directory of those, or a pattern in quotes"


def compare(
    before: Annotated[str, typer.Argument(metavar="A", help=f"Before: {SIDE}.")],
    after: Annotated[str, typer.Argument(metavar="B", help="After: the same.")],
    allow_different: AllowDifferent = None,
    output: Printed = Output.TABLE,
) -> None:
    """Compare two runs variant by variant.

    Refuses if something that matters differs (source, parameters, precision, seed, hardware, versions, environment
    variables). If a side has ten or more results of a case, it also says where that series has a step.
    """
    from accelbench.history.sample import Side
    from accelbench.local.errors import UnreadableResultError
    from accelbench.local.results import read_side
    from accelbench.terminal.comparison import print_comparison, require_scipy

    require_scipy()
    try:
        sides = [Side(name, read_side(path), path) for name, path in (("A", before), ("B", after))]
    except UnreadableResultError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(Exit.INVALID_SPEC) from error
    raise typer.Exit(print_comparison(sides, allow_different or [], output))
