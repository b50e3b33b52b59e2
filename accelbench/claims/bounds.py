"""Identify the bounds of a claim, and find out whether they are older than the results that they judge.

Bounds that were chosen after a result was seen prove less. For each row, `bounds.yaml` names the commit that first
wrote the present bounds; `python -m accelbench.cli.bounds` finds that commit in git.
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
    """Return a digest of all that decides a row: its hardware, workloads and bounds.

    Args:
        row: The row's entry in the ledger, as YAML has it.
        manifests: The deciding manifests, as YAML has them.
    """
    conditions = {name: row[name] for name in CONDITIONS if row.get(name)}
    programs = []
    for manifest in manifests:
        spec = manifest["spec"]
        programs.append(
            {
                "workload": spec["workload"],
                "sweep": spec.get("sweep"),
                "precision": spec.get("measurement", {}).get("precision"),
                "targets": spec.get("accelerator", {}).get("targets"),
                "expectations": None if conditions else spec.get("expectations"),
            }
        )
    decides = {"hardware": row["hardware"], "machine": row.get("machine", ""), **conditions, "programs": programs}
    return hashlib.sha256(json.dumps(decides, sort_keys=True, default=str).encode()).hexdigest()[:12]


def age(record: BoundsRecord | None, claim: Claim, measured: Sequence[datetime]) -> Age:
    """Return how old the bounds are.

    Args:
        record: The commit of the row's present bounds; None if none is recorded for them.
        claim: The row, whose history and replaced results date earlier results.
        measured: When each deciding run began.
    """
    if record is None:
        return "not-recorded"
    # One example that was measured later suffices for a claim that something can be so.
    decides_alone = claim.kind == "possibility"
    is_late = [record.written >= moment for moment in measured]
    if measured and (all(is_late) if decides_alone else any(is_late)):
        return "after-this-result"
    # A condition that had a verdict was changed after its result.
    known = [replaced.measured for replaced in claim.replaced]
    known += [earlier.changed for earlier in claim.history if earlier.verdict in VERDICTS_OF_RESULTS]
    if any(_is_no_earlier(record.written, moment) for moment in known):
        return "before-this-result"
    return "before-any-result"


def _is_no_earlier(written: datetime, moment: date | datetime) -> bool:
    """Return True if the bounds were not written before the moment; of some results, only the day is known."""
    return written >= moment if isinstance(moment, datetime) else written.date() >= moment
