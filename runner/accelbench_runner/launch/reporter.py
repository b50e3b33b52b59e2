"""Send the supervisor messages over a descriptor: facts, phases, asides, probes and the failure of a variant."""

import os
import traceback
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import accelbench
from accelbench.api.reasons import FailureReason
from accelbench.api.result import Phase
from accelbench.catalogue import script, workload_checks
from accelbench.launch.facts import Facts, Probe
from accelbench.launch.record import Aside
from accelbench_runner.clock import Clock
from accelbench_runner.frameworks.adapter import Adapter, UnsupportedError
from accelbench_runner.protocol import (
    AsideEnded,
    AsideStarted,
    FactsReported,
    Failed,
    Message,
    PhaseEnded,
    PhaseStarted,
)

MAXIMUM_PROBLEM_CHARACTERS = 200
MAXIMUM_MESSAGE_CHARACTERS = 2000
MAXIMUM_TRACE_CHARACTERS = 8000
NO_MEMORY = ("std::bad_alloc", "Cannot allocate memory", "failed to map segment from shared object")
"""Messages of C++, the kernel and the dynamic linker when memory runs out."""
PACKAGE = Path(accelbench.__file__).parent
OWN_CODE = (str(PACKAGE), str(Path(__file__).parent))
WORKLOADS = str(PACKAGE / "workloads")
"""Directory of accelbench's workloads. Their code is measured, so its frames are shown like a user's."""

T = TypeVar("T")


@dataclass
class _Elapsed:
    """Hold the seconds that the body of a context took; 0 until it ends."""

    seconds: float = 0.0


class Reporter:
    """Write messages to the supervisor's descriptor, and time phases, asides and probes."""

    def __init__(self, descriptor: int, clock: Clock, *, mark: Path, skip: Collection[Probe] = ()) -> None:
        """Prepare to send messages over `descriptor`, and to run no probe in `skip`.

        The file `mark` receives the name of a probe that runs between blocks.
        """
        self._descriptor = descriptor
        self._clock = clock
        self._mark = mark
        self._skipped_probes = set(skip)
        self._nested_seconds = 0.0
        """Seconds of asides that ran inside the current aside."""

    def send(self, message: Message) -> None:
        """Write the message as one line."""
        remaining = memoryview(message.to_json().encode() + b"\n")
        while remaining:  # `os.write` may write only some of the bytes
            written_bytes = os.write(self._descriptor, remaining)
            remaining = remaining[written_bytes:]

    def facts(self, facts: Facts) -> None:
        """Send the facts that have a value."""
        self.send(FactsReported(values=facts.model_dump(mode="json", by_alias=True, exclude_none=True)))

    @contextmanager
    def phase(self, phase: Phase) -> Iterator[dict[str, float]]:
        """Time a phase and report it. The body may add the seconds of parts to the dictionary."""
        self.send(PhaseStarted(phase=phase))
        parts: dict[str, float] = {}
        began = self._clock.seconds()
        yield parts
        self.send(PhaseEnded(phase=phase, seconds=self._clock.seconds() - began, parts=parts))

    @contextmanager
    def aside(self, name: Aside) -> Iterator[None]:
        """Time and report work that belongs to no phase."""
        self.send(AsideStarted(name=name))
        with self._time_body() as elapsed:
            yield
        self.send(AsideEnded(name=name, seconds=elapsed.seconds))

    def probe(self, name: Probe, run: Callable[[], T]) -> T | None:
        """Run a probe and return its result; None if it fails or is skipped.

        A probe runs only accelbench's code, so its failure is no failure of the variant.
        """
        if name in self._skipped_probes:
            return None
        result, problem = None, ""
        self.send(AsideStarted(name=name, alone=True))
        with self._time_body() as elapsed:
            try:
                result = run()
            except Exception as error:  # noqa: BLE001 - a probe must not fail the variant
                problem = self._skip(name, error)
        self.send(AsideEnded(name=name, seconds=elapsed.seconds, problem=problem))
        return result

    def probe_between_blocks(self, name: Probe, run: Callable[[], None]) -> None:
        """Run a probe between blocks."""
        if name in self._skipped_probes:
            return
        self._mark.write_text(name)  # a message would wake the supervisor
        try:
            run()
        except Exception as error:  # noqa: BLE001 - a probe must not fail the variant
            self.send(AsideEnded(name=name, seconds=0.0, problem=self._skip(name, error)))
        self._mark.write_text("")

    def _skip(self, name: Probe, error: Exception) -> str:
        """Skip the probe from now on, and return the exception as one line."""
        self._skipped_probes.add(name)
        traceback.print_exception(error)  # the message has room for one line
        return f"{type(error).__name__}: {error}"[:MAXIMUM_PROBLEM_CHARACTERS]

    @contextmanager
    def _time_body(self) -> Iterator[_Elapsed]:
        """Time the body of the context, without the asides inside it."""
        earlier_nested_seconds = self._nested_seconds
        self._nested_seconds = 0.0
        elapsed = _Elapsed()
        began = self._clock.seconds()
        yield elapsed
        total_seconds = self._clock.seconds() - began
        elapsed.seconds = max(0.0, total_seconds - self._nested_seconds)
        self._nested_seconds = earlier_nested_seconds + total_seconds  # what an enclosing aside must leave out


def describe_failure(error: BaseException, adapter: Adapter | None) -> Failed:
    """Return a message about an exception of the variant."""
    if isinstance(error, UnsupportedError):
        return Failed(reason=FailureReason.UNSUPPORTED, message=str(error)[:MAXIMUM_MESSAGE_CHARACTERS])
    reason = FailureReason.RAISED
    if _out_of_memory(error) or (adapter is not None and adapter.out_of_memory(error)):
        reason = FailureReason.OUT_OF_MEMORY
    message = script.format_error(error)[:MAXIMUM_MESSAGE_CHARACTERS]
    return Failed(reason=reason, message=message, trace=_format_traceback(error)[-MAXIMUM_TRACE_CHARACTERS:])


def _out_of_memory(error: BaseException) -> bool:
    """Return True if the error means lack of memory."""
    return isinstance(error, MemoryError) or any(message in str(error) for message in NO_MEMORY)


def _format_traceback(error: BaseException) -> str:
    """Format the traceback's frames in the user's script, or else outside accelbench's code."""
    if isinstance(error, workload_checks.InvalidWorkloadError):
        return ""  # its message is enough
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith(WORKLOADS) or not frame.filename.startswith(OWN_CODE)
    ]
    script_file = str(script.origin())
    script_frames = [frame for frame in frames if frame.filename == script_file]
    return "".join(traceback.StackSummary.from_list(script_frames or frames).format())
