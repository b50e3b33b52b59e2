"""Define what all documents of accelbench share: frozen, closed, camelCase names, no floats in stored values.

The case document, the result document and the API types build on `Document`. They are defined once, here and in
`accelbench.api`; the command line, the operator and the runner read them.
"""

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, StringConstraints
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticSerializationError

DECIMAL_PATTERN = r"^-?[0-9]+(\.[0-9]+)?$"

SENTENCE_ENDS = (". ", "; ", ".\n")
"""Where `shorten` prefers to cut a text."""

DecimalString = Annotated[str, StringConstraints(pattern=DECIMAL_PATTERN, max_length=40)]
"""Number as Kubernetes stores it, without exponent: `0.00123`. The field's name has the unit."""


def decimal_string(value: float, digits: int = 6) -> str:
    """Format `value` with `digits` significant digits, without an exponent; raises ValueError for NaN and infinity."""
    # Scientific notation has one digit before the point.
    number = Decimal(f"{value:.{digits - 1}e}")
    if not number.is_finite():
        raise ValueError(f"{value} is not finite, so it cannot be stored as a decimal")
    # `normalize` removes trailing zeros; adding 0 turns -0 into 0.
    return format(number.normalize() + 0, "f")


def round_to_digits(digits: int) -> BeforeValidator:
    """Return a pydantic validator that turns a number into a decimal string with `digits` significant digits."""

    def round_number(value: Any) -> Any:
        """Convert a number; leave any other value to the field's own checks, which accept only decimal strings."""
        return decimal_string(value, digits) if isinstance(value, int | float) else value

    return BeforeValidator(round_number)


TIME_DIGITS = 9
"""More digits than a clock resolves, so that the ratio of two stored times is the speedup to the digits shown."""
SixDigits = Annotated[DecimalString, round_to_digits(6)]
TimeString = Annotated[DecimalString, round_to_digits(TIME_DIGITS)]


def timestamp(time: datetime) -> str:
    """Format a time as Kubernetes does: RFC 3339, UTC, whole seconds."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def escape_unprintable(text: str) -> str:
    r"""Return `text` with unprintable characters escaped, except tabs."""
    characters = []
    for character in text:
        if character.isprintable() or character == "\t":
            characters.append(character)
        else:
            # `repr` escapes the character and adds quotes, which are cut off.
            characters.append(repr(character)[1:-1])
    return "".join(characters)


def on_one_line(text: str) -> str:
    """Return `text` on one line, with unprintable characters escaped."""
    if text.isprintable():
        return text
    one_line = " ".join(text.split())
    return escape_unprintable(one_line)


def shorten(text: str, maximum: int) -> str:
    """Cut `text` to at most `maximum` characters, where ` …` takes the place of what was cut.

    The text is cut after a sentence or, if that left less than half of the maximum, after a word. As the end is lost,
    put a problem and its remedy at the beginning of a text.
    """
    if len(text) <= maximum:
        return text
    if maximum <= 0:
        return ""
    beginning = text[: max(0, maximum - len(" …"))]
    sentence_end = max(beginning.rfind(end) + 1 for end in SENTENCE_ENDS)  # after the punctuation mark; 0: no sentence
    word_end = beginning.rfind(" ")
    if sentence_end > maximum // 2:
        beginning = beginning[:sentence_end]
    elif word_end > maximum // 2:
        beginning = beginning[:word_end]
    # Without a sentence or a word that ends in the second half, as in a long number, the cut may be anywhere.
    shortened = f"{beginning.rstrip(' ;')} …"
    return shortened[-maximum:]  # if `maximum` is 1, the two characters ` …` are too many: return only `…`


Line = Annotated[str, AfterValidator(on_one_line)]
"""Text for people on a terminal or elsewhere, from any source: a program under test, an exception, a file. A document
holds it on one line, without characters that a terminal would obey."""


_FIELD_SETS: dict[frozenset[str], set[str]] = {}


class Document(BaseModel):
    """Define a frozen model with camelCase names outside; unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True)

    def model_post_init(self, _context: Any, /) -> None:
        """Let all documents with the same explicitly set fields share one set of field names, to save memory.

        This is safe because documents are frozen, and pydantic gives a copy a new set.
        """
        names = frozenset(self.model_fields_set)
        shared_names = _FIELD_SETS.setdefault(names, set(names))
        # A frozen model refuses `self.x = ...`.
        object.__setattr__(self, "__pydantic_fields_set__", shared_names)

    def to_json(self) -> str:
        """Return the document as compact JSON, without fields that are None.

        Halves of surrogate pairs, which a user's texts may contain and JSON may not, become question marks.
        """
        try:
            return self.model_dump_json(by_alias=True, exclude_none=True)
        except PydanticSerializationError:
            values = self.model_dump(mode="json", by_alias=True, exclude_none=True)
            text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
            return text.encode(errors="replace").decode()
