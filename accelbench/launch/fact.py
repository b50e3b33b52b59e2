"""Parse a fact that a launch reports: a value, or the reason why there is none.

Facts come from a process that ran a user's code, so any of them may be missing or garbage. They are parsed once, where
they are read from the launch's pipe. A missing fact (None on the pipe) becomes `Unreadable` with `reported` False, so
later code handles two cases: a value, or `Unreadable`.
"""

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
)
from pydantic.alias_generators import to_camel

from accelbench.document import Document, shorten

MAXIMUM_CHARACTERS = 1000
"""Maximum length of a text that a launch reports. The log's record of the launch has the whole text."""


def clip(text: str) -> str:
    """Shorten a text to `MAXIMUM_CHARACTERS`."""
    return shorten(text, MAXIMUM_CHARACTERS)


class Unreadable(Document):
    """Describe a fact that is missing or invalid."""

    why: str
    """Reason, for people."""
    reported: bool = True
    """False if the launch did not report the fact."""
    probe_failed: bool = Field(default=False, alias="ours")
    """True if accelbench's own probe gave no answer, so that no variant is to blame. Results store it as `ours`."""


T = TypeVar("T")


def value_or_none(fact: T | Unreadable) -> T | None:
    """Return the fact, or None if it is `Unreadable`."""
    return None if isinstance(fact, Unreadable) else fact


def is_reported(fact: object) -> bool:
    """Return True if the launch reported the fact, even with an invalid value."""
    return not isinstance(fact, Unreadable) or fact.reported


def tag_of(value: Any) -> str:
    """Return the tag by which pydantic chooses a fact's type: `unreadable` or `value`."""
    # An `Unreadable` that was read from JSON is a mapping with the field `why`.
    is_unreadable = isinstance(value, Unreadable) or (isinstance(value, Mapping) and "why" in value)
    return "unreadable" if is_unreadable else "value"


def _validate_fact(value: Any, validate: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    """Return the validated fact or, if it is invalid, an `Unreadable` that names pydantic's first problem."""
    try:
        return validate(value)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        _tag, *inner_path = problem["loc"]  # pydantic begins the location with the tag, such as `value`
        path = ".".join([to_camel(info.field_name or ""), *map(str, inner_path)])
        return Unreadable(why=clip(f"the launch reported {path} that cannot be read: {problem['msg']}"))


Fact = Annotated[
    Annotated[T, Tag("value")] | Annotated[Unreadable, Tag("unreadable")],
    Discriminator(tag_of),
    WrapValidator(_validate_fact),
]
"""Value of type T, or `Unreadable`."""


class FactWithFields(BaseModel):
    """Base class of facts with several fields; unknown fields are ignored.

    A field with the default None becomes None if its value is invalid: libraries report an unknown value as -1 or NaN.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True, alias_generator=to_camel, populate_by_name=True)

    @field_validator("*", mode="wrap")
    @classmethod
    def _replace_invalid_by_none(cls, value: Any, validate: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
        """Return the value, or None if it is invalid and None is the field's default."""
        try:
            return validate(value)
        except ValidationError:
            field = cls.model_fields[info.field_name or ""]
            if field.is_required() or field.default is not None:
                raise
            return None


NOT_REPORTED = Unreadable(why="the launch did not report it", reported=False)
"""Default of every fact."""
