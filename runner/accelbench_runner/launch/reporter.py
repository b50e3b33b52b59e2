"""Send the supervisor messages over a descriptor: facts, phases, asides, probes and the failure of a variant."""

import os
import traceback
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
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
"""Part of accelbench's own code that is measured, and whose frames are shown."""

T = TypeVar("T")


class Reporter:
    """Write messages to the supervisor's descriptor, and time phases, asides and probes."""

    def __init__(self, descriptor: int, clock: Clock, *, mark: Path, skip: Collection[Probe] = ()) -> None:
        """Use the file `mark` to name the probe that runs between blocks, and leave out the probes in `skip`."""
        self._descriptor = descriptor
        self._clock = clock
        self._mark = mark
        self._skipped = set(skip)
        self._nested_seconds = 0.0
        """Seconds of asides that ran inside the current one."""

    def send(self, message: Message) -> None:
        """Write the message as one line, all of it: `os.write` may write less than it gets."""
        line = memoryview(message.to_json().encode() + b"\n")
        while line:
            line = line[os.write(self._descriptor, line) :]

    def facts(self, facts: Facts) -> None:
        """Send the facts that are set."""
        self.send(FactsReported(values=facts.model_dump(mode="json", by_alias=True, exclude_none=True)))

    @contextmanager
    def phase(self, phase: Phase) -> Iterator[dict[str, float]]:
        """Time a phase; the body may add its parts to the dictionary. If the body raises, the phase does not end."""
        self.send(PhaseStarted(phase=phase))
        parts: dict[str, float] = {}
        began = self._clock.seconds()
        yield parts
        self.send(PhaseEnded(phase=phase, seconds=self._clock.seconds() - began, parts=parts))

    @contextmanager
    def aside(self, name: Aside) -> Iterator[None]:
        """Time work outside the phases that runs steps of the variant. If the body raises, the aside does not end.

        Asides account for the rest of a case's time, so that it is part of no phase.
        """
        self.send(AsideStarted(name=name))
        with self._timed() as seconds:
            yield
        self.send(AsideEnded(name=name, seconds=seconds[0]))

    def probe(self, name: Probe, run: Callable[[], T]) -> T | None:
        """Run a probe of accelbench's own, which runs no code of the variant, and return its result.

        None if the probe fails or is skipped. An exception does not fail the variant: it is reported, and the probe is
        skipped from then on.
        """
        if name in self._skipped:
            return None
        result, problem = None, ""
        self.send(AsideStarted(name=name, alone=True))
        with self._timed() as seconds:
            try:
                result = run()
            except Exception as error:  # noqa: BLE001 - a probe must not fail the variant
                problem = self._skip(name, error)
        self.send(AsideEnded(name=name, seconds=seconds[0], problem=problem))
        return result

    def probe_between_blocks(self, name: Probe, run: Callable[[], None]) -> None:
        """Run a probe between blocks. It is named in a file, because a message would wake the supervisor."""
        if name in self._skipped:
            return
        self._mark.write_text(name)
        try:
            run()
        except Exception as error:  # noqa: BLE001 - a probe must not fail the variant
            self.send(AsideEnded(name=name, seconds=0.0, problem=self._skip(name, error)))
        self._mark.write_text("")

    def _skip(self, name: Probe, error: Exception) -> str:
        """Skip the probe from now on; print the traceback, and return the exception as one line."""
        self._skipped.add(name)
        traceback.print_exception(error)  # the message has room for one line
        return f"{type(error).__name__}: {error}"[:MAXIMUM_PROBLEM_CHARACTERS]

    @contextmanager
    def _timed(self) -> Iterator[list[float]]:
        """Append the seconds of the body, without nested asides, to the list."""
        before, self._nested_seconds = self._nested_seconds, 0.0
        spent: list[float] = []
        began = self._clock.seconds()
        yield spent
        seconds = self._clock.seconds() - began
        spent.append(max(0.0, seconds - self._nested_seconds))
        self._nested_seconds = before + seconds


def describe_failure(error: BaseException, adapter: Adapter | None) -> Failed:
    """Describe an exception of the variant: reason, one line for people, and traceback through the user's code."""
    if isinstance(error, UnsupportedError):
        return Failed(reason=FailureReason.UNSUPPORTED, message=str(error)[:MAXIMUM_MESSAGE_CHARACTERS])
    reason = FailureReason.RAISED
    if _out_of_memory(error) or (adapter is not None and adapter.out_of_memory(error)):
        reason = FailureReason.OUT_OF_MEMORY
    message = script.format_error(error)[:MAXIMUM_MESSAGE_CHARACTERS]
    return Failed(reason=reason, message=message, trace=_frames(error)[-MAXIMUM_TRACE_CHARACTERS:])


def _out_of_memory(error: BaseException) -> bool:
    """Return True for errors of Python, C++ or the kernel that mean lack of memory."""
    return isinstance(error, MemoryError) or any(words in str(error) for words in NO_MEMORY)


def _frames(error: BaseException) -> str:
    """Format the traceback: a script's own frames if there are any, else all frames outside accelbench.

    A script's author can seldom change the libraries below it, and the message suffices for accelbench's own checks.
    """
    if isinstance(error, workload_checks.InvalidWorkloadError):
        return ""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith(WORKLOADS) or not frame.filename.startswith(OWN_CODE)
    ]
    file = str(script.origin())
    relevant = [frame for frame in frames if frame.filename == file] or frames
    return "".join(traceback.StackSummary.from_list(relevant).format())
