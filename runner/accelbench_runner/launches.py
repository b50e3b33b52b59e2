"""One launch, from its request to its record: what it said over its pipe, and why it failed if it did."""

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from accelbench import cgroup
from accelbench.api.case import Case
from accelbench.api.result import Failure, FailureReason, Phase
from accelbench_runner.children import Channel, Ending, Interruption, run_child
from accelbench_runner.protocol import (
    MAXIMUM_MESSAGE_BYTES,
    Block,
    Done,
    Facts,
    Failed,
    LaunchRequest,
    PhaseEnded,
    PhaseStarted,
    Purpose,
    parse_message,
)
from accelbench_runner.records import BlockRecord, LaunchRecord, PhaseRecord, WarmProbe

MAXIMUM_LAUNCH_BYTES = 4 * MAXIMUM_MESSAGE_BYTES
"""All messages of a launch together; one that says more is no measurement."""
EXIT_PATIENCE_SECONDS = 10.0
"""After its last word a launch may take this long to end: frameworks tear down threads and devices."""
MAXIMUM_FAILURE_CHARACTERS = 1000
TAIL_BYTES = 8 * 1024
MIB = 1024 * 1024
MORE_MEMORY = "raise the limit or make the case smaller"

Forward = Callable[[Channel, bytes], None]


class LaunchListener:
    """Gathers a launch's messages; its output goes on to `forward`."""

    def __init__(self, *, forward: Forward, phase_reached: Callable[[Phase], None]) -> None:
        self._forward = forward
        self._phase_reached = phase_reached
        self._unread = b""
        self._heard_bytes = 0
        self._closed = False
        self.phases: list[PhaseRecord] = []
        self.blocks: list[BlockRecord] = []
        self.facts: dict[str, Any] = {}
        self.phase: Phase | None = None
        self.last_word: Done | Failed | None = None
        self.garbage: str | None = None
        """What was wrong with what it said; the rest was not listened to."""
        self.tail = b""
        """The end of its standard error: where a crash says what happened."""

    def received(self, channel: Channel, data: bytes) -> None:
        """Messages are parsed as they come; output is forwarded."""
        if channel != "messages":
            if channel == "stderr":
                self.tail = (self.tail + data)[-TAIL_BYTES:]
            self._forward(channel, data)
            return
        if self.last_word or self.garbage:
            return
        self._heard_bytes += len(data)
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            self._message(line)
        if self._heard_bytes > MAXIMUM_LAUNCH_BYTES or len(self._unread) > MAXIMUM_MESSAGE_BYTES:
            self.garbage = f"it sent {self._heard_bytes} bytes of messages, more than a launch may"

    def closed(self, channel: Channel) -> None:
        """The end of the messages."""
        if channel == "messages":
            self._closed = True
            if self._unread and not self.last_word:
                self.garbage = self.garbage or f"its last message is cut off: {_excerpt(self._unread)}"

    def patience(self) -> float | None:
        """None while it may still say something."""
        if self.garbage:
            return 0.0
        return EXIT_PATIENCE_SECONDS if self.last_word or self._closed else None

    def _message(self, line: bytes) -> None:
        if self.last_word or self.garbage:
            return
        try:
            message = parse_message(line)
        except ValidationError as error:
            what = error.errors(include_url=False, include_input=False)[0]["msg"]
            self.garbage = f"a message cannot be read ({what}): {_excerpt(line)}"
            return
        match message:
            case PhaseStarted(phase=phase):
                self.phase = phase
                self._phase_reached(phase)
            case PhaseEnded(phase=phase, seconds=seconds, parts=parts):
                self.phases.append(PhaseRecord(phase=phase, seconds=seconds, parts=parts))
            case Facts(values=values):
                self.facts |= values
            case Block(steps=steps, seconds=seconds):
                self.blocks.append(BlockRecord(steps=steps, seconds=seconds))
            case Done() | Failed():
                self.last_word = message


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


@dataclass(frozen=True)
class Launcher:
    """What all launches of a case have in common."""

    case: Case
    command: Sequence[str]
    environment: Mapping[str, str]
    threads: int
    interruption: Interruption
    unseen_seed: int = 0

    def launch(
        self,
        variant: str,
        *,
        number: int,
        position: int,
        directory: Path,
        limit_seconds: float,
        forward: Forward,
        phase_reached: Callable[[Phase], None],
    ) -> LaunchRecord:
        """Measure `variant` once in a fresh process that may take `limit_seconds`; it always yields a record."""
        listener = LaunchListener(forward=forward, phase_reached=phase_reached)
        ending, failure = self._run(listener, variant, number, directory, limit_seconds)
        return LaunchRecord(
            variant=variant,
            round=number,
            position=position,
            wall_seconds=ending.wall_seconds,
            phases=tuple(listener.phases),
            blocks=tuple(listener.blocks),
            facts=listener.facts,
            failure=failure,
        )

    def probe(
        self,
        variant: str,
        *,
        number: int,
        directory: Path,
        limit_seconds: float,
        forward: Forward,
        phase_reached: Callable[[Phase], None],
    ) -> WarmProbe:
        """Start `variant` once more on the caches that its launch has left in `directory`, up to its first step."""
        listener = LaunchListener(forward=forward, phase_reached=phase_reached)
        ending, failure = self._run(listener, variant, number, directory, limit_seconds, purpose="probe")
        return WarmProbe(
            phases=tuple(listener.phases),
            cache=listener.facts.get("compileCache"),
            failure=f"{failure.reason}: {failure.message}" if failure else None,
            wall_seconds=ending.wall_seconds,
        )

    def _run(
        self,
        listener: LaunchListener,
        variant: str,
        number: int,
        directory: Path,
        limit_seconds: float,
        *,
        purpose: Purpose = "measure",
    ) -> tuple[Ending, Failure | None]:
        reading, writing = os.pipe()
        request = LaunchRequest(
            case=self.case,
            variant=variant,
            round=number,
            directory=str(directory),
            descriptor=writing,
            threads=self.threads,
            purpose=purpose,
            unseen_seed=self.unseen_seed,
        )
        request_file = directory / "request.json"
        request_file.write_text(request.to_json())
        before = MemoryTold.read()
        ending = run_child(
            self.command,
            request=request_file,
            environment={**self.environment, **launch_environment(directory)},
            limit_seconds=limit_seconds,
            listener=listener,
            interruption=self.interruption,
            messages=(reading, writing),
        )
        memory = MemoryTold.read().since(before)
        failure = explain(listener, ending, number=number, limit_seconds=limit_seconds, memory=memory)
        observed = listener.facts.get("protocol") == "observe"
        if purpose == "measure" and not (failure or listener.blocks or observed):
            message = "it said that it was done and had timed no block"
            failure = Failure(reason="InvalidOutput", message=message, round=number, phase=listener.phase)
        return ending, failure


def launch_environment(directory: Path) -> dict[str, str]:
    """Where a launch keeps what it writes: all of it in its own directory, so that every launch starts cold.

    Inductor's precompiled headers follow TMPDIR alone. JAX by default caches nothing that compiled in under a second.
    """
    places = {
        "HOME": "home",
        "XDG_CACHE_HOME": "cache",
        "TMPDIR": "tmp",
        "TORCHINDUCTOR_CACHE_DIR": "inductor",
        "TRITON_CACHE_DIR": "triton",
        "CUDA_CACHE_PATH": "cuda",
        "JAX_COMPILATION_CACHE_DIR": "jax",
    }
    for place in places.values():
        (directory / place).mkdir(exist_ok=True)
    return {
        **{name: str(directory / place) for name, place in places.items()},
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "PYTHONFAULTHANDLER": "1",  # a launch that hangs or crashes says where
    }


def explain(  # noqa: PLR0911 - one return a reason
    listener: LaunchListener, ending: Ending, *, number: int, limit_seconds: float, memory: MemoryTold
) -> Failure | None:
    """Why the launch failed; None: it said that it was done. `memory`: what was told while it ran."""

    def failure(reason: FailureReason, message: str) -> Failure:
        return Failure(reason=reason, message=message[:MAXIMUM_FAILURE_CHARACTERS], round=number, phase=listener.phase)

    said = listener.last_word
    if isinstance(said, Done):
        return None
    if memory.kills:
        return failure("OutOfMemory", f"the kernel killed it for lack of memory: {MORE_MEMORY}")
    if isinstance(said, Failed):
        return failure(said.reason, _with_trace(said))
    if ending.by_us == "limit":
        late = f"it had not finished after {limit_seconds:.0f} s"
        if thrashing := memory.thrashing():
            return failure("OutOfMemory", f"{late}: {thrashing}: {MORE_MEMORY}")
        return failure("TimedOut", f"{late}{_hung_at(listener.tail)}")
    if listener.garbage:
        return failure("InvalidOutput", listener.garbage)
    if ending.by_us == "dismissed":
        return failure("InvalidOutput", "it closed its pipe without an answer and did not end")
    last_words = f": {line}" if (line := _last_line(listener.tail)) else ""
    if ending.status < 0:
        number_sent = -ending.status
        return failure("Killed", f"{signal.Signals(number_sent).name} ended it{last_words}")
    return failure("InvalidOutput", f"it ended with status {ending.status} and no answer{last_words}")


def _with_trace(said: Failed) -> str:
    """The message, and the end of the trace, which is where the user's line is."""
    half = MAXIMUM_FAILURE_CHARACTERS // 2
    if not said.trace or said.reason == "Unsupported":
        return said.message
    return f"{said.message[:half]}\n{said.trace[-half + 1 :]}"


def _hung_at(tail: bytes) -> str:
    """The frames that faulthandler wrote last, innermost first: where the main thread hung."""
    _, found, stack = tail.decode(errors="replace").rpartition("(most recent call first):\n")
    frames = [line.strip() for line in stack.splitlines() if line.startswith("  File ")]
    return "; it hung at " + ", called from ".join(frames[:3]) if found and frames else ""


def _last_line(tail: bytes) -> str:
    lines = tail.decode(errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else ""


def _excerpt(line: bytes) -> str:
    return repr(line[:100].decode(errors="replace")) + ("..." if len(line) > 100 else "")  # noqa: PLR2004
