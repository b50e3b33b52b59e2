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
    found = compare_sides(sides[0], sides[1], allowed)
    series = [side for side in sides if change_points.long_enough(side, *sides)]
    without = change_points.missing() if series else None
    seen = [] if without else [step for side in series for step in change_points.find_changes(side, *sides)]
    notes = [without] if without else []
    if any(each.interval and len(each.before.logs) == len(each.after.logs) == 1 for each in found.changes):
        notes.append(comparison.ONE_RUN)
    if output is Output.JSON:
        click.echo(compare_json(found, seen, notes))
    else:
        console().print(comparison.ComparisonReport(found, seen, notes))
    return exit_for(found)


def exit_for(found: RunComparison) -> Exit:
    """Return SUCCESS if every compared variant has a verdict, whichever it is."""
    if not found.changes or any(each.verdict is None for each in found.changes):
        return Exit.INVALID_MEASUREMENT
    return Exit.SUCCESS


def compare_json(found: RunComparison, steps: Sequence[SeriesChange], notes: Sequence[str]) -> str:
    """Times and ratios are decimal strings, as in a result; `refused` lists what must be alike and is not."""
    document = {
        "format": FORMAT,
        "before": {"name": found.before.name, "path": found.before.path, "results": len(found.before.results)},
        "after": {"name": found.after.name, "path": found.after.path, "results": len(found.after.results)},
        "refused": [each.name for each in found.refused],
        "insisted": [each.name for each in found.insisted],
        "differences": [
            {
                "name": each.name,
                "group": each.group,
                "matters": each.matters,
                "before": list(each.before),
                "after": list(each.after),
            }
            for each in found.differences
        ],
        "comparisons": [_compared(each) for each in found.changes],
        "steps": [
            {
                "side": each.side,
                "workload": each.case[0],
                "swept": dict(each.case[1]),
                "variant": each.variant,
                "since": each.since,
                "number": each.number,
                "of": each.of,
                "ratio": decimal_string(each.ratio),
            }
            for each in steps
        ],
        "notes": [*notes, *found.unmatched],
    }
    return json.dumps(document, ensure_ascii=False)


def _compared(each: VariantChange) -> dict[str, Any]:
    found: dict[str, Any] = {
        "workload": each.case[0],
        "swept": dict(each.case[1]),
        "variant": each.variant,
        "quantity": each.quantity,
        "verdict": each.verdict,
        "invalid": list(each.invalid),
        "sentence": each.sentence,
    }
    if each.interval is not None:
        ends = {"speedup": each.interval.estimate, "lower": each.interval.lower, "upper": each.interval.upper}
        found |= {name: decimal_string(value) for name, value in ends.items()}
        name = "relativeSeconds" if each.quantity == "relative" else "seconds"
        found |= {"before": _side(each.before, name), "after": _side(each.after, name)}
    return found


def _side(side: Sample, name: str) -> dict[str, Any]:
    return {
        name: decimal_string(side.seconds or 0, TIME_DIGITS),
        "results": len(side.logs),
        "launches": len(side.launches),
    }
