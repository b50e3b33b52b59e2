"""A comparison as one JSON document: for scripts."""

import json
from collections.abc import Sequence
from typing import Any

from accelbench.document import TIME_DIGITS, decimal_string
from accelbench.history.change_points import SeriesStep
from accelbench.history.runs import Compared, RunComparison
from accelbench.history.sample import Sample

FORMAT = "accelbench.dev/comparison/v1alpha1"


def compare_json(found: RunComparison, steps: Sequence[SeriesStep], notes: Sequence[str]) -> str:
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
        "comparisons": [_compared(each) for each in found.compared],
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
        "notes": [*notes, *found.alone],
    }
    return json.dumps(document, ensure_ascii=False)


def _compared(each: Compared) -> dict[str, Any]:
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
