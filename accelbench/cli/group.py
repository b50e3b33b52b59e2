"""The group of a program's commands: what a command line gets wrong is said in our words alone."""

from typing import Any

import typer
from typer.core import TyperGroup

VALIDATORS = "Value error, "
"""What pydantic, with which typer reads values, puts before a sentence that a validator raised."""


class PlainGroup(TyperGroup):
    """Runs a command; a bad value is refused without the words of the library that found it."""

    def invoke(self, ctx: Any) -> Any:
        """Whatever the command returns."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix(VALIDATORS)
            raise
