"""What every program of ours does before it writes its first word."""

import sys


def bear_any_terminal() -> None:
    """Have what a terminal cannot show, such as `µ` or `✓`, be replaced: it is no reason to fail."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
