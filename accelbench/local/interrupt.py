"""Forward Ctrl-C and SIGTERM to the runner, which then ends its launches and delivers what it has measured.

The runner is killed if a second signal arrives, or if it needs longer than `GRACE_SECONDS`.
"""

import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

GRACE_SECONDS = 10
"""Maximum time from a signal to the end of the runner. Launches end within 2 s; then results are judged and written."""


class Signals:
    """Send SIGINT and SIGTERM to the running child's process group instead of ending this process."""

    def __init__(self) -> None:
        self.received: signal.Signals | None = None
        """The first signal that arrived."""
        self._process_group: int | None = None
        """The child's process group while the child runs."""
        self._previous_handlers: dict[int, Any] = {}

    def __enter__(self) -> Self:
        """Handle SIGINT, SIGTERM and the alarm that kills the child; do nothing outside the main thread."""
        # Python allows signal handlers only in the main thread.
        if threading.current_thread() is not threading.main_thread():
            return self
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            self._previous_handlers[signal_number] = signal.signal(signal_number, self._receive)
        self._previous_handlers[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._kill)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Cancel the alarm and restore the previous handlers."""
        self._cancel_alarm()
        for signal_number, handler in self._previous_handlers.items():
            signal.signal(signal_number, handler)

    def child_started(self, process_group: int) -> None:
        """Forward signals to the child's process group from now on; forward at once a signal that arrived before."""
        self._process_group = process_group
        if self.received is not None:
            self._send(self.received)

    def child_ended(self) -> None:
        """Stop forwarding signals, because another process can get the process ID of the child that ended."""
        self._cancel_alarm()
        self._process_group = None

    def _cancel_alarm(self) -> None:
        """Cancel the alarm that kills the child, if the handlers are installed."""
        if self._previous_handlers:
            signal.alarm(0)

    def _receive(self, signal_number: int, _frame: FrameType | None) -> None:
        """Send the first signal to the child; kill the child at the second."""
        if self.received is None:
            self.received = signal.Signals(signal_number)
            self._send(self.received)
        else:
            self._send(signal.SIGKILL)

    def _kill(self, _signal_number: int, _frame: FrameType | None) -> None:
        """Kill the child when the alarm goes off."""
        self._send(signal.SIGKILL)

    def _send(self, signal_to_send: signal.Signals) -> None:
        """Send a signal to the child's process group, if a child runs; kill the child if it does not end in time."""
        if self._process_group is None:
            return
        try:
            os.killpg(self._process_group, signal_to_send)
        except ProcessLookupError:  # the child has ended
            return
        if signal_to_send is not signal.SIGKILL:
            signal.alarm(GRACE_SECONDS)  # when the alarm goes off, `_kill` kills the child
