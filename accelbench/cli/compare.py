"""`accelbench compare A B`: two results or two series, each variant before and after."""

import importlib.util
from typing import TYPE_CHECKING, Annotated

import typer

from accelbench.cli.exits import Exit
from accelbench.cli.options import Output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accelbench.history.runs import RunComparison
    from accelbench.history.sample import Side

SIDE = "a result's file, a run's directory, a directory of those, or a pattern in quotes"


ALLOW_DIFFERENT = typer.Option(
    "--allow-different",
    metavar="NAME",
    help="Compare even if this differs: an entry of the fingerprint, or a group of them. Repeatable.",
)


def compare(
    before: Annotated[str, typer.Argument(metavar="A", help=f"Before: {SIDE}.")],
    after: Annotated[str, typer.Argument(metavar="B", help="After: the same.")],
    allow_different: Annotated[list[str] | None, ALLOW_DIFFERENT] = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print it.")] = Output.TABLE,
) -> None:
    """Compare two runs variant by variant.

    Refuses if something that matters differs (source, parameters, precision, seed, hardware, versions, environment
    variables). If a side has ten or more results of a case, it also says where that series has a step.
    """
    from accelbench.cli.files import UnreadableResultError
    from accelbench.cli.results import read_side
    from accelbench.history.sample import Side

    refuse_without_scipy()
    try:
        sides = [Side(name, read_side(path), path) for name, path in (("A", before), ("B", after))]
    except UnreadableResultError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(Exit.INVALID_SPEC) from error
    raise typer.Exit(print_comparison(sides, allow_different or [], output))


def refuse_without_scipy() -> None:
    """End the command where it is not installed."""
    if importlib.util.find_spec("scipy") is None:
        typer.echo("error: accelbench compare needs scipy: pip install 'accelbench[report]'", err=True)
        raise typer.Exit(Exit.USAGE)


def print_comparison(sides: "Sequence[Side]", allowed: "Sequence[str]", output: Output) -> Exit:
    """Print what two sides have to say about each other, and return what that is worth to a script."""
    from accelbench.cli.compare_json import compare_json
    from accelbench.cli.console import console
    from accelbench.history import change_points, comparability
    from accelbench.history.runs import compare as compare_sides
    from accelbench.problem import unknown
    from accelbench.report import compared

    known = comparability.names(result for side in sides for result in side.results)
    for name in allowed:
        if name in comparability.NEVER:
            message = f"times that differ in {name} are not the same quantity, and are never compared"
            raise typer.BadParameter(message, param_hint="--allow-different")
        if name not in known:
            raise typer.BadParameter(unknown("difference", name, known), param_hint="--allow-different")
    found = compare_sides(sides[0], sides[1], allowed)
    series = [side for side in sides if change_points.long_enough(side, *sides)]
    without = change_points.missing() if series else None
    seen = [] if without else [step for side in series for step in change_points.steps(side, *sides)]
    notes = [without] if without else []
    if any(each.interval and len(each.before.logs) == len(each.after.logs) == 1 for each in found.compared):
        notes.append(compared.ONE_RUN)
    if output is Output.JSON:
        typer.echo(compare_json(found, seen, notes))
    else:
        console().print(compared.ComparedReport(found, seen, notes))
    return exit_for(found)


def exit_for(found: "RunComparison") -> Exit:
    """No verdict where one was asked for is a measurement that answers nothing; every verdict is an answer."""
    if not found.compared or any(each.verdict is None for each in found.compared):
        return Exit.INVALID_MEASUREMENT
    return Exit.SUCCESS
