"""Collect the warnings of reports: an interrupted run, an interval that may be too narrow, a failed check. Pure."""

from collections.abc import Collection, Sequence

from accelbench.api.result import Result
from accelbench.claims.evidence import TOO_NARROW
from accelbench.claims.settle import MeasuredRun
from accelbench.claims.words import device_name
from accelbench.report import advice, certificate, view

OMITTED_NOTES = ("discarded", "quarantined", "left out, to fit")
"""A note that contains one of these is omitted: readers of the page do not need it."""


def collect(runs: Sequence[MeasuredRun], compared_variants: Collection[str] = ()) -> tuple[str, ...]:
    """Return the warnings of all these runs, each once.

    With `compared_variants`, the intervals of other variants give no warning.
    """
    results = [result for run in runs for result in run.results]
    warnings: list[str] = []
    for result in results:
        name = _distinguishing_name(result, results)
        prefix = f"{name}: " if name else ""
        warnings += [f"{prefix}{warning}" for warning in _result_warnings(result, compared_variants)]
    return tuple(dict.fromkeys(warnings))


def _distinguishing_name(result: Result, results: Sequence[Result]) -> str:
    """Return the result's workload and device, each only if the results have several: `matmul-chain, CPU`."""
    workload = result.case.workload
    names = []
    if len({other.case.workload for other in results}) > 1:
        names.append(workload)
    devices = {device_name(other) for other in results if other.case.workload == workload and not other.compiled}
    if len(devices) > 1:
        names.append(device_name(result))
    return ", ".join(names)


def _result_warnings(result: Result, compared_variants: Collection[str]) -> list[str]:
    """Return the warnings of one result.

    An interval that may be too narrow causes a warning only for `compared_variants`; if these are empty, for all.
    """
    incomplete_warning = view.warning(result)
    warnings = [f"{incomplete_warning}."] if incomplete_warning else []
    for comparison in result.comparisons:
        if not compared_variants or comparison.variant in compared_variants:
            warnings += [sentence for sentence in _split_sentences(comparison.sentence) if TOO_NARROW in sentence]
    warnings += [certificate.check_line(check) for check in certificate.failed_checks(result)]
    warnings += advice.describe_disturbed_rounds(result)[:1]  # the first sentence names the disturbed rounds
    return warnings + _notes(result)


def _notes(result: Result) -> list[str]:
    """Return the notes that readers of the page need: those that contain none of `OMITTED_NOTES`.

    A result whose programs were only compiled for a target gives none, because notes are about measurements.
    """
    if result.compiled:
        return []
    return [note for note in result.notes if not any(text in note for text in OMITTED_NOTES)]


def _split_sentences(text: str) -> list[str]:
    """Split a text into sentences; a period without a space is a decimal point."""
    sentences = [sentence for sentence in text.split(". ") if sentence]
    return [sentence if sentence.endswith(".") else f"{sentence}." for sentence in sentences]
