"""Forward Ctrl-C and SIGTERM to the runner, which then ends its launches and delivers what it has measured.

A second signal kills the runner, as does a runner that needs longer than `GRACE_SECONDS`.
"""

import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

GRACE_SECONDS = 10
"""Launches end within 2 s; the rest is for judging and writing what was measured."""


class Signals:
    """Send SIGINT and SIGTERM to the running child's process group instead of ending this process."""

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        self._group: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        """Install the handlers; Python allows that in the main thread only, so that elsewhere nothing changes."""
        if threading.current_thread() is not threading.main_thread():
            return self
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._receive)
        self._before[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._kill)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Restore the previous handlers."""
        if self._before:
            signal.alarm(0)
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def child_started(self, group: int) -> None:
        """Direct signals to this process group, including one that was received before it started."""
        self._group = group
        if self.received is not None:
            self._send(self.received)

    def child_ended(self) -> None:
        """Stop sending signals: the process ID may be reused once the child has been waited for."""
        if self._before:
            signal.alarm(0)
        self._group = None

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        first = self.received is None
        self.received = self.received or signal.Signals(number)
        self._send(signal.Signals(number) if first else signal.SIGKILL)

    def _kill(self, _number: int, _frame: FrameType | None) -> None:
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
