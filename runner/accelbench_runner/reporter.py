"""What a launch tells the supervisor with: messages on their own descriptor, phases timed as they are announced."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from accelbench.api.result import Phase
from accelbench.validity.evidence import Aside
from accelbench_runner.clock import Clock
from accelbench_runner.protocol import Facts, Message, PhaseEnded, PhaseStarted


class Reporter:
    """Writes messages to the supervisor's descriptor, and times the phases it announces."""

    def __init__(self, descriptor: int, clock: Clock) -> None:
        self._descriptor = descriptor
        self._clock = clock
        self.asides: dict[Aside, float] = {}
        """Seconds spent beside the phases, by what on."""

    def say(self, message: Message) -> None:
        """One line, whole: `os.write` may take less than it is given."""
        line = memoryview(message.to_json().encode() + b"\n")
        while line:
            line = line[os.write(self._descriptor, line) :]

    def facts(self, **values: Any) -> None:
        """What was read back; None is left out."""
        self.say(Facts(values={name: value for name, value in values.items() if value is not None}))

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
        """Times what is done beside the phases, so that it is named where a case's time went, and hides in none."""
        began = self._clock.seconds()
        yield
        self.asides[name] = self.asides.get(name, 0.0) + self._clock.seconds() - began
