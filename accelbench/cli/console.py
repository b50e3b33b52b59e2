"""Where the command line writes for people."""

import os

from rich.console import Console


def console(*, stderr: bool = False) -> Console:
    """Standard output, or standard error; plain where NO_COLOR is set.

    no-color.org asks for no colour and leaves bold and dim open. Terminals draw dim as grey and often bold in a
    brighter colour, and what people expect of NO_COLOR is text without escape codes, as pytest gives them.
    """
    # What a result or a file says in brackets or between colons is text: nobody else chooses a link or a colour.
    return Console(
        stderr=stderr, color_system=None if os.environ.get("NO_COLOR") else "auto", markup=False, emoji=False
    )
