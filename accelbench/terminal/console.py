"""Open standard output and standard error as `accelbench` and the kubectl plugin write to them."""

import os
import sys

from rich.console import Console

UNFOLDED = 1000
"""Width that no row reaches."""


def console(*, stderr: bool = False, listing: bool = False) -> Console:
    """Return the console of standard output or standard error, without escape codes if NO_COLOR is set.

    A listing that goes into a pipe or a file has one line for each row, as kubectl's do, for grep.
    """
    unfolded = listing and not sys.stdout.isatty() and "COLUMNS" not in os.environ
    # Results can contain `[red]` or `:smile:`, which must stay text.
    return Console(
        stderr=stderr,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        markup=False,
        emoji=False,
        width=UNFOLDED if unfolded else None,
    )
