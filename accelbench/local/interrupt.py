"""Ctrl-C and SIGTERM: the first is passed on to the runner, which ends its launches and delivers what it has.

A second one, or a runner that takes longer than `GRACE_SECONDS`, kills it.
"""

import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

GRACE_SECONDS = 10
"""Launches end within 2 s; the rest is for judging and writing what was measured."""


class Signals:
    """While entered, SIGINT and SIGTERM go to the group of the child that runs, instead of ending this process."""

    def __init__(self) -> None:
        """Nothing is received yet and no child runs."""
        self.received: signal.Signals | None = None
        self._group: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        """Take over; from another thread than the main one Python lets nobody, and signals do what they did."""
        if threading.current_thread() is not threading.main_thread():
            return self
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._receive)
        self._before[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._lose_patience)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give back."""
        if self._before:
            signal.alarm(0)
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def child_started(self, group: int) -> None:
        """From now on signals go to this process group, one that came just before included."""
        self._group = group
        if self.received is not None:
            self._send(self.received)

    def child_ended(self) -> None:
        """The child has been waited for: its number may belong to someone else now."""
        if self._before:
            signal.alarm(0)
        self._group = None

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        first = self.received is None
        self.received = self.received or signal.Signals(number)
        self._send(signal.Signals(number) if first else signal.SIGKILL)

    def _lose_patience(self, _number: int, _frame: FrameType | None) -> None:
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        if self._group is None:
            return
        try:
            os.killpg(self._group, number)
        except ProcessLookupError:
            return
        if number is not signal.SIGKILL:
            signal.alarm(GRACE_SECONDS)
