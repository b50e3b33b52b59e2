"""Standard output and standard error as `accelbench` and the kubectl plugin write to them."""

import os
import sys

from rich.console import Console

UNFOLDED = 1000
"""Columns that no row needs."""


def console(*, stderr: bool = False, listing: bool = False) -> Console:
    """Standard output, or standard error; plain where NO_COLOR is set.

    A `listing` has a line for each row where it goes into a pipe or a file, for grep, as kubectl's do.

    no-color.org asks for no colour and leaves bold and dim open. Terminals draw dim as grey and often bold in a
    brighter colour, and what people expect of NO_COLOR is text without escape codes, as pytest gives them.
    """
    unfolded = listing and not sys.stdout.isatty() and "COLUMNS" not in os.environ
    # What a result or a file says in brackets or between colons is text: nobody else chooses a link or a colour.
    return Console(
        stderr=stderr,
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        markup=False,
        emoji=False,
        width=UNFOLDED if unfolded else None,
    )
