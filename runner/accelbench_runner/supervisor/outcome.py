"""Interpret how a launch ended: it measured, its variant failed, or accelbench stopped it without blaming the variant.

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
from accelbench.launch.facts import PROBES, Probe
from accelbench.machine import cgroup
from accelbench.validity import shared_device
from accelbench_runner.protocol import PROBE_FILE, Done, Failed, LaunchRequest
from accelbench_runner.supervisor.children import ChildExit
from accelbench_runner.supervisor.listener import LaunchListener, describe

MAXIMUM_FAILURE_CHARACTERS = 1000
MAXIMUM_FRAMES = 3
MIB = 1024 * 1024
MORE_MEMORY = "raise the limit or make the case smaller"
NO_MEMORY = (b"bad_alloc", b"Cannot allocate memory", b"out of memory", b"pthread_create() failed")
"""Messages of compilers that abort because an allocation failed."""

_STACK = re.compile(r"^(?:Current thread|Thread|Stack) .*\(most recent call first\):$", re.MULTILINE)
_FRAME = re.compile(r'^  File "(.*)", line (\d+) in (.*)$')


class MemoryEvents(NamedTuple):
    """Hold what the control group counts when memory is short; counts are 0 if the kernel does not report them."""

    limit: int | None
    kills: int
    refaulted_bytes: int

    @classmethod
    def read(cls) -> "MemoryEvents":
        """Read the counters of this process's control group."""
        group = cgroup.find("memory")
        kills, refaulted = cgroup.out_of_memory_kills(group), cgroup.refaulted_bytes(group)
        return cls(limit=cgroup.memory_limit(group), kills=kills or 0, refaulted_bytes=refaulted or 0)

    def since(self, before: "MemoryEvents") -> "MemoryEvents":
        """Return what was counted after `before`."""
        return MemoryEvents(self.limit, self.kills - before.kills, self.refaulted_bytes - before.refaulted_bytes)

    def thrashing(self) -> str | None:
        """Describe thrashing: more file pages were evicted and read again than the group may hold; None otherwise."""
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
    """Why a probe gave no answer."""
    ended_by: Probe | None = None
    """The probe that ended the launch."""


def interpret(
    listener: LaunchListener,
    child_exit: ChildExit,
    request: LaunchRequest,
    memory: MemoryEvents,
    others_share: float = 0.0,
) -> Outcome:
    """Return the outcome of a launch that has ended.

    `memory` was counted while the launch ran; `others_share` is the share of processor time that others took.
    """
    if not isinstance(listener.final_message, Done):
        if child_exit.killed_for == "interrupted":
            return Outcome(unfinished="interrupted")
        if child_exit.killed_for != "dismissed" and (probe := running_probe(listener, Path(request.directory))):
            return _ended_by_probe(probe, listener, child_exit, request)
        if child_exit.killed_for == "limit" and listener.allowance.nearest_limit == "case" and not memory.kills:
            return Outcome(unfinished="time-limit")
    return Outcome(failure=_failure(listener, child_exit, request, memory, others_share))


def running_probe(listener: LaunchListener, directory: Path) -> Probe | None:
    """Return the probe that ran when the launch ended; between blocks a launch names it in a file."""
    if listener.probe:
        return listener.probe
    try:
        name = (directory / PROBE_FILE).read_text()
    except OSError:
        return None
    return next((probe for probe in PROBES if probe == name), None)


def _ended_by_probe(probe: Probe, listener: LaunchListener, child_exit: ChildExit, request: LaunchRequest) -> Outcome:
    """Keep a measurement that was complete; otherwise the launch is unfinished, and the variant has not failed."""
    nearest = listener.allowance.nearest_limit
    unfinished: Unfinished = "probe"
    if child_exit.killed_for == "limit" and nearest == "case":
        problem, unfinished = "was under way when the case's time limit was reached", "time-limit"
    elif child_exit.killed_for == "limit" and nearest == "probe":
        problem = f"did not finish within {listener.allowance.probe_limit_seconds:g} s"
    elif child_exit.killed_for == "limit":
        problem = "did not finish"
    elif child_exit.status < 0:
        problem = f"crashed ({signal.Signals(-child_exit.status).name})"
    else:
        problem = f"ended the process with status {child_exit.status}"
    unchecked = {probe: f"{describe(probe)} {problem} in round {request.round}"}
    is_complete = listener.measured and (listener.blocks or request.purpose != "measure")
    return Outcome(unfinished=None if is_complete else unfinished, unchecked=unchecked, ended_by=probe)


def _failure(  # noqa: PLR0911 - one return for each reason
    listener: LaunchListener,
    child_exit: ChildExit,
    request: LaunchRequest,
    memory: MemoryEvents,
    others_share: float,
) -> Failure | None:
    """Return why the variant failed; None if it did not."""

    def failure(reason: FailureReason, message: str) -> Failure:
        shortened = message[:MAXIMUM_FAILURE_CHARACTERS]
        return Failure(reason=reason, message=shortened, round=request.round, phase=listener.phase)

    final_message = listener.final_message
    if isinstance(final_message, Done):
        if request.purpose != "measure" or listener.blocks or listener.facts.get("protocol") == "observe":
            return None
        return failure(FailureReason.INVALID_OUTPUT, "it reported success without timing a block")
    if memory.kills:
        return failure(FailureReason.OUT_OF_MEMORY, f"the kernel killed it for lack of memory: {MORE_MEMORY}")
    if isinstance(final_message, Failed):
        return failure(final_message.reason, _message_with_trace(final_message))
    if child_exit.killed_for == "limit":
        return failure(*_describe_timeout(listener, memory, others_share))
    if listener.protocol_error:
        return failure(FailureReason.INVALID_OUTPUT, listener.protocol_error)
    if child_exit.killed_for == "dismissed":
        return failure(FailureReason.INVALID_OUTPUT, "it closed its pipe without an answer and did not end")
    last_line = f": {line}" if (line := _last_line(listener.stderr_tail)) else ""
    if child_exit.status < 0:
        return failure(*_describe_crash(listener, child_exit, request, last_line))
    status = f" with status {child_exit.status}" if child_exit.status else ""
    hint = last_line or "; does it call os._exit()?"
    return failure(FailureReason.INVALID_OUTPUT, f"the process exited{status} before returning a result{hint}")


def _describe_crash(
    listener: LaunchListener, child_exit: ChildExit, request: LaunchRequest, last_line: str
) -> tuple[FailureReason, str]:
    """Name the signal and the place of a crash; a compiler that aborts on a failed allocation ran out of memory."""
    if request.memory_bytes and any(words in listener.stderr_tail for words in NO_MEMORY):
        limit_gib = request.memory_bytes / 1024**3
        message = f"compiling needs more than the {limit_gib:.3g} GiB that a compiler may hold here: {MORE_MEMORY}"
        return FailureReason.OUT_OF_MEMORY, message
    name = signal.Signals(-child_exit.status).name
    return FailureReason.KILLED, f"{name} ended it{crash_location(listener.stderr_tail) or last_line}"


def _describe_timeout(listener: LaunchListener, memory: MemoryEvents, others_share: float) -> tuple[FailureReason, str]:
    """Describe what the launch was doing at its limit, and where the limit comes from."""
    limit, limit_seconds = listener.allowance.launch_limit, listener.allowance.granted_seconds
    stage = listener.aside or listener.phase
    position = f"it was still in {stage}" if stage else "it had not begun"
    message = f"{position} after {limit_seconds:.3g} s, {limit.reason}"
    if limit_seconds > limit.seconds:
        message += f" (it is {limit.seconds:.3g} s without other load)"
    if thrashing := memory.thrashing():
        return FailureReason.OUT_OF_MEMORY, f"{message}: {thrashing}: {MORE_MEMORY}"
    if others_share > shared_device.NEIGHBOURS.biases:
        message += f", while others took {figures.percent(others_share)} of the processors"
    return FailureReason.TIMED_OUT, f"{message}{crash_location(listener.stderr_tail, '; it was')}"


def _message_with_trace(failed: Failed) -> str:
    """Return the message and the last whole lines of the trace, where the user's own line is."""
    half = MAXIMUM_FAILURE_CHARACTERS // 2
    if not failed.trace or failed.reason == FailureReason.UNSUPPORTED:
        return failed.message
    trace = failed.trace.rstrip()
    end = trace if len(trace) < half else trace[-half + 1 :].partition("\n")[2]
    return f"{failed.message[:half]}\n{end}"


def _last_line(output: bytes) -> str:
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
    """Return `PREFIX at my_filter.py, line 12 in step, called from ...`; empty without faulthandler's output.

    The calls are the innermost of the thread that crashed. If any of them is in the user's script, only those are
    named, because the user can change them.
    """
    frames = _current_thread(stderr.decode(errors="replace"))
    file = str(script.origin())
    script_frames = [frame for frame in frames if frame.file == file]
    return (
        f"{prefix} at " + ", called from ".join(map(str, (script_frames or frames)[:MAXIMUM_FRAMES])) if frames else ""
    )


def _current_thread(stderr: str) -> Sequence[Frame]:
    """Parse the stack of the current thread, or else the last stack."""
    stacks = list(_STACK.finditer(stderr))
    if not stacks:
        return ()
    stack = next((match for match in reversed(stacks) if match[0].startswith("Current")), stacks[-1])
    frames = []
    for line in stderr[stack.end() + 1 :].splitlines():
        if not (frame := _FRAME.match(line)):
            break
        frames.append(Frame(*frame.groups()))
    return frames
