"""Describe a suite as one JSON document, for scripts. Pure."""

import json
from typing import Any

from pydantic.alias_generators import to_camel

from accelbench.document import decimal_string
from accelbench.report.suite import releases
from accelbench.report.suite.releases import ReleaseNumber
from accelbench.report.suite.view import Cell, PairSummary, Suite

FORMAT = "accelbench.dev/suite-report/v1alpha1"


def report(suite: Suite) -> str:
    """Return the suite's programs, comparisons, counts and means as JSON, with speedups as decimal strings."""
    document = {
        "format": FORMAT,
        "name": suite.name,
        "programs": [_program(number) for number in releases.release_numbers(suite)],
        "comparisons": [_comparison(cell) for cell in suite.cells],
        "summaries": [_summary(summary) for summary in suite.summaries],
        "notCompared": [{"case": row.label, "found": list(row.findings)} for row in suite.other_rows],
        "alsoDifferent": [
            {package.name: dict(package.versions) for package in packages}
            for packages in releases.other_packages(suite)
        ],
    }
    return json.dumps(document, ensure_ascii=False)


def _program(number: ReleaseNumber) -> dict[str, Any]:
    """Return a number of a case's program in each release as an object; a number that is not known is null."""
    return {"case": number.case, "number": to_camel(number.field), "byRelease": dict(number.values)}


def _comparison(cell: Cell) -> dict[str, Any]:
    """Return a comparison as an object; without an interval it has no speedup."""
    document: dict[str, Any] = {
        "case": cell.case,
        "variant": cell.pair.variant,
        "baseline": cell.pair.baseline,
        "outcome": cell.outcome,
        "reason": cell.reason,
    }
    if cell.bounds is not None:
        document["speedup"] = decimal_string(cell.bounds.estimate)
        document["lower"] = decimal_string(cell.bounds.lower)
        document["upper"] = decimal_string(cell.bounds.upper)
    return document


def _summary(summary: PairSummary) -> dict[str, Any]:
    """Return the counts and the mean of a pair as an object; without a mean, with the reason."""
    document: dict[str, Any] = {
        "variant": summary.pair.variant,
        "baseline": summary.pair.baseline,
        "counts": dict(summary.counts),
    }
    if summary.mean is None:
        document["noMean"] = summary.why_no_mean or "some cases do not compare this pair"
    else:
        document["geometricMeanOfTheseCases"] = decimal_string(summary.mean.mean)
        document["lowestWithoutOneCase"] = decimal_string(summary.mean.lowest)
        document["highestWithoutOneCase"] = decimal_string(summary.mean.highest)
    return document
