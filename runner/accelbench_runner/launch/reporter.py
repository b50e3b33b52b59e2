"""What a launch tells the supervisor with: messages on their own descriptor, phases and asides as they begin."""

import os
import traceback
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from accelbench.api.result import Phase
from accelbench.launch.facts import Facts, Probe
from accelbench.launch.record import Aside
from accelbench_runner.clock import Clock
from accelbench_runner.protocol import AsideEnded, AsideStarted, FactsTold, Message, PhaseEnded, PhaseStarted

MAXIMUM_PROBLEM_CHARACTERS = 200

T = TypeVar("T")


class Reporter:
    """Writes messages to the supervisor's descriptor, and times the phases and asides that it announces."""

    def __init__(self, descriptor: int, clock: Clock, *, mark: Path, skip: Collection[Probe] = ()) -> None:
        """`mark` is the file that says which probe is under way between blocks; those to `skip` are not made."""
        self._descriptor = descriptor
        self._clock = clock
        self._mark = mark
        self._left_out = set(skip)
        self._inside = 0.0
        """Seconds of asides that have begun and ended inside the one under way."""

    def say(self, message: Message) -> None:
        """One line, whole: `os.write` may take less than it is given."""
        line = memoryview(message.to_json().encode() + b"\n")
        while line:
            line = line[os.write(self._descriptor, line) :]

    def facts(self, facts: Facts) -> None:
        """What was read back; of what is not among it, nothing is said."""
        self.say(FactsTold(values=facts.model_dump(mode="json", by_alias=True, exclude_none=True)))

    @contextmanager
    def phase(self, phase: Phase) -> Iterator[dict[str, float]]:
        """Times what happens inside, which may say what it is made of; a phase that raises has no end."""
        self.say(PhaseStarted(phase=phase))
        parts: dict[str, float] = {}
        began = self._clock.seconds()
        yield parts
        self.say(PhaseEnded(phase=phase, seconds=self._clock.seconds() - began, parts=parts))

    @contextmanager
    def aside(self, name: Aside) -> Iterator[None]:
        """What is done beside the phases with steps of the variant's; one that raises has no end.

        Announced and timed, so that it is named where a case's time went, and hides in no phase.
        """
        self.say(AsideStarted(name=name))
        with self._timed() as spent:
            yield
        self.say(AsideEnded(name=name, seconds=spent[0]))

    def probe(self, name: Probe, look: Callable[[], T]) -> T | None:
        """What a look of accelbench's own finds, which runs nothing of the variant's; None where it gives no answer.

        What it raises is told and is no failure of the variant's; it is not asked again.
        """
        if name in self._left_out:
            return None
        found, problem = None, ""
        self.say(AsideStarted(name=name, alone=True))
        with self._timed() as spent:
            try:
                found = look()
            except Exception as error:  # noqa: BLE001 - whatever it is, it is ours
                problem = self._leave_out(name, error)
        self.say(AsideEnded(name=name, seconds=spent[0], problem=problem))
        return found

    def glance(self, name: Probe, look: Callable[[], None]) -> None:
        """As `probe`, between blocks: it marks a file, for a message would wake the supervisor."""
        if name in self._left_out:
            return
        self._mark.write_text(name)
        try:
            look()
        except Exception as error:  # noqa: BLE001 - whatever it is, it is ours
            self.say(AsideEnded(name=name, seconds=0.0, problem=self._leave_out(name, error)))
        self._mark.write_text("")

    def _leave_out(self, name: Probe, error: Exception) -> str:
        self._left_out.add(name)
        traceback.print_exception(error)  # the message has room for one line
        return f"{type(error).__name__}: {error}"[:MAXIMUM_PROBLEM_CHARACTERS]

    @contextmanager
    def _timed(self) -> Iterator[list[float]]:
        """Puts the seconds that it took, without asides inside it, into the list."""
        before, self._inside = self._inside, 0.0
        spent: list[float] = []
        began = self._clock.seconds()
        yield spent
        seconds = self._clock.seconds() - began
        spent.append(max(0.0, seconds - self._inside))
        self._inside = before + seconds
