"""A fact that a launch reports: a value, or why there is none.

Facts come from a process that ran a user's code: any of them may be missing or garbage. They are parsed once, at the
pipe, and nobody downstream parses anything again.
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
)
from pydantic.alias_generators import to_camel

from accelbench.document import Document

MAXIMUM_CHARACTERS = 240


def clip(text: str) -> str:
    """At most `MAXIMUM_CHARACTERS`: what a launch says must not fill the result."""
    return text if len(text) <= MAXIMUM_CHARACTERS else text[: MAXIMUM_CHARACTERS - 1] + "…"


class Unreadable(Document):
    """A fact that is missing, or is not what it should be."""

    why: str
    """For people."""
    reported: bool = True
    """False: the launch said nothing of it."""
    probe_failed: bool = Field(default=False, alias="ours")
    """A probe of accelbench's own gave no answer: nothing that a variant could be blamed for."""


T = TypeVar("T")


def known(fact: T | Unreadable) -> T | None:
    """The value; None where there is none."""
    return None if isinstance(fact, Unreadable) else fact


def is_reported(fact: object) -> bool:
    """Whether the launch said something of it, readable or not."""
    return not isinstance(fact, Unreadable) or fact.reported


def kind(value: Any) -> str:
    """`unreadable` for what says why there is no value, else `value`."""
    told = isinstance(value, Unreadable) or (isinstance(value, Mapping) and "why" in value)
    return "unreadable" if told else "value"


def _read(value: Any, validate: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    try:
        return validate(value)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        _, *inside = problem["loc"]
        place = ".".join([to_camel(info.field_name or ""), *map(str, inside)])
        return Unreadable(why=clip(f"the launch reported {place} that cannot be read: {problem['msg']}"))


Fact = Annotated[
    Annotated[T, Tag("value")] | Annotated[Unreadable, Tag("unreadable")], Discriminator(kind), WrapValidator(_read)
]
"""A value, or why there is none."""


class FactWithFields(BaseModel):
    """A fact with fields; those that nobody reads are let through."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True, alias_generator=to_camel, populate_by_name=True)


NOT_REPORTED = Unreadable(why="the launch did not report it", reported=False)
