"""Run one child process at a time to its end, even if it crashes, hangs, forks, ignores signals or prints endlessly.

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
Reason = Literal["limit", "did-not-exit", "interrupted"]


class UnkillableError(Exception):
    """Report a process that SIGKILL does not end: it hangs in the kernel, usually in a device's driver."""


class Interruption:
    """Remember SIGINT or SIGTERM, and kill the running child at once."""

    def __init__(self) -> None:
        """Begin without a signal and without a running child."""
        self.signal: signal.Signals | None = None
        """The signal that came; the last one if several came."""
        self.group: int | None = None
        """Process group of the running child."""

    def listen(self) -> None:
        """Handle SIGINT and SIGTERM from now on: remember the signal, and kill the running child."""
        for signal_number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signal_number, self._handle)

    def _handle(self, signal_number: int, _frame: FrameType | None) -> None:
        """Remember the signal that came, and kill the running child's process group."""
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
        """Handle the next `data` that the child wrote to `channel`; it may end within a line."""
        ...

    def closed(self, channel: Channel) -> None:
        """Handle the end of `channel`."""
        ...

    def grace_seconds(self) -> float | None:
        """Return how many seconds the child may still take to exit by itself; None as long as it need not exit.

        The limit of `seconds_left` always applies.
        """
        ...

    def seconds_left(self, elapsed: float) -> float:
        """Return the seconds until the child must be stopped, `elapsed` seconds after it was started."""
        ...


@dataclass(frozen=True)
class ChildExit:
    """Describe how a child ended."""

    status: int
    """Exit status, or minus the number of the signal."""
    killed_for: Reason | None
    """The supervisor's reason to kill it; None: it ended by itself, or something else killed it."""
    wall_seconds: float


def terminate_with_parent(parent: int) -> None:
    """Have the kernel send SIGTERM to this process when the process `parent` ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:  # the parent ended before the call above
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
    """Run `command` until the process ends or must be stopped; then kill and reap all its descendants.

    `messages` is a pipe (reading end, writing end) for the child's messages; both ends are closed on return. Raises
    OSError if the command cannot be started, and UnkillableError if SIGKILL does not end a process.
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
            # Only the child and its descendants keep the writing ends, so a pipe ends when the last of them has ended.
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
    """Kill and reap all descendants of this process except the process `except_for`.

    Raises UnkillableError if some of them have not ended after `KILL_SECONDS`.
    """
    deadline = time.monotonic() + KILL_SECONDS
    while True:
        alive = [process for process in descendants(os.getpid()) if process != except_for]
        if not alive:
            return
        if time.monotonic() > deadline:
            raise UnkillableError(f"processes {alive} do not end by SIGKILL: a device's driver may hang")
        for process in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(process, os.WNOHANG)
        time.sleep(0.002)  # the kernel needs some time to end them


def _start(
    command: Sequence[str], request: Path, environment: Mapping[str, str], pipes: Mapping[Channel, tuple[int, int]]
) -> subprocess.Popen[bytes]:
    """Start the child process in a new session; the kernel kills the child when this process ends."""
    parent = os.getpid()

    def die_with_parent() -> None:
        """Have the kernel kill this process, the new child, when its parent ends."""
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # the parent ended before the call above
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
    """Read the pipes until the process ends or must be killed; return the reason to kill it, or None if it has ended.

    `started` is the monotonic time at which the process was started.
    """
    must_exit_at = math.inf  # finite once the listener expects the process to exit by itself
    while True:
        now = time.monotonic()
        grace_seconds = listener.grace_seconds()
        if grace_seconds is not None:
            must_exit_at = min(must_exit_at, now + grace_seconds)
        wake_at = min(must_exit_at, now + listener.seconds_left(now - started))
        if now >= wake_at:
            if must_exit_at < math.inf:  # this is the reason even if the time limit came first: nothing else was left
                return "did-not-exit"
            return _abort(pid, selector, listener, interruption)
        has_ended = _read_ready_pipes(selector, wake_at - now, listener)
        if interruption.signal is not None:
            return "interrupted"
        if has_ended:
            return None


def _abort(
    pid: int, selector: selectors.BaseSelector, listener: Listener, interruption: Interruption
) -> Literal["limit", "interrupted"]:
    """Send SIGABRT to a process at its time limit, and read the stacks of threads that faulthandler then writes.

    Reading takes at most `DUMP_SECONDS`. Returns the reason to kill the process.
    """
    os.kill(pid, signal.SIGABRT)
    kill_at = time.monotonic() + DUMP_SECONDS
    has_ended = False
    while not has_ended and time.monotonic() < kill_at:
        has_ended = _read_ready_pipes(selector, kill_at - time.monotonic(), listener)
        if interruption.signal is not None:
            return "interrupted"
    return "limit"


def _read_ready_pipes(selector: selectors.BaseSelector, timeout_seconds: float, listener: Listener) -> bool:
    """Wait until a pipe has data or the process ends; read a chunk of each pipe that is ready.

    Return True if the process has ended.
    """
    has_ended = False
    for key, _ in selector.select(timeout_seconds):
        if key.data is None:  # the pidfd is the only key without a channel
            has_ended = True
        else:
            _read(selector, key, listener)
    return has_ended


def _read(selector: selectors.BaseSelector, key: selectors.SelectorKey, listener: Listener) -> int:
    """Pass one chunk of a pipe to the listener, and return the chunk's size; 0 if the pipe is empty or at its end."""
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
    """Read what an ended child has left in its pipes, at most `DRAINED_BYTES` of each."""
    for key in list(selector.get_map().values()):
        if key.data is not None:  # the pidfd is the only key without a channel
            remaining_bytes = DRAINED_BYTES
            while remaining_bytes > 0:
                read_bytes = _read(selector, key, listener)
                if read_bytes == 0:
                    break
                remaining_bytes -= read_bytes


def _reap(process: subprocess.Popen[bytes]) -> int:
    """Wait for a process that was killed, and return its exit status; raise UnkillableError if it does not end."""
    try:
        return process.wait(KILL_SECONDS)
    except subprocess.TimeoutExpired:
        raise UnkillableError(
            f"process {process.pid} does not end by SIGKILL: a device's driver may hang; look at the node's kernel log"
        ) from None


def descendants(root: int) -> list[int]:
    """Return the ids of all descendants of the process `root`, zombies included."""
    children_by_parent: dict[int, list[int]] = {}
    processes = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    for process in processes:
        with contextlib.suppress(OSError):  # the process has ended meanwhile
            _state, parent, *_others = stat_fields(process)
            children_by_parent.setdefault(int(parent), []).append(process)
    found_processes: list[int] = []
    unvisited = [root]
    while unvisited:
        children = children_by_parent.get(unvisited.pop(), [])
        found_processes += children
        unvisited += children
    return found_processes


def stat_fields(process: int) -> list[str]:
    """Return the fields of /proc/PID/stat that follow the process's name: its state, its parent, and so on.

    Raises OSError if the process has ended.
    """
    text = Path(f"/proc/{process}/stat").read_text(errors="replace")
    # The name before the fields is in parentheses, and may contain spaces and parentheses itself.
    _, _, fields = text.rpartition(")")
    return fields.split()
