"""Commands and their group: refuse a wrong argument with one message and the command's usage."""

import sys
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from accelbench.local.errors import UsageError

VALIDATORS = "Value error, "
"""Prefix that pydantic, with which typer reads values, puts before a validator's message."""


class PlainCommand(TyperCommand):
    """Turn a `UsageError` into the command line's own refusal."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except UsageError as error:
            raise typer.BadParameter(str(error), ctx=ctx, param_hint=error.argument) from error


class PlainGroup(TyperGroup):
    """Strip the prefix of the validating library from refusals."""

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix(VALIDATORS)
            raise


def replace_unencodable() -> None:
    """Print `?` for characters, such as `µ`, that the terminal's encoding lacks, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
