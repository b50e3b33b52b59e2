"""Collect a report's warnings: a run cut short, an interval that may be too narrow, a failed check. Pure."""

from collections.abc import Collection, Sequence

from accelbench.api.result import Result
from accelbench.claims.settle import MeasuredRun
from accelbench.claims.words import measured_on
from accelbench.report import advice, certificate, view

DOUBTFUL = "too narrow"
"""Words with which a comparison's sentence doubts its interval."""

UNSHOWN_NOTES = ("discarded", "quarantined", "left out, to fit")
"""Words of notes that a reader of the page does not need."""


def collect(runs: Sequence[MeasuredRun], compared: Collection[str] = ()) -> tuple[str, ...]:
    """Return each warning once, in the order of results; intervals only of variants in `compared`, if it has any."""
    results = [result for run in runs for result in run.results]
    named = (
        f"{name}: {warning}" if (name := _distinguishing_name(result, results)) else warning
        for result in results
        for warning in _of_result(result, compared)
    )
    return tuple(dict.fromkeys(named))


def _distinguishing_name(result: Result, results: Sequence[Result]) -> str:
    """Return what distinguishes the result: its workload, and its device if there are several."""
    several = len({other.case.workload for other in results}) > 1
    devices = {
        measured_on(other) for other in results if other.case.workload == result.case.workload and not other.compiled
    }
    return ", ".join([result.case.workload] * several + [measured_on(result)] * (len(devices) > 1))


def _of_result(result: Result, compared: Collection[str]) -> list[str]:
    """Return the warnings of one result."""
    comparisons = [one for one in result.comparisons if not compared or one.variant in compared]
    sentences = [sentence for comparison in comparisons for sentence in _sentences(comparison.sentence)]
    failed = [certificate.check_line(check) for check in certificate.failed_checks(result)]
    partial = [f"{state}."] if (state := view.state(result)) else []
    doubtful = [one for one in sentences if DOUBTFUL in one]
    return [*partial, *doubtful, *failed, *advice.on_disturbed_rounds(result)[:1], *_notes(result)]


def _notes(result: Result) -> list[str]:
    """Return the notes that are about the measurement and not already part of the advice on disturbed rounds."""
    return [note for note in result.notes if not result.compiled and not any(word in note for word in UNSHOWN_NOTES)]


def _sentences(text: str) -> list[str]:
    """Split at `. `; a decimal point is followed by a digit."""
    return [part if part.endswith(".") else f"{part}." for part in text.split(". ") if part]
