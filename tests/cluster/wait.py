"""Poll until a condition holds; the only deadline is against a hang, so that no slow machine fails a test."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, TypeVar

from cluster.errors import ComponentError, DeadlineError

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

__all__ = ["HANG_SECONDS", "NEEDED", "wait_until"]

Found = TypeVar("Found")
HANG_SECONDS = 900
"""What takes longer hangs, on any machine."""
NEEDED: dict[subprocess.Popen[bytes], Callable[[], str]] = {}
"""Processes that must not end while a test waits, and what returns the log of each."""


def wait_until(condition: Callable[[], Found], *, what: str, every_seconds: float = 0.1) -> Found:
    """Return what the condition returns once it holds.

    Raises:
        DeadlineError: the condition does not hold after `HANG_SECONDS`.
        ComponentError: a process in `NEEDED` has ended, and the condition does not hold.
    """
    pause = threading.Event()
    deadline = time.monotonic() + HANG_SECONDS
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise DeadlineError(f"waited {HANG_SECONDS} s in vain for: {what}")
        ended = [log for process, log in NEEDED.items() if process.poll() is not None]
        if ended:
            if found := condition():
                break
            raise ComponentError(f"a process ended while the test waited for: {what}\n{ended[0]()}")
        pause.wait(every_seconds)
    return found
