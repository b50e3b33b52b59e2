"""Open standard output and standard error as `accelbench` and the kubectl plugin write to them."""

import os
import sys

from rich.console import Console

UNLIMITED_WIDTH = 1000
"""Columns of a console in which no row needs a second line."""


def console(*, stderr: bool = False, listing: bool = False) -> Console:
    """Return rich's console for standard output, or for standard error if `stderr`.

    If `listing` and the output is piped, the console is so wide that each row of a table is one line, as grep needs it,
    unless the variable COLUMNS sets its width.
    """
    has_no_width = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    # Results can contain text such as `[red]` or `:smile:`, which must be printed as it is.
    return Console(
        stderr=stderr,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        markup=False,
        emoji=False,
        width=UNLIMITED_WIDTH if listing and has_no_width else None,
    )
