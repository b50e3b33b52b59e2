"""What the end of a launch means: that it measured, that the variant failed and why, or that nobody is to blame."""

import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from accelbench import figures
from accelbench.api.reasons import FailureReason
from accelbench.api.result import Failure
from accelbench.delivery.log import Unfinished
from accelbench.launch.facts import PROBES, Probe
from accelbench.machine import cgroup
from accelbench.validity import shared_device
from accelbench_runner.protocol import UNDER_WAY, Done, Failed, LaunchRequest
from accelbench_runner.supervisor.children import Ending
from accelbench_runner.supervisor.crash import where
from accelbench_runner.supervisor.listening import LaunchListener, own

MAXIMUM_FAILURE_CHARACTERS = 1000
MIB = 1024 * 1024
MORE_MEMORY = "raise the limit or make the case smaller"


class MemoryTold(NamedTuple):
    """What our control group tells about lack of memory."""

    limit: int | None
    kills: int
    refaulted_bytes: int

    @classmethod
    def read(cls) -> "MemoryTold":
        """As of now; counts that are not told are 0."""
        group = cgroup.find("memory")
        kills, refaulted = cgroup.out_of_memory_kills(group), cgroup.refaulted_bytes(group)
        return cls(limit=cgroup.memory_limit(group), kills=kills or 0, refaulted_bytes=refaulted or 0)

    def since(self, before: "MemoryTold") -> "MemoryTold":
        """What happened after `before`."""
        return MemoryTold(self.limit, self.kills - before.kills, self.refaulted_bytes - before.refaulted_bytes)

    def thrashing(self) -> str | None:
        """More was read again than the group may hold at all: the kernel evicted what was still in use."""
        if self.limit is None or self.refaulted_bytes <= self.limit:
            return None
        return (
            "its files no longer fitted beside its data "
            f"({self.refaulted_bytes // MIB} MiB were read again, the limit is {self.limit // MIB} MiB)"
        )


NO_MEMORY = (b"bad_alloc", b"Cannot allocate memory", b"out of memory", b"pthread_create() failed")
"""What a compiler says that ends itself where the kernel gives it no more."""


@dataclass(frozen=True)
class End:
    """What a launch's end means; nothing: it measured all that it was asked to."""

    failure: Failure | None = None
    """Of the variant."""
    unfinished: Unfinished | None = None
    unchecked: Mapping[Probe, str] = field(default_factory=dict)
    ended_by: Probe | None = None


def explain(
    listener: LaunchListener, ending: Ending, request: LaunchRequest, memory: MemoryTold, crowded: float = 0.0
) -> End:
    """What the end of a launch means, and for whom.

    `memory`: what was told while it ran; `crowded`: the share of the processors that others took meanwhile.
    """
    if not isinstance(listener.last_word, Done):
        if ending.by_us == "interrupted":
            return End(unfinished="interrupted")
        if ending.by_us != "dismissed" and (probe := under_way(listener, Path(request.directory))):
            return _probe_ended_it(probe, listener, ending, request)
        if ending.by_us == "limit" and listener.allowance.used_up == "case" and not memory.kills:
            return End(unfinished="time-limit")
    return End(failure=_failure(listener, ending, request, memory, crowded))


def under_way(listener: LaunchListener, directory: Path) -> Probe | None:
    """The probe that was, when the launch ended; also one that it marked between blocks."""
    if listener.probe:
        return listener.probe
    try:
        marked = (directory / UNDER_WAY).read_text()
    except OSError:
        return None
    return next((probe for probe in PROBES if probe == marked), None)


def _probe_ended_it(probe: Probe, listener: LaunchListener, ending: Ending, request: LaunchRequest) -> End:
    """The measurement stands where it was complete; else it was no measurement, and no failure either."""
    used_up = listener.allowance.used_up
    unfinished: Unfinished = "probe"
    if ending.by_us == "limit" and used_up == "case":
        what, unfinished = "was under way when the case's time limit was reached", "time-limit"
    elif ending.by_us == "limit" and used_up == "probe":
        what = f"did not finish within {listener.allowance.probe_seconds:g} s"
    elif ending.by_us == "limit":
        what = "did not finish"
    elif ending.status < 0:
        what = f"crashed ({signal.Signals(-ending.status).name})"
    else:
        what = f"ended the process with status {ending.status}"
    why = {probe: f"{own(probe)} {what} in round {request.round}"}
    stands = listener.measured and (listener.blocks or request.purpose != "measure")
    return End(unfinished=None if stands else unfinished, unchecked=why, ended_by=probe)


def _failure(  # noqa: PLR0911 - one return a reason
    listener: LaunchListener, ending: Ending, request: LaunchRequest, memory: MemoryTold, crowded: float
) -> Failure | None:
    """Why the variant failed; None: it did not."""

    def failure(reason: FailureReason, message: str) -> Failure:
        said = message[:MAXIMUM_FAILURE_CHARACTERS]
        return Failure(reason=reason, message=said, round=request.round, phase=listener.phase)

    said = listener.last_word
    if isinstance(said, Done):
        if request.purpose != "measure" or listener.blocks or listener.facts.get("protocol") == "observe":
            return None
        return failure(FailureReason.INVALID_OUTPUT, "it said that it was done and had timed no block")
    if memory.kills:
        return failure(FailureReason.OUT_OF_MEMORY, f"the kernel killed it for lack of memory: {MORE_MEMORY}")
    if isinstance(said, Failed):
        return failure(said.reason, _with_trace(said))
    if ending.by_us == "limit":
        return failure(*_late(listener, memory, crowded))
    if listener.garbage:
        return failure(FailureReason.INVALID_OUTPUT, listener.garbage)
    if ending.by_us == "dismissed":
        return failure(FailureReason.INVALID_OUTPUT, "it closed its pipe without an answer and did not end")
    last_words = f": {line}" if (line := _last_line(listener.tail)) else ""
    if ending.status < 0:
        return failure(*_crashed(listener, ending, request, last_words))
    how = f" with status {ending.status}" if ending.status else ""
    hint = last_words or "; does it call os._exit()?"
    return failure(FailureReason.INVALID_OUTPUT, f"the process exited{how} before returning a result{hint}")


def _crashed(
    listener: LaunchListener, ending: Ending, request: LaunchRequest, last_words: str
) -> tuple[FailureReason, str]:
    """By which signal; a compiler ends itself where the kernel gives it no more memory."""
    if request.memory_bytes and any(words in listener.tail for words in NO_MEMORY):
        most = request.memory_bytes / 1024**3
        needs = f"compiling needs more than the {most:.3g} GiB that a compiler may hold here: {MORE_MEMORY}"
        return FailureReason.OUT_OF_MEMORY, needs
    name = signal.Signals(-ending.status).name
    return FailureReason.KILLED, f"{name} ended it{where(listener.tail) or last_words}"


def _late(listener: LaunchListener, memory: MemoryTold, crowded: float) -> tuple[FailureReason, str]:
    """Where it was when its time was up, and whose limit that was."""
    seconds, whose, _ = listener.allowance.own
    stage = listener.aside or listener.phase
    still = f"it was still in {stage}" if stage else "it had not begun"
    granted = listener.allowance.granted
    late = f"{still} after {granted:.3g} s, {whose}"
    if granted > seconds:
        late += f" (it is {seconds:.3g} s where others leave it the processors)"
    if thrashing := memory.thrashing():
        return FailureReason.OUT_OF_MEMORY, f"{late}: {thrashing}: {MORE_MEMORY}"
    if crowded > shared_device.NEIGHBOURS.biases:
        late += f", while others took {figures.percent(crowded)} of the processors"
    return FailureReason.TIMED_OUT, f"{late}{where(listener.tail, '; it was')}"


def _with_trace(said: Failed) -> str:
    """The message, and the end of the trace in whole lines, which is where the user's line is."""
    half = MAXIMUM_FAILURE_CHARACTERS // 2
    if not said.trace or said.reason == FailureReason.UNSUPPORTED:
        return said.message
    trace = said.trace.rstrip()
    shown = trace if len(trace) < half else trace[-half + 1 :].partition("\n")[2]
    return f"{said.message[:half]}\n{shown}"


def _last_line(tail: bytes) -> str:
    lines = tail.decode(errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else ""
