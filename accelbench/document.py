"""Define what all documents of accelbench share: frozen, closed, camelCase names, no floats in stored values.

The case document, the result document and the API types build on `Document`. They are defined once, here and in
`accelbench.api`; the command line, the operator and the runner read them.
"""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, StringConstraints
from pydantic.alias_generators import to_camel

DECIMAL_PATTERN = r"^-?[0-9]+(\.[0-9]+)?$"

DecimalString = Annotated[str, StringConstraints(pattern=DECIMAL_PATTERN, max_length=40)]
"""Number as Kubernetes stores it, without exponent: `0.00123`. The field's name has the unit."""


def decimal_string(value: float, digits: int = 6) -> str:
    """Format `value` with `digits` significant digits and no exponent; raise ValueError for NaN and infinity."""
    number = Decimal(f"{value:.{digits - 1}e}")
    if not number.is_finite():
        raise ValueError(f"{value} is not finite, so it cannot be stored as a decimal")
    return format(number.normalize() + 0, "f")


def rounded(digits: int) -> BeforeValidator:
    """Return a validator that stores a number as a decimal string of `digits` significant digits."""
    return BeforeValidator(lambda value: decimal_string(value, digits) if isinstance(value, int | float) else value)


TIME_DIGITS = 9
"""More digits than a clock resolves, so that the ratio of two stored times is the speedup to the digits shown."""
SixDigits = Annotated[DecimalString, rounded(6)]
TimeString = Annotated[DecimalString, rounded(TIME_DIGITS)]


def timestamp(moment: datetime) -> str:
    """Format a moment as Kubernetes does: RFC 3339, UTC, whole seconds."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def printable(text: str) -> str:
    """Escape control and line-break characters, so that no reader takes a part of `text` for a separate line."""
    return "".join(
        character if character.isprintable() or character == "\t" else repr(character)[1:-1] for character in text
    )


def on_one_line(text: str) -> str:
    """Join the lines of `text` and escape invisible characters, such as those that reverse text."""
    return text if text.isprintable() else printable(" ".join(text.split()))


Line = Annotated[str, AfterValidator(on_one_line)]
"""Text for people on a terminal or elsewhere, from any source: a program under test, an exception, a file. A document
holds it on one line, without characters that a terminal would obey."""


_FIELD_SETS: dict[frozenset[str], set[str]] = {}


class Document(BaseModel):
    """Define a frozen model with camelCase names outside; unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)

    def model_post_init(self, _context: Any, /) -> None:
        """Share one set of field names among all documents that set the same fields.

        A set for each document would be nearly half of the memory that an operator needs for a run. Sharing is safe:
        documents are frozen, and a copy gets a set of its own.
        """
        names = frozenset(self.model_fields_set)
        object.__setattr__(self, "__pydantic_fields_set__", _FIELD_SETS.setdefault(names, set(names)))

    def to_json(self) -> str:
        """Return the document as compact JSON: camelCase, without unset values."""
        return self.model_dump_json(by_alias=True, exclude_none=True)
