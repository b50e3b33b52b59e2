"""Send the supervisor messages over a descriptor: facts, phases, activities, probes and the failure of a variant."""

import os
import traceback
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import accelbench
import accelbench_runner
from accelbench.api.reasons import FailureReason
from accelbench.api.result import Phase
from accelbench.catalogue import script, workload_checks
from accelbench.document import shorten
from accelbench.launch.fact import Unreadable, clip
from accelbench.launch.facts import Facts, Probe
from accelbench.launch.record import Activity
from accelbench_runner.clock import Clock
from accelbench_runner.frameworks.adapter import Adapter, UnsupportedError
from accelbench_runner.protocol import (
    ActivityEnded,
    ActivityStarted,
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
OWN_CODE = (str(PACKAGE), str(Path(accelbench_runner.__file__).parent))
"""Directories of accelbench's own code, whose frames are not shown to users."""
WORKLOADS = str(PACKAGE / "workloads")
"""Directory of accelbench's workloads. Their code is measured, so its frames are shown like a user's."""

T = TypeVar("T")


def read_fact(reading: Callable[[], T]) -> T | Unreadable:
    """Return the result of `reading()` or, if it raises an exception, an `Unreadable` that describes the exception."""
    try:
        return reading()
    except Exception as error:  # noqa: BLE001 - another library's statistics may raise anything
        _print_exception(error)  # with its stack, because an `Unreadable` has room for one line only
        return Unreadable(why=clip(workload_checks.describe(error)))


def _print_exception(error: Exception) -> None:
    """Print the exception with its stack; do nothing if a user's code has closed standard error."""
    with suppress(Exception):
        traceback.print_exception(error)


def _print_and_shorten(error: Exception) -> str:
    """Print the exception with its stack; return its type and text, shortened to `MAXIMUM_PROBLEM_CHARACTERS`."""
    _print_exception(error)
    return shorten(f"{type(error).__name__}: {error}", MAXIMUM_PROBLEM_CHARACTERS)


@dataclass
class _Elapsed:
    """Hold the seconds that the body of a context took; 0 until it ends."""

    seconds: float = 0.0


class Reporter:
    """Write messages to the supervisor's descriptor, and time phases, activities outside them, and probes."""

    def __init__(self, descriptor: int, clock: Clock, *, probe_file: Path, skip: Collection[Probe] = ()) -> None:
        """Prepare to send messages to the supervisor over `descriptor`, and to leave out the probes in `skip`.

        While a probe runs between two timed blocks, `probe_file` contains the name of the probe.
        """
        self._descriptor = descriptor
        self._clock = clock
        self._probe_file = probe_file
        self._skipped_probes = set(skip)
        self._nested_seconds = 0.0
        """Seconds of activities that ran inside the current activity."""

    def send(self, message: Message) -> None:
        """Write the message to the supervisor's pipe, as one line of JSON."""
        remaining = memoryview(message.to_json().encode() + b"\n")
        while remaining:  # `os.write` may write only some of the bytes
            written_bytes = os.write(self._descriptor, remaining)
            remaining = remaining[written_bytes:]

    def send_facts(self, **readings: object) -> None:
        """Send facts to the supervisor; each keyword is a field of `Facts`.

        Each argument is the fact's value, or a function without arguments that returns the value. A value of None is
        not sent. If the function raises, or the value is invalid, an `Unreadable` is sent instead: a failed reading is
        no failure of the variant.
        """
        if unknown := readings.keys() - Facts.model_fields.keys():
            raise TypeError(f"Facts has no {', '.join(sorted(unknown))}")
        values = dict(readings)
        for name, reading in readings.items():
            if callable(reading):
                values[name] = read_fact(reading)
        facts = Facts.model_validate(values)
        self.send(FactsReported(values=facts.model_dump(mode="json", by_alias=True, exclude_none=True)))

    @contextmanager
    def phase(self, phase: Phase) -> Iterator[dict[str, float]]:
        """Time the body of the `with` block as a phase of the launch, and report the seconds.

        The body may add the seconds of parts of the phase, such as `trace`, to the dictionary. If the body raises, no
        seconds are reported.
        """
        self.send(PhaseStarted(phase=phase))
        parts: dict[str, float] = {}
        began = self._clock.seconds()
        yield parts
        self.send(PhaseEnded(phase=phase, seconds=self._clock.seconds() - began, parts=parts))

    @contextmanager
    def outside_phases(self, name: Activity) -> Iterator[None]:
        """Time the body of the `with` block as an activity that belongs to no phase, and report the seconds."""
        self.send(ActivityStarted(name=name))
        with self._time_body() as elapsed:
            yield
        self.send(ActivityEnded(name=name, seconds=elapsed.seconds))

    def run_probe(self, name: Probe, run: Callable[[], T]) -> T | None:
        """Run a probe and return its result; return None if the probe fails or is skipped.

        The variant does not need the probe, so a failure of the probe is no failure of the variant.
        """
        if name in self._skipped_probes:
            return None
        result, problem = None, ""
        # `alone` makes the supervisor apply its time limit for probes. Some activities that have a probe's name also
        # call the variant's program; they are sent without `alone`.
        self.send(ActivityStarted(name=name, alone=True))
        with self._time_body() as elapsed:
            try:
                result = run()
            except Exception as error:  # noqa: BLE001 - a probe must not fail the variant
                self._skipped_probes.add(name)
                problem = _print_and_shorten(error)
        self.send(ActivityEnded(name=name, seconds=elapsed.seconds, problem=problem))
        return result

    def run_probe_between_blocks(self, name: Probe, run: Callable[[], None]) -> None:
        """Run a probe between two timed blocks, and send a message only if the probe fails.

        A message would wake the supervisor, which would disturb the blocks. So the probe's name is written to a file
        instead; if the probe hangs or crashes, the supervisor reads the name there.
        """
        if name in self._skipped_probes:
            return
        self._probe_file.write_text(name)
        try:
            run()
        except Exception as error:  # noqa: BLE001 - a probe must not fail the variant
            self._skipped_probes.add(name)
            self.send(ActivityEnded(name=name, seconds=0.0, problem=_print_and_shorten(error)))
        self._probe_file.write_text("")

    @contextmanager
    def _time_body(self) -> Iterator[_Elapsed]:
        """Time the body of the `with` block, without the activities inside it.

        The seconds of the yielded object are set when the body ends.
        """
        earlier_nested_seconds = self._nested_seconds
        self._nested_seconds = 0.0
        elapsed = _Elapsed()
        began = self._clock.seconds()
        yield elapsed
        total_seconds = self._clock.seconds() - began
        elapsed.seconds = max(0.0, total_seconds - self._nested_seconds)
        self._nested_seconds = earlier_nested_seconds + total_seconds  # an enclosing activity leaves these out


def ensure_formattable(error: BaseException) -> BaseException:
    """Return the exception or, if `str` of the exception raises, a RuntimeError in its place."""
    try:
        str(error)
    except Exception as problem:  # noqa: BLE001 - a user's exception
        replacement = RuntimeError(f"{type(error).__name__} was raised, and formatting its message raises {problem!r}")
        return replacement.with_traceback(error.__traceback__)
    return error


def describe_failure(error: BaseException, adapter: Adapter | None) -> Failed:
    """Return the message that reports `error`, which the variant raised, with the place in the user's code.

    `adapter` is None if the framework was not imported yet.
    """
    if isinstance(error, UnsupportedError):
        return Failed(reason=FailureReason.UNSUPPORTED, message=shorten(str(error), MAXIMUM_MESSAGE_CHARACTERS))
    reason = FailureReason.RAISED
    if _out_of_memory(error) or (adapter is not None and adapter.out_of_memory(error)):
        reason = FailureReason.OUT_OF_MEMORY
    trace = _format_traceback(error)
    # Without a trace, `format_error` names the line in the user's script.
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

    Only the frames in the user's script are named or, if none is, those outside accelbench's own code. Empty for an
    InvalidWorkloadError.
    """
    if isinstance(error, workload_checks.InvalidWorkloadError):
        return ""  # the exception's message says what is wrong
    # Accelbench's workloads are not its own code here: they are measured like the user's.
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith(WORKLOADS) or not frame.filename.startswith(OWN_CODE)
    ]
    script_file = str(script.origin())
    script_frames = [frame for frame in frames if frame.filename == script_file]
    return ", called from ".join(map(_format_frame, reversed(script_frames or frames)))


def _format_frame(frame: traceback.FrameSummary) -> str:
    """Describe a stack frame as `my_filter.py, line 12 in step: CODE`."""
    code = f": {frame.line}" if frame.line else ""
    return f"{Path(frame.filename).name}, line {frame.lineno} in {frame.name}{code}"
