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

    findings: list[dict[str, object]] = []
    for file in files:
        try:
            runs = read(file)
        except InvalidSpecError as error:
            findings.append({"file": file, "valid": False, "problems": [str(problem) for problem in error.problems]})
            if output is Output.TABLE:
                click.echo(error.explanation(), err=True)
            continue
        findings.append({"file": file, "valid": True, "problems": []})
        if output is Output.TABLE:
            for run in runs:
                cases = _format_count(count_cases(run), "case")
                variants = _format_count(len(run.spec.variants), "variant")
                click.echo(f"benchmarkrun/{run.metadata.name} is valid ({cases}, {variants})")
    if output is Output.JSON:
        click.echo(json.dumps(findings, indent=2))
    if not all(finding["valid"] for finding in findings):
        sys.exit(Exit.INVALID_SPEC)


def _format_count(count: int, noun: str) -> str:
    """Return a number with its noun, such as `1 case` or `2 cases`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
