"""Define how `accelbench` and the kubectl plugin print errors, order their commands and encode their output."""

import sys
from typing import Any

import click

from accelbench.local.errors import LocalError, UsageError
from accelbench.local.exits import Exit

CONTEXT_SETTINGS = {"help_option_names": ["-h", "--help"], "show_default": True}


class Command(click.Command):
    """Print the errors of `accelbench.local`, and end with their exit codes; on Ctrl-C, with `Exit.INTERRUPTED`."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; if it raises a `LocalError`, print the error and exit with its code.

        A `UsageError` is a `LocalError` that is printed after the command's usage.
        """
        try:
            return super().invoke(ctx)
        except UsageError as error:
            # click prints a BadParameter after the command's usage.
            raise click.BadParameter(str(error), ctx=ctx, param_hint=error.argument) from error
        except LocalError as error:
            click.echo(error.explanation(), err=True)
            sys.exit(error.exit_code)
        except KeyboardInterrupt:
            sys.exit(Exit.INTERRUPTED)


class Group(click.Group):
    """List commands in the order in which they were added, the most useful first."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click passes it
        """List the commands in the order in which they were added."""
        return list(self.commands)


def replace_unencodable() -> None:
    """Make standard output and standard error print `?` for characters that they cannot encode."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a stream that replaces the standard one may lack this method
            stream.reconfigure(errors="replace")
