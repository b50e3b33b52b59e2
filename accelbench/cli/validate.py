"""Implement `accelbench validate FILE...`: check manifests as the API server and the operator do."""

import sys
from collections.abc import Sequence

import click

from accelbench.local.exits import Exit
from accelbench.terminal.options import Output, output_option
from accelbench.terminal.program import Command


@click.command(cls=Command)
@click.argument(
    "files", metavar="FILE...", nargs=-1, required=True, help="BenchmarkRun manifests; - is standard input."
)
@output_option(Output, "How to print what was found.")
def validate(files: Sequence[str], output: Output) -> None:
    """Check manifests as the cluster would; run nothing."""
    import json

    from accelbench.local.errors import InvalidSpecError
    from accelbench.local.manifests import read
    from accelbench.plan.cases import count_cases

    checked: list[dict[str, object]] = []
    for file in files:
        try:
            runs = read(file)
        except InvalidSpecError as error:
            checked.append({"file": file, "valid": False, "problems": [str(problem) for problem in error.problems]})
            if output is Output.TABLE:
                click.echo(error.explained(), err=True)
            continue
        checked.append({"file": file, "valid": True, "problems": []})
        if output is Output.TABLE:
            for run in runs:
                size = f"{_count(count_cases(run), 'case')}, {_count(len(run.spec.variants), 'variant')}"
                click.echo(f"benchmarkrun/{run.metadata.name} is valid ({size})")
    if output is Output.JSON:
        click.echo(json.dumps(checked, indent=2))
    if not all(entry["valid"] for entry in checked):
        sys.exit(Exit.INVALID_SPEC)


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
