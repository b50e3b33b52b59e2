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
from accelbench.problem import describe_unknown
from accelbench.report import comparison
from accelbench.terminal.console import console
from accelbench.terminal.options import Output

FORMAT = "accelbench.dev/comparison/v1alpha1"


def require_scipy() -> None:
    """End the command with a message if scipy is not installed."""
    if importlib.util.find_spec("scipy") is None:
        click.echo("error: accelbench compare needs scipy: pip install 'accelbench[report]'", err=True)
        sys.exit(Exit.USAGE)


def print_comparison(sides: Sequence[Side], allowed: Sequence[str], output: Output) -> Exit:
    """Compare the results before and after a change, print the comparison, and return the exit code.

    `sides` are the two sets of results, the earlier first. `allowed` names the entries and groups of the fingerprint
    that may differ. Raises UsageError for a name that cannot be allowed.
    """
    all_results = [result for side in sides for result in side.results]
    allowable_names = comparability.allowable_names(all_results)
    for name in allowed:
        if name in comparability.NEVER:
            message = f"times that differ in {name} are not the same quantity, and are never compared"
            raise UsageError(message, "--allow-different")
        if name not in allowable_names:
            raise UsageError(describe_unknown("difference", name, allowable_names), "--allow-different")
    before, after = sides
    compared = compare_sides(before, after, allowed)
    series_changes, notes = _find_series_changes(sides)
    if any(_compares_single_results(change) for change in compared.changes):
        notes.append(comparison.ONE_RUN)
    if output is Output.JSON:
        click.echo(format_json(compared, series_changes, notes))
    else:
        console().print(comparison.ComparisonReport(compared, series_changes, notes))
    return exit_for(compared)


def _find_series_changes(sides: Sequence[Side]) -> tuple[list[SeriesChange], list[str]]:
    """Return (changes, notes): the lasting changes of time within each side that has enough results to find them.

    If a package for that is missing, there are no changes, and a note says what to install.
    """
    # Each side needs all sides, because a parameter that any of them swept distinguishes cases.
    sides_with_series = [side for side in sides if change_points.has_enough_results(side, *sides)]
    if not sides_with_series:
        return [], []
    hint = change_points.install_hint()
    if hint is not None:
        return [], [hint]
    changes = [change for side in sides_with_series for change in change_points.find_changes(side, *sides)]
    return changes, []


def _compares_single_results(change: VariantChange) -> bool:
    """Return True if each side has a single result: the interval then does not cover drift from run to run."""
    result_counts = (len(change.before.logarithms_by_result), len(change.after.logarithms_by_result))
    return change.interval is not None and result_counts == (1, 1)


def exit_for(compared: RunComparison) -> Exit:
    """Return SUCCESS if something was compared and each comparison has a verdict, else INVALID_MEASUREMENT."""
    if not compared.changes or any(change.verdict is None for change in compared.changes):
        return Exit.INVALID_MEASUREMENT
    return Exit.SUCCESS


def format_json(compared: RunComparison, series_changes: Sequence[SeriesChange], notes: Sequence[str]) -> str:
    """Return the comparison of two sides as a JSON document; times and ratios are decimal strings, as in a result."""
    before, after = compared.before, compared.after
    document = {
        "format": FORMAT,
        "before": {"name": before.name, "path": before.path, "results": len(before.results)},
        "after": {"name": after.name, "path": after.path, "results": len(after.results)},
        "refused": [difference.name for difference in compared.refused],
        # Differences that --allow-different accepts.
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
        "comparisons": [_change_document(change) for change in compared.changes],
        # Lasting changes within the series of one side: the seconds go up or down in a step.
        "steps": [_series_change_document(change) for change in series_changes],
        "notes": [*notes, *compared.unmatched],
    }
    return json.dumps(document, ensure_ascii=False)


def _series_change_document(change: SeriesChange) -> dict[str, Any]:
    """Return a lasting change in a series of results as an object for JSON."""
    return {
        "side": change.side,
        "workload": change.case.workload,
        "swept": dict(change.case.swept),
        "variant": change.variant,
        "since": change.since,
        # The first result after the change is result `number` of the series' results, of which there are `of`.
        "number": change.position,
        "of": change.series_length,
        "ratio": decimal_string(change.ratio),
    }


def _change_document(change: VariantChange) -> dict[str, Any]:
    """Return the change of a variant's time as an object for JSON, without speedup and times if it has no interval."""
    document: dict[str, Any] = {
        "workload": change.case.workload,
        "swept": dict(change.case.swept),
        "variant": change.variant,
        "quantity": change.quantity,
        "verdict": change.verdict,
        "invalid": list(change.invalid),
        "sentence": change.sentence,
    }
    interval = change.interval
    if interval is not None:
        document["speedup"] = decimal_string(interval.estimate)
        document["lower"] = decimal_string(interval.lower)
        document["upper"] = decimal_string(interval.upper)
        # The quantity `relative` is a time divided by the baseline's in the same round, and so not in seconds.
        seconds_key = "relativeSeconds" if change.quantity == "relative" else "seconds"
        document["before"] = _sample_document(change.before, seconds_key)
        document["after"] = _sample_document(change.after, seconds_key)
    return document


def _sample_document(sample: Sample, seconds_key: str) -> dict[str, Any]:
    """Return a sample as an object for JSON: its time, as `seconds_key`, and how many results and launches it is of."""
    return {
        # Samples that are compared have launches, and so `seconds` is not None; `or 0` is for the type checker.
        seconds_key: decimal_string(sample.seconds or 0, TIME_DIGITS),
        "results": len(sample.logarithms_by_result),
        "launches": len(sample.launch_logarithms),
    }
