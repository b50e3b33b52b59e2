"""Identify the bounds of a claim, and find out whether they are older than the results that they judge.

Bounds that were chosen after a result was seen prove less. For each row of the ledger, which is a claim, `bounds.yaml`
names the commit that first wrote the present bounds; `python -m accelbench.cli.bounds` finds that commit in git.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field, TypeAdapter, ValidationError

from accelbench.claims.ledger import Claim, InvalidLedgerError
from accelbench.document import Document

BOUNDS = "bounds.yaml"
"""File name, next to the ledger."""
Age = Literal["before-any-result", "before-this-result", "after-this-result", "not-recorded"]
"""`before-this-result`: an earlier result of the row was known, but not the one that decides."""
VERDICTS_OF_RESULTS = frozenset({"confirmed", "in-direction", "example-exists", "refuted", "inconclusive", "measured"})
"""Verdicts that follow from a complete result, unlike `withheld` or `not-measured-yet`."""
CONDITIONS = ("majorities", "trainings", "expectations")
"""Conditions in the ledger, which replace those of the manifests."""


class BoundsRecord(Document):
    """Name the commit that first wrote the present bounds of a row."""

    row: Annotated[int, Field(ge=1)]
    digest: Annotated[str, Field(pattern=r"^[0-9a-f]{12}$")]
    commit: Annotated[str, Field(pattern=r"^[0-9a-f]{7,40}$")]
    written: datetime
    """When it was committed."""


def load(directory: Path) -> Mapping[int, BoundsRecord]:
    """Return the records in bounds.yaml, by row; raises InvalidLedgerError if the file is missing or malformed."""
    file = directory / BOUNDS
    try:
        records = TypeAdapter(tuple[BoundsRecord, ...]).validate_python(yaml.safe_load(file.read_text()))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, ValidationError) as error:
        raise InvalidLedgerError(f"{file}: {error}") from error
    return {record.row: record for record in records}


def digest(row: Mapping[str, Any], manifests: Sequence[Mapping[str, Any]]) -> str:
    """Return a digest of everything that decides a row: its hardware, workloads and bounds.

    Args:
        row: The row's entry in the ledger, as parsed from YAML.
        manifests: The manifests that decide the row, as parsed from YAML.
    """
    # Conditions in the ledger replace the manifests' expectations, which then decide nothing.
    conditions = {name: row[name] for name in CONDITIONS if row.get(name)}
    deciding_parts = []
    for manifest in manifests:
        spec = manifest["spec"]
        deciding_parts.append(
            {
                "workload": spec["workload"],
                "sweep": spec.get("sweep"),
                "precision": spec.get("measurement", {}).get("precision"),
                "targets": spec.get("accelerator", {}).get("targets"),
                "expectations": None if conditions else spec.get("expectations"),
            }
        )
    # The key `programs` must stay, because recorded digests depend on it.
    content = {"hardware": row["hardware"], "machine": row.get("machine", ""), **conditions, "programs": deciding_parts}
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()[:12]


def age(record: BoundsRecord | None, claim: Claim, measured: Sequence[datetime]) -> Age:
    """Return whether the bounds are older than the results.

    Args:
        record: The commit of the row's present bounds; None if none is recorded for them.
        claim: The row, whose history and replaced results have the dates of earlier results.
        measured: When each deciding run began.
    """
    if record is None:
        return "not-recorded"
    bounds_came_later = [record.written >= moment for moment in measured]  # for each deciding run
    # One example shows that something is possible, so one run that began after the bounds were written suffices.
    bounds_are_late = all(bounds_came_later) if claim.kind == "possibility" else any(bounds_came_later)
    if measured and bounds_are_late:
        return "after-this-result"
    # When a result was replaced or a condition with a verdict was changed, an earlier result was known.
    known_results = [replaced.measured for replaced in claim.replaced]
    known_results += [earlier.changed for earlier in claim.history if earlier.verdict in VERDICTS_OF_RESULTS]
    if any(_is_same_or_later(record.written, moment) for moment in known_results):
        return "before-this-result"
    return "before-any-result"


def _is_same_or_later(written: datetime, moment: date | datetime) -> bool:
    """Return True if the bounds were written at the moment or later; for a `date`, at any time of that day or later."""
    return written >= moment if isinstance(moment, datetime) else written.date() >= moment
