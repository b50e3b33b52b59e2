"""Print results: as a table, Markdown, HTML, CSV, or one JSON document for scripts."""

import json
import sys
from collections.abc import Sequence

import click

from accelbench.api.result import Result
from accelbench.local.directory import RunRecord
from accelbench.local.errors import UsageError
from accelbench.local.exits import Exit
from accelbench.local.results import LoadedResults
from accelbench.report import html, markdown, terminal, tidy
from accelbench.terminal.console import console
from accelbench.terminal.options import ReportOutput
from accelbench.verdict.expectations import ExpectationOutcome
from accelbench.verdict.rebase import NotComparableError
from accelbench.verdict.redaction import redact_invalid

FORMAT = "accelbench.dev/report/v1alpha1"


def json_report(measured: Sequence[tuple[Result, Sequence[ExpectationOutcome]]], record: RunRecord | None) -> str:
    """Return the results, the outcomes of their expectations, and the run's record as one JSON document."""
    cases = []
    for result, outcomes in measured:
        expectations = [
            {
                "expectation": json.loads(outcome.expectation.to_json()),
                "outcome": outcome.outcome,
                "sentence": outcome.sentence,
            }
            for outcome in outcomes
        ]
        cases.append({"result": json.loads(redact_invalid(result).to_json()), "expectations": expectations})
    run = json.loads(record.to_json()) if record is not None else None
    return json.dumps({"format": FORMAT, "run": run, "cases": cases}, ensure_ascii=False)


def require_packages(output: ReportOutput) -> None:
    """End the command if the output's format needs a package that is not installed, as HTML does."""
    if output is not ReportOutput.HTML:
        return
    hint = html.install_hint()
    if hint is not None:
        click.echo(f"error: {hint}", err=True)
        sys.exit(Exit.USAGE)


def print_results(loaded: LoadedResults, output: ReportOutput, source: str) -> None:
    """Print the results in the format `output`; if there are none, print that as a message first.

    `source`, such as a path, names their origin in the message.
    """
    if not loaded.measured:
        has_ended = loaded.record is not None and loaded.record.exit_code is not None
        state = "ended without a result" if has_ended else "has no result yet"
        click.echo(f"{source}: the run {state}", err=True)
    match output:
        case ReportOutput.JSON:
            click.echo(json_report(loaded.measured, loaded.record))
        case ReportOutput.MARKDOWN:
            click.echo(markdown.report(loaded.name, loaded.measured), nl=False)
        case ReportOutput.HTML:
            click.echo(html.report(loaded.name, loaded.cases_with_launches(), manifest=loaded.manifest()), nl=False)
        case ReportOutput.CSV:
            click.echo(tidy.report(result for result, _ in loaded.measured), nl=False)
        case ReportOutput.TABLE:
            console().print(terminal.reports(loaded.measured))


def with_baseline(loaded: LoadedResults, baseline: str | None, source: str) -> LoadedResults:
    """Return the results compared with the variant `baseline`; unchanged if it is None.

    Raises UsageError if they cannot be compared with it; `source` names the origin of the results in the message.
    """
    try:
        return loaded if baseline is None else loaded.with_baseline(baseline)
    except NotComparableError as error:
        raise UsageError(f"{source}: {error}", "--baseline") from error
