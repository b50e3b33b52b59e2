"""One child process at a time, run to its end whatever it does: crash, hang, flood, fork, or ignore every signal.

The child leads a session of its own. Its pipes are always drained, so that it never blocks on us; its end is learnt
from the process itself and not from its pipes, which a grandchild may hold open. When it is over, everything that
descends from it is over: this process adopts orphans (PR_SET_CHILD_SUBREAPER), so that even a grandchild that left the
process group is found and killed. If this process dies, the kernel kills the child (PR_SET_PDEATHSIG); what the
child started is then left to its own devices, except in a container, where the first process takes all others with it.
"""

import contextlib
import ctypes
import math
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Literal, Protocol

CHUNK_BYTES = 64 * 1024
LEFT_IN_PIPES_BYTES = 4 * 1024 * 1024
"""Read at most after the end; a pipe holds 64 KiB, or 1 MiB where someone enlarged it."""
DUMP_SECONDS = 1.0
"""After SIGABRT at its time limit, for the child to write where it hangs (PYTHONFAULTHANDLER)."""
KILL_SECONDS = 5.0

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)

Channel = Literal["messages", "stdout", "stderr"]


class UnkillableError(Exception):
    """A process that SIGKILL does not end: it hangs in the kernel, mostly in a device's driver."""


class Interruption:
    """SIGINT or SIGTERM: noted, and the child that runs is killed at once, even if we are blocked elsewhere."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        self.group: int | None = None

    def listen(self) -> None:
        """Handle SIGINT and SIGTERM from now on."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._handle)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        self.signal = signal.Signals(number)
        self.end_group()

    def end_group(self) -> None:
        """Kill the process group of the child that runs, if any."""
        if self.group is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.group, signal.SIGKILL)


class Listener(Protocol):
    """Who hears what a child writes, and may decide that it has to end."""

    def received(self, channel: Channel, data: bytes) -> None:
        """`data` came over `channel`."""
        ...

    def closed(self, channel: Channel) -> None:
        """Nothing more will come over `channel`."""
        ...

    def patience(self) -> float | None:
        """Seconds that the child may still take to end by itself; None: what is left of its limit."""
        ...

    def left(self, elapsed: float) -> float:
        """Seconds that are left of its limit, `elapsed` after it was started; asked whenever it says something."""
        ...


@dataclass(frozen=True)
class Ending:
    """How a child ended."""

    status: int
    """Its exit status, or minus the number of the signal that ended it."""
    by_us: Literal["limit", "dismissed", "interrupted"] | None
    """Why we ended it; None: it ended by itself, or something else ended it."""
    wall_seconds: float


def end_with(parent: int) -> None:
    """Have the kernel send SIGTERM to this process when `parent`, which started it, is killed."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def run_child(
    command: Sequence[str],
    *,
    request: Path,
    environment: Mapping[str, str],
    listener: Listener,
    interruption: Interruption,
    messages: tuple[int, int] | None = None,
) -> Ending:
    """Run `command` with the file `request` as standard input, until it and all its descendants have ended.

    `messages` is a pipe, both ends of which are closed here; the child inherits the writing end under its number.
    Raises UnkillableError, and OSError when the command cannot be started.
    """
    started = time.monotonic()
    pipes: dict[Channel, tuple[int, int]] = {"stdout": os.pipe(), "stderr": os.pipe()}
    if messages:
        pipes["messages"] = messages
    with contextlib.ExitStack() as stack, selectors.DefaultSelector() as selector:
        for channel, (reading, _) in pipes.items():
            stack.callback(os.close, reading)
            os.set_blocking(reading, False)
            selector.register(reading, selectors.EVENT_READ, channel)
        try:
            process = _start(command, request, environment, pipes)
        finally:
            for _, writing in pipes.values():
                os.close(writing)
        interruption.group = process.pid
        if interruption.signal is not None:  # it came while the child was being started
            interruption.end_group()
        exited = os.pidfd_open(process.pid)
        stack.callback(os.close, exited)
        selector.register(exited, selectors.EVENT_READ, None)
        try:
            by_us = _attend(process.pid, selector, listener, interruption, started=started)
        finally:
            interruption.end_group()
            end_descendants(except_for=process.pid)
            interruption.group = None
            status = _reap(process)
        _drain(selector, listener)
        return Ending(status=status, by_us=by_us, wall_seconds=time.monotonic() - started)


def end_descendants(*, except_for: int | None = None) -> None:
    """Kill everything that descends from this process, again and again until nothing is left, and reap it."""
    deadline = time.monotonic() + KILL_SECONDS
    while left := [process for process in descendants(os.getpid()) if process != except_for]:
        if time.monotonic() > deadline:
            raise UnkillableError(f"processes {left} do not end by SIGKILL: a device's driver may hang")
        for process in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process, os.WNOHANG)
        time.sleep(0.002)


def _start(
    command: Sequence[str], request: Path, environment: Mapping[str, str], pipes: Mapping[Channel, tuple[int, int]]
) -> subprocess.Popen[bytes]:
    parent = os.getpid()

    def die_with_parent() -> None:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)

    with request.open("rb") as stdin:
        return subprocess.Popen(
            command,
            stdin=stdin,
            stdout=pipes["stdout"][1],
            stderr=pipes["stderr"][1],
            env=environment,
            pass_fds=[pipes["messages"][1]] if "messages" in pipes else [],
            start_new_session=True,
            preexec_fn=die_with_parent,  # noqa: PLW1509 - this process has one thread
        )


def _attend(
    pid: int, selector: selectors.BaseSelector, listener: Listener, interruption: Interruption, *, started: float
) -> Literal["limit", "dismissed", "interrupted"] | None:
    """Listen until the process has ended, or has to be; returns why it has to be."""
    dismissed = dumping = math.inf
    while True:
        now = time.monotonic()
        if (patience := listener.patience()) is not None:
            dismissed = min(dismissed, now + patience)
        over = min(dismissed, now + listener.left(now - started)) if dumping == math.inf else dumping
        if now >= over:
            if now >= dumping:
                return "limit"
            if dismissed < math.inf:
                return "dismissed"
            dumping = now + DUMP_SECONDS
            os.kill(pid, signal.SIGABRT)
            continue
        ready = selector.select(over - now)
        for key, _ in ready:
            if key.data is not None:
                _read(selector, key, listener)
        if interruption.signal is not None:
            return "interrupted"
        if any(key.data is None for key, _ in ready):
            return "limit" if dumping < math.inf else None


def _read(selector: selectors.BaseSelector, key: selectors.SelectorKey, listener: Listener) -> int:
    """Hand over what one pipe holds, at most a chunk; unregister it at its end; returns the number of bytes."""
    try:
        data = os.read(key.fd, CHUNK_BYTES)
    except BlockingIOError:
        return 0
    if data:
        listener.received(key.data, data)
    else:
        selector.unregister(key.fileobj)
        listener.closed(key.data)
    return len(data)


def _drain(selector: selectors.BaseSelector, listener: Listener) -> None:
    """Hand over what the pipes still hold once everyone who could write to them has ended."""
    for key in list(selector.get_map().values()):
        if key.data is not None:
            left = LEFT_IN_PIPES_BYTES
            while left > 0 and (count := _read(selector, key, listener)):
                left -= count


def _reap(process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait(KILL_SECONDS)
    except subprocess.TimeoutExpired:
        raise UnkillableError(
            f"process {process.pid} does not end by SIGKILL: a device's driver may hang; look at the node's kernel log"
        ) from None


def descendants(root: int) -> list[int]:
    """Every process below `root`, by /proc; those that have ended and only wait to be reaped included."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                children.setdefault(int(stat_fields(int(entry.name))[1]), []).append(int(entry.name))
    found: list[int] = []
    unvisited = [root]
    while unvisited:
        below = children.get(unvisited.pop(), [])
        found += below
        unvisited += below
    return found


def stat_fields(process: int) -> list[str]:
    """What /proc/PID/stat says after the name, which is in parentheses and may hold anything: state, parent, ...

    Raises OSError where the process is gone.
    """
    return Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2].split()
