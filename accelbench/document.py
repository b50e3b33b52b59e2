"""What every document of accelbench has in common: frozen, closed, camelCase outside, no floats in what is stored.

The case document, the result document and the API types all build on `Document`; they are written once, here and in
`accelbench.api`, and read by the command line, the operator and the runner.
"""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, StringConstraints
from pydantic.alias_generators import to_camel

DECIMAL_PATTERN = r"^-?[0-9]+(\.[0-9]+)?$"

DecimalString = Annotated[str, StringConstraints(pattern=DECIMAL_PATTERN, max_length=40)]
"""A number as Kubernetes stores it, without exponent: `0.00123`. Units stand in the field's name."""


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
    """`text` on one line and without control characters, so that no reader takes a part of it for a line of ours."""
    return "".join(
        character if character.isprintable() or character == "\t" else repr(character)[1:-1] for character in text
    )


def on_one_line(text: str) -> str:
    """`text` for people: what is no space and no character to be seen is escaped, as are those that turn text round."""
    return text if text.isprintable() else printable(" ".join(text.split()))


Line = Annotated[str, AfterValidator(on_one_line)]
"""A text that people will read, on a terminal and elsewhere, and that anyone may have written: a program under test, an
exception, a file. Whoever reads it from a document gets one line, and nothing that a terminal obeys."""


_GIVEN: dict[frozenset[str], set[str]] = {}


class Document(BaseModel):
    """A frozen model with camelCase names outside, which refuses fields that it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)

    def model_post_init(self, _context: Any, /) -> None:
        """Documents that were given the same fields share the set of them.

        Each would have one of its own: nearly half of the memory that an operator holds of a run. Nothing changes it:
        documents are frozen, and a copy gets a set of its own.
        """
        given = frozenset(self.model_fields_set)
        object.__setattr__(self, "__pydantic_fields_set__", _GIVEN.setdefault(given, set(given)))

    def to_json(self) -> str:
        """The document as compact JSON: camelCase, nothing that is unset."""
        return self.model_dump_json(by_alias=True, exclude_none=True)
