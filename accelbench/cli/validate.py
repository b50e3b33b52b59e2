"""`accelbench validate FILE...`: the refusals of the API server and the operator, before anything is applied."""

from typing import Annotated

import typer

from accelbench.local.exits import Exit
from accelbench.terminal.options import Output


def validate(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="BenchmarkRun manifests; - is standard input.")],
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print what was found.")] = Output.TABLE,
) -> None:
    """Check manifests as the cluster would; run nothing."""
    import json

    from accelbench.local.errors import InvalidSpecError
    from accelbench.local.manifests import read
    from accelbench.plan.cases import count_cases

    found: list[dict[str, object]] = []
    for file in files:
        try:
            runs = read(file)
        except InvalidSpecError as error:
            found.append({"file": file, "valid": False, "problems": [str(problem) for problem in error.problems]})
            if output is Output.TABLE:
                typer.echo(error.explained(), err=True)
            continue
        found.append({"file": file, "valid": True, "problems": []})
        if output is Output.TABLE:
            for run in runs:
                size = f"{_count(count_cases(run), 'case')}, {_count(len(run.spec.variants), 'variant')}"
                typer.echo(f"benchmarkrun/{run.metadata.name} is valid ({size})")
    if output is Output.JSON:
        typer.echo(json.dumps(found, indent=2))
    if not all(entry["valid"] for entry in found):
        raise typer.Exit(Exit.INVALID_SPEC)


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
