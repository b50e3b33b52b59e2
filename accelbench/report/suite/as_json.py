"""Describe a suite as one JSON document, for scripts. Pure."""

import json
from typing import Any

from accelbench.document import decimal_string
from accelbench.report.suite.view import Cell, PairSummary, Suite

FORMAT = "accelbench.dev/suite-report/v1alpha1"


def report(suite: Suite) -> str:
    """Return the suite's comparisons, counts and means as JSON; numbers are decimal strings, as in a result."""
    document = {
        "format": FORMAT,
        "name": suite.name,
        "comparisons": [_comparison(cell) for cell in suite.cells],
        "summaries": [_summary(summary) for summary in suite.summaries],
        "notCompared": [{"case": row.label, "found": list(row.findings)} for row in suite.other_rows],
    }
    return json.dumps(document, ensure_ascii=False)


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
