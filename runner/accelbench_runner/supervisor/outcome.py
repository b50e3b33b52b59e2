"""Interpret how a launch ended: it succeeded, its variant failed, or it ended without a fault of the variant.

A crash is located by what faulthandler wrote to standard error.
"""

import re
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from accelbench import figures
from accelbench.api.reasons import FailureReason
from accelbench.api.result import Failure
from accelbench.catalogue import script
from accelbench.delivery.log import Unfinished
from accelbench.document import shorten
from accelbench.launch.facts import PROBES, Probe
from accelbench.machine import cgroup
from accelbench.validity import shared_device
from accelbench_runner.protocol import PROBE_FILE, Done, Failed, LaunchRequest
from accelbench_runner.supervisor.children import ChildExit
from accelbench_runner.supervisor.listener import LaunchListener, describe_probe

MAXIMUM_FAILURE_CHARACTERS = 3000
"""Maximum length of a failure's message with its trace. The launch also prints a longer one in full, to the log."""
MAXIMUM_TRACE_CHARACTERS = 1000
MAXIMUM_FRAMES = 3
MIB = 1024 * 1024
MORE_MEMORY = "raise the limit or make the case smaller"
NO_MEMORY = (b"bad_alloc", b"Cannot allocate memory", b"out of memory", b"pthread_create() failed")
"""Messages of compilers that abort because an allocation failed."""

# The lines that faulthandler writes for a thread: a heading, then a line for each call.
_STACK = re.compile(r"^(?:Current thread|Thread|Stack) .*\(most recent call first\):$", re.MULTILINE)
_FRAME = re.compile(r'^  File "(.*)", line (\d+) in (.*)$')


class MemoryEvents(NamedTuple):
    """Hold what the control group counts when memory is short. A count is 0 if the kernel does not report it."""

    limit: int | None
    """Memory limit in bytes; None: no limit."""
    kills: int
    """Number of processes that the kernel killed for lack of memory."""
    refaulted_bytes: int
    """Bytes of files that were evicted from memory and read again."""

    @classmethod
    def read(cls) -> "MemoryEvents":
        """Read the memory limit and the counters of this process's control group."""
        group = cgroup.find("memory")
        return cls(
            limit=cgroup.memory_limit(group),
            kills=cgroup.out_of_memory_kills(group) or 0,
            refaulted_bytes=cgroup.refaulted_bytes(group) or 0,
        )

    def since(self, before: "MemoryEvents") -> "MemoryEvents":
        """Return the counts between the reading `before` and this one."""
        return MemoryEvents(self.limit, self.kills - before.kills, self.refaulted_bytes - before.refaulted_bytes)

    def describe_thrashing(self) -> str | None:
        """Describe thrashing; return None if there was none.

        A process thrashes if it reads evicted files again, in total more bytes than the memory limit.
        """
        if self.limit is None or self.refaulted_bytes <= self.limit:
            return None
        return (
            "its files no longer fitted into memory with its data "
            f"({self.refaulted_bytes // MIB} MiB were read again, the limit is {self.limit // MIB} MiB)"
        )


@dataclass(frozen=True)
class Outcome:
    """Describe the outcome of a launch; by default, it measured everything."""

    failure: Failure | None = None
    """The variant's failure."""
    unfinished: Unfinished | None = None
    unchecked: Mapping[Probe, str] = field(default_factory=dict)
    """Why a probe has no result."""
    ended_by: Probe | None = None
    """The probe that ended the launch."""


def interpret(
    listener: LaunchListener,
    child_exit: ChildExit,
    request: LaunchRequest,
    memory_events: MemoryEvents,
    others_share: float = 0.0,
) -> Outcome:
    """Decide whether an ended launch succeeded, its variant failed, or it ended without a fault of the variant.

    `others_share` is the share of CPU time that other processes took during the launch, 0 to 1.
    """
    has_finished = isinstance(listener.final_message, Done)
    if not has_finished:
        if child_exit.killed_for == "interrupted":
            return Outcome(unfinished="interrupted")
        probe = running_probe(listener, Path(request.directory))
        # `did-not-exit`: the process closed its pipe and continued to run, which is not the fault of a probe.
        if probe is not None and child_exit.killed_for != "did-not-exit":
            return _outcome_ended_by_probe(probe, listener, child_exit, request)
        # If the kernel killed a process for lack of memory, the variant failed, even if time ran out too.
        is_case_over = child_exit.killed_for == "limit" and listener.allowance.nearest_limit == "case"
        if is_case_over and not memory_events.kills:
            return Outcome(unfinished="time-limit")
    failure = _failure(listener, child_exit, request, memory_events, others_share)  # None if the launch succeeded
    return Outcome(failure=failure)


def running_probe(listener: LaunchListener, directory: Path) -> Probe | None:
    """Return the probe of accelbench's own that was running when the launch ended; None if no probe was running."""
    if listener.probe:
        return listener.probe
    try:
        # While blocks are timed, a launch sends no messages, but writes the probe's name to a file.
        name = (directory / PROBE_FILE).read_text()
    except OSError:
        return None
    return next((probe for probe in PROBES if probe == name), None)  # after a probe, the file is empty


def _outcome_ended_by_probe(
    probe: Probe, listener: LaunchListener, child_exit: ChildExit, request: LaunchRequest
) -> Outcome:
    """Return the outcome of a launch whose process ended during `probe`: the variant has not failed.

    The launch counts as finished if everything was measured before the probe began.
    """
    nearest_limit = listener.allowance.nearest_limit
    unfinished: Unfinished = "probe"
    if child_exit.killed_for == "limit" and nearest_limit == "case":
        problem, unfinished = "was under way when the case's time limit was reached", "time-limit"
    elif child_exit.killed_for == "limit" and nearest_limit == "probe":
        problem = f"did not finish within {listener.allowance.probe_limit_seconds:g} s"
    elif child_exit.killed_for == "limit":
        problem = "did not finish"  # before the launch's own limit
    elif child_exit.status < 0:
        problem = f"crashed ({signal.Signals(-child_exit.status).name})"
    else:
        problem = f"ended the process with status {child_exit.status}"
    unchecked = {probe: f"{describe_probe(probe)} {problem} in round {request.round}"}
    lacks_blocks = request.purpose == "measure" and not listener.blocks
    is_complete = listener.measured and not lacks_blocks
    return Outcome(unfinished=None if is_complete else unfinished, unchecked=unchecked, ended_by=probe)


def _failure(  # noqa: PLR0911 - one return for each reason
    listener: LaunchListener,
    child_exit: ChildExit,
    request: LaunchRequest,
    memory_events: MemoryEvents,
    others_share: float,
) -> Failure | None:
    """Return the failure of a launch's variant, with its reason; None if the launch succeeded.

    `others_share` is the share of CPU time that other processes took during the launch, 0 to 1.
    """

    def failure(reason: FailureReason, message: str) -> Failure:
        """Return a failure with the launch's round, and with the phase in which the launch was."""
        shortened = shorten(message, MAXIMUM_FAILURE_CHARACTERS)
        return Failure(reason=reason, message=shortened, round=request.round, phase=listener.phase)

    final_message = listener.final_message
    if isinstance(final_message, Done):
        needs_blocks = request.purpose == "measure" and listener.facts.get("protocol") != "observe"
        if listener.blocks or not needs_blocks:
            return None
        return failure(FailureReason.INVALID_OUTPUT, "it reported success without timing a block")
    if memory_events.kills:
        return failure(FailureReason.OUT_OF_MEMORY, f"the kernel killed it for lack of memory: {MORE_MEMORY}")
    if isinstance(final_message, Failed):
        return failure(final_message.reason, _message_with_trace(final_message))
    if child_exit.killed_for == "limit":
        return failure(*_describe_timeout(listener, memory_events, others_share))
    if listener.protocol_error:
        return failure(FailureReason.INVALID_OUTPUT, listener.protocol_error)
    if child_exit.killed_for == "did-not-exit":
        return failure(FailureReason.INVALID_OUTPUT, "it closed its pipe without an answer and did not end")
    last_line = find_last_line(listener.stderr_tail)
    error = f": {last_line}" if last_line else ""
    if child_exit.status < 0:
        return failure(*_describe_crash(listener, child_exit, request, error))
    status = f" with status {child_exit.status}" if child_exit.status else ""
    hint = error or "; does it call os._exit()?"
    return failure(FailureReason.INVALID_OUTPUT, f"the process exited{status} before returning a result{hint}")


def _describe_crash(
    listener: LaunchListener, child_exit: ChildExit, request: LaunchRequest, error: str
) -> tuple[FailureReason, str]:
    """Return the reason and the message for a launch that a signal ended.

    The message names the place of the crash or, if the place is unknown, ends with `error`.
    """
    if request.memory_bytes and any(message in listener.stderr_tail for message in NO_MEMORY):
        limit_gib = request.memory_bytes / 1024**3
        message = f"compiling needs more than the {limit_gib:.3g} GiB that a compiler may hold here: {MORE_MEMORY}"
        return FailureReason.OUT_OF_MEMORY, message
    name = signal.Signals(-child_exit.status).name
    return FailureReason.KILLED, f"{name} ended it{crash_location(listener.stderr_tail) or error}"


def _describe_timeout(
    listener: LaunchListener, memory_events: MemoryEvents, others_share: float
) -> tuple[FailureReason, str]:
    """Return the reason and the message for a launch that reached its time limit."""
    limit = listener.allowance.launch_limit
    limit_seconds = listener.allowance.granted_seconds
    stage = listener.activity or listener.phase
    position = f"it was still in {stage}" if stage else "it had not begun"
    message = f"{position} after {limit_seconds:.3g} s, {limit.reason}"
    if limit_seconds > limit.seconds:
        message += f" (it is {limit.seconds:.3g} s without other load)"
    thrashing = memory_events.describe_thrashing()
    if thrashing:
        return FailureReason.OUT_OF_MEMORY, f"{message}: {thrashing}: {MORE_MEMORY}"
    if others_share > shared_device.NEIGHBOURS.biases:
        message += f", while others took {figures.percent(others_share)} of the processors"
    return FailureReason.TIMED_OUT, f"{message}{crash_location(listener.stderr_tail, prefix='; it was')}"


def _message_with_trace(failed: Failed) -> str:
    """Return the failure's message, followed by the trace of the exception, which begins in the user's code."""
    if not failed.trace or failed.reason == FailureReason.UNSUPPORTED:
        return failed.message
    trace = f" (at {shorten(failed.trace, MAXIMUM_TRACE_CHARACTERS)})"
    return f"{shorten(failed.message, MAXIMUM_FAILURE_CHARACTERS - len(trace))}{trace}"


def find_last_line(output: bytes) -> str:
    """Return the last line of `output` that is not blank; empty if there is none."""
    lines = output.decode(errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else ""


class Frame(NamedTuple):
    """Name one call of a stack."""

    file: str
    line: str
    function: str

    def __str__(self) -> str:
        """Format as `my_filter.py, line 12 in step`."""
        return f"{self.file.rpartition('/')[2]}, line {self.line} in {self.function}"


def crash_location(stderr: bytes, prefix: str = "") -> str:
    """Return where a process crashed, as `PREFIX at my_filter.py, line 12 in step, called from ...`.

    `stderr` is what faulthandler wrote; without a stack in it, the result is empty. If some of the calls are in the
    user's script, only these are named, because the user can change them.
    """
    frames = _parse_stack(stderr.decode(errors="replace"))
    if not frames:
        return ""
    script_file = str(script.origin())
    script_frames = [frame for frame in frames if frame.file == script_file]
    named_frames = (script_frames or frames)[:MAXIMUM_FRAMES]
    return f"{prefix} at {', called from '.join(map(str, named_frames))}"


def _parse_stack(stderr: str) -> Sequence[Frame]:
    """Return the calls of the thread that crashed, the innermost first, from faulthandler's output.

    Without a stack that is marked as the current thread's, the last stack counts.
    """
    headings = list(_STACK.finditer(stderr))
    if not headings:
        return ()
    current_headings = [heading for heading in headings if heading[0].startswith("Current")]
    heading = (current_headings or headings)[-1]
    frames = []
    lines_after_heading = stderr[heading.end() + 1 :].splitlines()
    for line in lines_after_heading:
        match = _FRAME.match(line)
        if match is None:
            break
        frames.append(Frame(*match.groups()))
    return frames
