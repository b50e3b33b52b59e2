"""Poll until a condition holds; the only deadline is against a hang, so that no slow machine fails a test."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, TypeVar

from cluster.errors import DeadlineError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["HANG_SECONDS", "wait_until"]

Found = TypeVar("Found")
HANG_SECONDS = 900
"""What takes longer hangs, on any machine."""


def wait_until(condition: Callable[[], Found], *, what: str, every_seconds: float = 0.1) -> Found:
    """Return what the condition returns once it holds; raise `DeadlineError` naming `what` if it never does."""
    pause = threading.Event()
    deadline = time.monotonic() + HANG_SECONDS
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise DeadlineError(f"waited {HANG_SECONDS} s in vain for: {what}")
        pause.wait(every_seconds)
    return found
