"""Waiting with a deadline, never for a fixed time: the one loop that polls."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, TypeVar

from cluster.errors import DeadlineError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["wait_until"]

Found = TypeVar("Found")


def wait_until(condition: Callable[[], Found], *, what: str, seconds: float = 60, every_seconds: float = 0.1) -> Found:
    """What the condition found once it holds; raises `DeadlineError` naming what was waited for when time is up."""
    pause = threading.Event()
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise DeadlineError(f"waited {seconds:g} s in vain for: {what}")
        pause.wait(every_seconds)
    return found
