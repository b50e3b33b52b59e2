"""The report as one JSON document a line: for scripts."""

import json
from collections.abc import Sequence

from accelbench.api.result import Result
from accelbench.cli.files import RunRecord
from accelbench.verdict.expectations import ExpectationOutcome
from accelbench.verdict.redaction import redact_invalid

FORMAT = "accelbench.dev/report/v1alpha1"


def json_report(measured: Sequence[tuple[Result, Sequence[ExpectationOutcome]]], record: RunRecord | None) -> str:
    """`run` is null where a single result was read; `cases` hold each result and what became of the expectations."""
    cases = [
        {
            "result": json.loads(redact_invalid(result).to_json()),
            "expectations": [
                {
                    "expectation": json.loads(outcome.expectation.to_json()),
                    "outcome": outcome.outcome,
                    "sentence": outcome.sentence,
                }
                for outcome in outcomes
            ],
        }
        for result, outcomes in measured
    ]
    run = json.loads(record.to_json()) if record is not None else None
    return json.dumps({"format": FORMAT, "run": run, "cases": cases}, ensure_ascii=False)
