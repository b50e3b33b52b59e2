"""Describe a measured number: its meaning, unit and source, and where it is shown."""

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import GetJsonSchemaHandler
from pydantic_core import CoreSchema

Unit = Literal[
    "", "s", "B", "B/s", "FLOP", "FLOP/s", "FLOP/B", "J", "steps", "times", "share", "of the tolerance", "currency"
]
"""Unit of a number: empty for counts; `currency` stands for the currency of the case's price."""
Reduction = Literal["agreed", "most", "fewest", "first"]
"""How one number is made of those of several launches; `agreed`: the common number, or none if launches differ."""
DISPATCHED = "dispatched"
"""Platform name for programs that are not compiled, whose operations are dispatched one by one."""


@dataclass(frozen=True)
class Number:
    """Describe a number that is measured of a variant: its meaning, unit and source, and where it is shown."""

    meaning: str
    name: str = ""
    """Name in results and manifests; a field of `Numbers` has its own."""
    unit: Unit = ""
    fact: str = ""
    """Field of `Facts` that reports the number; `a.b` is field `b` of field `a`. Empty if the number is calculated."""
    launches: Reduction = "agreed"
    """How one number is made of the values of several launches."""
    timed: bool = False
    """True if the number derives from times. Such numbers are not shown for a variant that a check rejects."""
    table: Literal["", "work", "program", "target"] = ""
    """Report table that has the number as a column; empty if none has."""
    heading: str = ""
    """Heading of that column; `{unit}` is the workload's unit of work, `{currency}` the currency of the case's price.
    """
    brief: bool = True
    """True if the column is shown in the terminal, too."""
    metric: str = ""
    """Prometheus metric; empty if the number is not exported."""
    column: str = ""
    """Heading of the metric's column in the table of variants of the dashboard Run; empty if it has none."""
    expected: bool = False
    """True if expectations may use the number."""
    over_baseline: bool = False
    """True if the number compares a variant with the baseline, so that the baseline has no such number."""
    compared: bool = False
    """True if the number has the interval of a comparison with the baseline."""
    undisturbed: bool = False
    """True if other load on the machine does not change the number, so that launches in disturbed rounds count too."""
    estimated_for: tuple[str, ...] = ()
    """Platforms (or `DISPATCHED`) for which a compiler without a device can only estimate the number."""
    checked_by: str = ""
    """Check that tests the same number. If this check fails, an expectation on the number can still be decided."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return the field's JSON schema, with the number's meaning as its description."""
        return {**handler(schema), "description": self.meaning}
