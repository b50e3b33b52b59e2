"""Compare two sides and print the outcome: as tables, or as one JSON document for scripts."""

import importlib.util
import json
import sys
from collections.abc import Sequence
from typing import Any

import click

from accelbench.document import TIME_DIGITS, decimal_string
from accelbench.history import change_points, comparability
from accelbench.history.change_points import SeriesChange
from accelbench.history.runs import RunComparison, VariantChange
from accelbench.history.runs import compare as compare_sides
from accelbench.history.sample import Sample, Side
from accelbench.local.errors import UsageError
from accelbench.local.exits import Exit
from accelbench.problem import unknown
from accelbench.report import comparison
from accelbench.terminal.console import console
from accelbench.terminal.options import Output

FORMAT = "accelbench.dev/comparison/v1alpha1"


def require_scipy() -> None:
    """End the command if scipy is not installed."""
    if importlib.util.find_spec("scipy") is None:
        click.echo("error: accelbench compare needs scipy: pip install 'accelbench[report]'", err=True)
        sys.exit(Exit.USAGE)


def print_comparison(sides: Sequence[Side], allowed: Sequence[str], output: Output) -> Exit:
    """Compare each variant of two sides, print that, and return the exit code."""
    known = comparability.names(result for side in sides for result in side.results)
    for name in allowed:
        if name in comparability.NEVER:
            message = f"times that differ in {name} are not the same quantity, and are never compared"
            raise UsageError(message, "--allow-different")
        if name not in known:
            raise UsageError(unknown("difference", name, known), "--allow-different")
    compared = compare_sides(sides[0], sides[1], allowed)
    series = [side for side in sides if change_points.has_enough_results(side, *sides)]
    missing = change_points.missing() if series else None
    steps = [] if missing else [step for side in series for step in change_points.find_changes(side, *sides)]
    notes = [missing] if missing else []
    if any(item.interval and len(item.before.logs) == len(item.after.logs) == 1 for item in compared.changes):
        notes.append(comparison.ONE_RUN)
    if output is Output.JSON:
        click.echo(compare_json(compared, steps, notes))
    else:
        console().print(comparison.ComparisonReport(compared, steps, notes))
    return exit_for(compared)


def exit_for(compared: RunComparison) -> Exit:
    """Return SUCCESS if every compared variant has a verdict, whichever it is."""
    if not compared.changes or any(item.verdict is None for item in compared.changes):
        return Exit.INVALID_MEASUREMENT
    return Exit.SUCCESS


def compare_json(compared: RunComparison, steps: Sequence[SeriesChange], notes: Sequence[str]) -> str:
    """Return the comparison as JSON; times and ratios are decimal strings, as in a result."""
    before, after = compared.before, compared.after
    document = {
        "format": FORMAT,
        "before": {"name": before.name, "path": before.path, "results": len(before.results)},
        "after": {"name": after.name, "path": after.path, "results": len(after.results)},
        "refused": [difference.name for difference in compared.refused],
        "insisted": [difference.name for difference in compared.allowed_differences],
        "differences": [
            {
                "name": difference.name,
                "group": difference.group,
                "matters": difference.matters,
                "before": list(difference.before),
                "after": list(difference.after),
            }
            for difference in compared.differences
        ],
        "comparisons": [_change(item) for item in compared.changes],
        "steps": [
            {
                "side": step.side,
                "workload": step.case[0],
                "swept": dict(step.case[1]),
                "variant": step.variant,
                "since": step.since,
                "number": step.number,
                "of": step.of,
                "ratio": decimal_string(step.ratio),
            }
            for step in steps
        ],
        "notes": [*notes, *compared.unmatched],
    }
    return json.dumps(document, ensure_ascii=False)


def _change(item: VariantChange) -> dict[str, Any]:
    document: dict[str, Any] = {
        "workload": item.case[0],
        "swept": dict(item.case[1]),
        "variant": item.variant,
        "quantity": item.quantity,
        "verdict": item.verdict,
        "invalid": list(item.invalid),
        "sentence": item.sentence,
    }
    if item.interval is not None:
        ends = {"speedup": item.interval.estimate, "lower": item.interval.lower, "upper": item.interval.upper}
        document |= {name: decimal_string(value) for name, value in ends.items()}
        name = "relativeSeconds" if item.quantity == "relative" else "seconds"
        document |= {"before": _side(item.before, name), "after": _side(item.after, name)}
    return document


def _side(side: Sample, name: str) -> dict[str, Any]:
    return {
        name: decimal_string(side.seconds or 0, TIME_DIGITS),
        "results": len(side.logs),
        "launches": len(side.launches),
    }
