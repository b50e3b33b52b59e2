"""Handle Ctrl-C and SIGTERM where a command waits, not in the middle of a line that it prints."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self


class TerminatedError(Exception):
    """Report SIGTERM."""


class Signals:
    """Turn SIGINT and SIGTERM into exceptions while entered.

    A handler set by `passed_to` receives the first signal. Without a handler, and from the second signal on, the
    exception is raised at once. At an arbitrary point it may come out of a destructor or a lock, with a traceback.
    """

    def __init__(self) -> None:
        self._handler: Callable[[BaseException], None] | None = None
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Self:
        # SIGINT too: a shell starts its background jobs with SIGINT ignored.
        for number in (signal.SIGTERM, signal.SIGINT):
            self._previous[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    @contextmanager
    def passed_to(self, handler: Callable[[BaseException], None]) -> Iterator[None]:
        """Call `handler` with the exception of the next signal; it is called between any two instructions."""
        self._handler = handler
        try:
            yield
        finally:
            self._handler = None

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        """Pass the exception of a signal to the handler, or raise it if there is none."""
        error = TerminatedError() if number == signal.SIGTERM else KeyboardInterrupt()
        handler, self._handler = self._handler, None
        if handler is None:
            raise error
        handler(error)
