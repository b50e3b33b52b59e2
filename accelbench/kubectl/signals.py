"""Handle Ctrl-C and SIGTERM while a command waits, instead of in the middle of printing a line."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self


class TerminatedError(Exception):
    """Report that the process has received SIGTERM."""


class Signals:
    """Turn SIGINT and SIGTERM into exceptions within a `with` block.

    The handler of `handled_by` receives the exception of the first signal. Without a handler, and from the second
    signal on, the exception is raised at once, at any point of the program; within a destructor or a lock, this leaves
    a traceback.
    """

    def __init__(self) -> None:
        self._handler: Callable[[BaseException], None] | None = None
        self._previous_handlers: dict[int, Any] = {}

    def __enter__(self) -> Self:
        """Handle SIGINT and SIGTERM, and remember the previous handlers."""
        # Python handles SIGINT itself, but not in a background job of a shell, where SIGINT is ignored at the start.
        for number in (signal.SIGTERM, signal.SIGINT):
            self._previous_handlers[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        """Restore the previous handlers."""
        for number, handler in self._previous_handlers.items():
            signal.signal(number, handler)

    @contextmanager
    def handled_by(self, handler: Callable[[BaseException], None]) -> Iterator[None]:
        """Within a `with` block, call `handler` with the exception of the next signal, instead of raising it.

        The call can interrupt the main thread between any two instructions.
        """
        self._handler = handler
        try:
            yield
        finally:
            self._handler = None

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        """Pass the exception of the first signal to the handler, if there is one; raise later exceptions."""
        error = TerminatedError() if number == signal.SIGTERM else KeyboardInterrupt()
        handler = self._handler
        self._handler = None  # the next signal is raised
        if handler is None:
            raise error
        handler(error)
