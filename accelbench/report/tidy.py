"""Write the report as CSV for spreadsheets: a row for each case and variant, a column for each number."""

import csv
import io
from collections.abc import Iterable, Iterator

from accelbench.api.numbers import MEASURED
from accelbench.api.result import Result
from accelbench.verdict.redaction import redact_invalid

SETTINGS = ("case", "workload", "precision", "profile", "target", "currency", "variant", "use", "baseline")
"""Columns that describe the case and the variant, next to a column for each parameter."""
FINDINGS = ("verdict", "noisy", "invalid", "seconds", "speedup", "speedupLower", "speedupUpper", "rounds", "failure")
"""Columns with what was found of a variant, next to a column for each number."""


def report(results: Iterable[Result]) -> str:
    """Return CSV: a header, then a row for each variant of each case."""
    rows = [row for result in results for row in _rows(redact_invalid(result))]
    parameters: dict[str, None] = {}  # an ordered set: cases may have different parameters
    for row in rows:
        parameters |= dict.fromkeys(name for name in row if name.startswith("parameter."))
    numbers = [number.name for number in MEASURED.values()]
    text = io.StringIO()
    writer = csv.DictWriter(text, [*SETTINGS, *parameters, *FINDINGS, *numbers], restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _rows(result: Result) -> Iterator[dict[str, object]]:
    """Yield a row of the CSV for each variant of the result, as cells by column name."""
    case = result.case
    comparisons = {comparison.variant: comparison for comparison in result.comparisons}
    for variant in result.variants:
        comparison = comparisons.get(variant.name)
        yield {
            "case": case.name,
            "workload": case.workload,
            "precision": case.measurement.precision,
            "profile": case.accelerator.profile,
            "target": case.accelerator.target or "",
            "currency": case.accelerator.currency,
            "variant": variant.name,
            "use": variant.use,
            "baseline": case.baseline,
            **{f"parameter.{name}": value for name, value in case.parameters.items()},
            "verdict": comparison.verdict if comparison else "",
            "noisy": comparison.noisy if comparison else "",
            "invalid": " ".join(comparison.invalid) if comparison else "",
            "seconds": variant.seconds.geometric_mean_seconds if variant.seconds else "",
            "speedup": comparison.speedup if comparison else "",
            "speedupLower": comparison.lower if comparison else "",
            "speedupUpper": comparison.upper if comparison else "",
            "rounds": result.rounds,
            "failure": variant.failure.reason if variant.failure else "",
            # The JSON names of the numbers are the `name` of each in MEASURED.
            **variant.numbers.model_dump(mode="json", by_alias=True, exclude_none=True),
        }
