"""Send the supervisor messages over a descriptor: facts, phases, asides, probes and the failure of a variant."""

import os
import traceback
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import accelbench
from accelbench.api.reasons import FailureReason
from accelbench.api.result import Phase
from accelbench.catalogue import script, workload_checks
from accelbench.document import shorten
from accelbench.launch.fact import Unreadable, clip
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

MAXIMUM_PROBLEM_CHARACTERS = 500
MAXIMUM_MESSAGE_CHARACTERS = 2000
MAXIMUM_TRACE_CHARACTERS = 1000
NO_MEMORY = ("std::bad_alloc", "Cannot allocate memory", "failed to map segment from shared object")
"""Messages of C++, the kernel and the dynamic linker when memory runs out."""
PACKAGE = Path(accelbench.__file__).parent
OWN_CODE = (str(PACKAGE), str(Path(__file__).parent))
WORKLOADS = str(PACKAGE / "workloads")
"""Directory of accelbench's workloads. Their code is measured, so its frames are shown like a user's."""

T = TypeVar("T")


def read(reading: Callable[[], T]) -> T | Unreadable:
    """Return the result of the call; `Unreadable` if it raises."""
    try:
        return reading()
    except Exception as error:  # noqa: BLE001 - another library's statistics may raise anything
        _print_exception(error)  # the fact has room for one line
        return Unreadable(why=clip(workload_checks.describe(error)))


def _print_exception(error: Exception) -> None:
    """Print the exception with its stack; do nothing if a user's code has closed standard error."""
    with suppress(Exception):
        traceback.print_exception(error)


def _print_and_shorten(error: Exception) -> str:
    """Print the exception with its stack, and return its type and message, shortened for a message."""
    _print_exception(error)
    return shorten(f"{type(error).__name__}: {error}", MAXIMUM_PROBLEM_CHARACTERS)


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

    def facts(self, **readings: object) -> None:
        """Send facts, by the names of the fields of `Facts`.

        Each is a value, or a function without arguments that returns it. None is not sent. A fact that cannot be read
        or has an invalid value is sent as `Unreadable`, because a failed reading is no failure of the variant.
        """
        if unknown := readings.keys() - Facts.model_fields.keys():
            raise TypeError(f"Facts has no {', '.join(sorted(unknown))}")
        values = {name: read(reading) if callable(reading) else reading for name, reading in readings.items()}
        facts = Facts.model_validate(values)
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

        The variant does not need it, so a failure of the probe is no failure of the variant. `alone` says that the
        aside is a probe, for which the supervisor has a time limit; some other asides have the name of a probe too.
        """
        if name in self._skipped_probes:
            return None
        result, problem = None, ""
        self.send(AsideStarted(name=name, alone=True))
        with self._time_body() as elapsed:
            try:
                result = run()
            except Exception as error:  # noqa: BLE001 - a probe must not fail the variant
                self._skipped_probes.add(name)
                problem = _print_and_shorten(error)
        self.send(AsideEnded(name=name, seconds=elapsed.seconds, problem=problem))
        return result

    def probe_between_blocks(self, name: Probe, run: Callable[[], None]) -> None:
        """Run a probe between blocks; unless it fails, send no message, which would wake the supervisor.

        Meanwhile the mark file has the probe's name, so that the supervisor knows which probe hung or crashed.
        """
        if name in self._skipped_probes:
            return
        self._mark.write_text(name)
        try:
            run()
        except Exception as error:  # noqa: BLE001 - a probe must not fail the variant
            self._skipped_probes.add(name)
            self.send(AsideEnded(name=name, seconds=0.0, problem=_print_and_shorten(error)))
        self._mark.write_text("")

    @contextmanager
    def _time_body(self) -> Iterator[_Elapsed]:
        """Time the body of the context, without the asides inside it; the result is set when the body ends."""
        earlier_nested_seconds = self._nested_seconds
        self._nested_seconds = 0.0
        elapsed = _Elapsed()
        began = self._clock.seconds()
        yield elapsed
        total_seconds = self._clock.seconds() - began
        elapsed.seconds = max(0.0, total_seconds - self._nested_seconds)
        self._nested_seconds = earlier_nested_seconds + total_seconds  # what an enclosing aside must leave out


def with_message(error: BaseException) -> BaseException:
    """Return the exception itself, or a RuntimeError in its place if its message cannot be formatted."""
    try:
        str(error)
    except Exception as problem:  # noqa: BLE001 - a user's exception
        replacement = RuntimeError(f"{type(error).__name__} was raised, and formatting its message raises {problem!r}")
        return replacement.with_traceback(error.__traceback__)
    return error


def describe_failure(error: BaseException, adapter: Adapter | None) -> Failed:
    """Return the message to the supervisor that the variant has failed by this exception.

    `adapter` is None if the framework was not imported yet.
    """
    if isinstance(error, UnsupportedError):
        return Failed(reason=FailureReason.UNSUPPORTED, message=shorten(str(error), MAXIMUM_MESSAGE_CHARACTERS))
    reason = FailureReason.RAISED
    if _out_of_memory(error) or (adapter is not None and adapter.out_of_memory(error)):
        reason = FailureReason.OUT_OF_MEMORY
    trace = _format_traceback(error)
    # Without a trace, the text names the line.
    text = workload_checks.describe(error) if trace else script.format_error(error)
    advice = adapter.advise(error) if adapter is not None else ""
    message = shorten(f"{text}; {advice}" if advice else text, MAXIMUM_MESSAGE_CHARACTERS)
    if not message.startswith(text):  # it was shortened
        traceback.print_exception(error)  # so that the log has the whole text
    return Failed(reason=reason, message=message, trace=shorten(trace, MAXIMUM_TRACE_CHARACTERS))


def _out_of_memory(error: BaseException) -> bool:
    """Return True if the error means lack of memory."""
    return isinstance(error, MemoryError) or any(message in str(error) for message in NO_MEMORY)


def _format_traceback(error: BaseException) -> str:
    """Return where the exception was raised, as `my_filter.py, line 12 in step: CODE, called from ...`.

    It has the frames in the user's script, or else those outside accelbench's own code; empty if the message is enough.
    """
    if isinstance(error, workload_checks.InvalidWorkloadError):
        return ""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith(WORKLOADS) or not frame.filename.startswith(OWN_CODE)
    ]
    script_file = str(script.origin())
    script_frames = [frame for frame in frames if frame.filename == script_file]
    return ", called from ".join(map(_format_frame, reversed(script_frames or frames)))


def _format_frame(frame: traceback.FrameSummary) -> str:
    """Return `my_filter.py, line 12 in step: CODE`."""
    code = f": {frame.line}" if frame.line else ""
    return f"{Path(frame.filename).name}, line {frame.lineno} in {frame.name}{code}"
