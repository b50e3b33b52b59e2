"""Ctrl-C and SIGTERM of a command that waits: heard where it waits, not in the middle of a line that is printed."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self


class TerminatedError(Exception):
    """SIGTERM came."""


class Signals:
    """While entered, both are exceptions: of whoever hears them, or, the second time and where nobody does, at once.

    An exception at any point of any code can come out of a destructor or a lock, which print a traceback of their own.
    """

    def __init__(self) -> None:
        self._hear: Callable[[BaseException], None] | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        # Also SIGINT: a shell's background ignores it.
        for number in (signal.SIGTERM, signal.SIGINT):
            self._before[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextmanager
    def heard_by(self, hear: Callable[[BaseException], None]) -> Iterator[None]:
        """Meanwhile the next signal's exception is given to `hear`, which must bear to be called at any point."""
        self._hear = hear
        try:
            yield
        finally:
            self._hear = None

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        error = TerminatedError() if number == signal.SIGTERM else KeyboardInterrupt()
        hear, self._hear = self._hear, None
        if hear is None:
            raise error
        hear(error)
