"""Run one child process at a time to its end, even if it crashes, hangs, floods, forks or ignores every signal.

The child leads a session of its own. Its pipes are always drained, so that it never blocks on the supervisor. A pidfd
reports its end, because a grandchild may hold the pipes open. No descendant survives it: this process adopts orphans
(PR_SET_CHILD_SUBREAPER), so it finds and kills even a grandchild that left the process group. If this process dies, the
kernel kills the child (PR_SET_PDEATHSIG), but not the child's children, except in a container, whose first process
takes all others with it.
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
DRAINED_BYTES = 4 * 1024 * 1024
"""Maximum bytes of each pipe that are read after the end; a pipe holds 64 KiB, or 1 MiB if the child enlarged it."""
DUMP_SECONDS = 1.0
"""Time between SIGABRT and SIGKILL at the time limit, for faulthandler to write where the child hangs."""
KILL_SECONDS = 5.0
"""Maximum time for processes to end after SIGKILL."""

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)

Channel = Literal["messages", "stdout", "stderr"]
Reason = Literal["limit", "dismissed", "interrupted"]


class UnkillableError(Exception):
    """Report a process that SIGKILL does not end: it hangs in the kernel, usually in a device's driver."""


class Interruption:
    """Remember SIGINT or SIGTERM, and kill the running child at once."""

    def __init__(self) -> None:
        self.signal: signal.Signals | None = None
        self.group: int | None = None

    def listen(self) -> None:
        """Install handlers of SIGINT and SIGTERM."""
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signal_number, self._handle)

    def _handle(self, signal_number: int, _frame: FrameType | None) -> None:
        """Remember the signal, and kill the running child."""
        self.signal = signal.Signals(signal_number)
        self.kill_group()

    def kill_group(self) -> None:
        """Kill the process group of the running child, if there is one."""
        if self.group is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.group, signal.SIGKILL)


class Listener(Protocol):
    """Receive what a child writes, and decide how long it may run."""

    def received(self, channel: Channel, data: bytes) -> None:
        """Handle `data` that the child wrote to `channel`."""
        ...

    def closed(self, channel: Channel) -> None:
        """Handle the end of `channel`."""
        ...

    def grace_seconds(self) -> float | None:
        """Return how long the child may still take to exit; None if only its limit applies."""
        ...

    def seconds_left(self, elapsed: float) -> float:
        """Return the seconds left of the child's limit, `elapsed` seconds after its start; called after every read."""
        ...


@dataclass(frozen=True)
class ChildExit:
    """Describe how a child ended."""

    status: int
    """Exit status, or minus the number of the signal."""
    killed_for: Reason | None
    """The supervisor's reason to kill it; None: it ended by itself, or something else killed it."""
    wall_seconds: float


def terminate_with(parent: int) -> None:
    """Have the kernel send SIGTERM to this process when its parent process, `parent`, is killed."""
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
) -> ChildExit:
    """Run `command` with the file `request` as standard input, until it and all its descendants have ended.

    `messages` is a pipe (reading end, writing end). The child inherits the writing end under the same number; both ends
    are closed on return. Raises UnkillableError, and OSError if the command cannot be started.
    """
    started = time.monotonic()
    pipes: dict[Channel, tuple[int, int]] = {"stdout": os.pipe(), "stderr": os.pipe()}
    if messages:
        pipes["messages"] = messages
    with contextlib.ExitStack() as stack, selectors.DefaultSelector() as selector:
        for channel, (read_end, _) in pipes.items():
            stack.callback(os.close, read_end)
            os.set_blocking(read_end, False)
            selector.register(read_end, selectors.EVENT_READ, channel)
        try:
            process = _start(command, request, environment, pipes)
        finally:
            for _, write_end in pipes.values():
                os.close(write_end)
        interruption.group = process.pid
        if interruption.signal is not None:  # a signal may have come while the child was being started
            interruption.kill_group()
        exit_descriptor = os.pidfd_open(process.pid)
        stack.callback(os.close, exit_descriptor)
        selector.register(exit_descriptor, selectors.EVENT_READ, None)
        try:
            killed_for = _wait(process.pid, selector, listener, interruption, started=started)
        finally:
            interruption.kill_group()
            kill_descendants(except_for=process.pid)
            interruption.group = None
            status = _reap(process)
        _drain(selector, listener)
        return ChildExit(status=status, killed_for=killed_for, wall_seconds=time.monotonic() - started)


def kill_descendants(*, except_for: int | None = None) -> None:
    """Kill and reap all descendants of this process, and those that appear meanwhile; raise UnkillableError."""
    deadline = time.monotonic() + KILL_SECONDS
    while alive := [process for process in descendants(os.getpid()) if process != except_for]:
        if time.monotonic() > deadline:
            raise UnkillableError(f"processes {alive} do not end by SIGKILL: a device's driver may hang")
        for process in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process, os.WNOHANG)
        time.sleep(0.002)


def _start(
    command: Sequence[str], request: Path, environment: Mapping[str, str], pipes: Mapping[Channel, tuple[int, int]]
) -> subprocess.Popen[bytes]:
    """Start the child in a session of its own, so that the kernel kills it when this process ends."""
    parent = os.getpid()

    def die_with_parent() -> None:
        """Have the kernel kill the child when its parent dies; exit if the parent died before."""
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


def _wait(
    pid: int, selector: selectors.BaseSelector, listener: Listener, interruption: Interruption, *, started: float
) -> Reason | None:
    """Read the pipes until the process ends or has to be killed; return the reason to kill it.

    At its limit, the process gets SIGABRT, and `DUMP_SECONDS` to write its stacks.
    """
    dismissed_at = kill_at = math.inf
    while True:
        now = time.monotonic()
        if (grace := listener.grace_seconds()) is not None:
            dismissed_at = min(dismissed_at, now + grace)
        limit_at = min(dismissed_at, now + listener.seconds_left(now - started)) if kill_at == math.inf else kill_at
        if now >= limit_at:
            if now >= kill_at:
                return "limit"
            if dismissed_at < math.inf:
                return "dismissed"
            kill_at = now + DUMP_SECONDS
            os.kill(pid, signal.SIGABRT)
            continue
        ready = selector.select(limit_at - now)
        for key, _ in ready:
            if key.data is not None:
                _read(selector, key, listener)
        if interruption.signal is not None:
            return "interrupted"
        if any(key.data is None for key, _ in ready):
            return "limit" if kill_at < math.inf else None


def _read(selector: selectors.BaseSelector, key: selectors.SelectorKey, listener: Listener) -> int:
    """Pass one chunk of a pipe to the listener and return its size; unregister the pipe at its end."""
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
    """Read the rest of every pipe after the child and its descendants have ended."""
    for key in list(selector.get_map().values()):
        if key.data is not None:
            remaining = DRAINED_BYTES
            while remaining > 0 and (count := _read(selector, key, listener)):
                remaining -= count


def _reap(process: subprocess.Popen[bytes]) -> int:
    """Wait for the killed process and return its status; raise UnkillableError."""
    try:
        return process.wait(KILL_SECONDS)
    except subprocess.TimeoutExpired:
        raise UnkillableError(
            f"process {process.pid} does not end by SIGKILL: a device's driver may hang; look at the node's kernel log"
        ) from None


def descendants(root: int) -> list[int]:
    """Return every descendant of the process `root`, zombies included."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                children.setdefault(int(stat_fields(int(entry.name))[1]), []).append(int(entry.name))
    found_processes: list[int] = []
    unvisited = [root]
    while unvisited:
        direct = children.get(unvisited.pop(), [])
        found_processes += direct
        unvisited += direct
    return found_processes


def stat_fields(process: int) -> list[str]:
    """Return the fields of /proc/PID/stat after the process's name: state, parent, and so on.

    The name stands in parentheses and may hold anything. Raises OSError if the process has ended.
    """
    return Path(f"/proc/{process}/stat").read_text(errors="replace").rpartition(")")[2].split()
