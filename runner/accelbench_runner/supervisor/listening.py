"""What a launch says over its pipe, gathered as it comes; its output goes on to the log."""

from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from accelbench.api.result import Phase
from accelbench.launch.facts import PROBES, Probe
from accelbench.launch.record import Aside, Block, PhaseRecord
from accelbench_runner.protocol import (
    MAXIMUM_MESSAGE_BYTES,
    AsideEnded,
    AsideStarted,
    BlockTimed,
    Done,
    FactsTold,
    Failed,
    Measured,
    Message,
    PhaseEnded,
    PhaseStarted,
    parse_message,
)
from accelbench_runner.supervisor.allowance import Allowance
from accelbench_runner.supervisor.children import Channel

MAXIMUM_LAUNCH_BYTES = 4 * MAXIMUM_MESSAGE_BYTES
"""All messages of a launch together; one that says more is no measurement."""
EXIT_PATIENCE_SECONDS = 10.0
"""After its last word a launch may take this long to end: frameworks tear down threads and devices."""
TAIL_BYTES = 64 * 1024
"""faulthandler writes up to 100 calls a thread, and all extension modules behind them."""
REPEATED: frozenset[Phase] = frozenset({"warm-up", "steady"})

Forward = Callable[[Channel, bytes], None]


class LaunchListener:
    """Gathers a launch's messages; its output goes on to `forward`."""

    def __init__(self, *, forward: Forward, phase_reached: Callable[[Phase], None], allowance: Allowance) -> None:
        self._forward = forward
        self.allowance = allowance
        self._phase_reached = phase_reached
        self._unread = b""
        self._heard_bytes = 0
        self._closed = False
        self.phases: list[PhaseRecord] = []
        self.blocks: list[Block] = []
        self.facts: dict[str, Any] = {}
        """As told; nobody has parsed them yet."""
        self.phase: Phase | None = None
        self.asides: dict[Aside, float] = {}
        """Seconds spent beside the phases, by what on."""
        self.aside: Aside | None = None
        """Under way beside the phases."""
        self.probe: Probe | None = None
        """Under way, and accelbench's own alone."""
        self.unchecked: dict[Probe, str] = {}
        """Probes that gave no answer, and why."""
        self.measured = False
        """All that a verdict needs has been told."""
        self.last_word: Done | Failed | None = None
        self.garbage: str | None = None
        """What was wrong with what it said; the rest was not listened to."""
        self.tail = b""
        """The end of its standard error: where a crash says what happened."""
        self.printed_bytes = 0
        """Since its steps run again and again."""

    def received(self, channel: Channel, data: bytes) -> None:
        """Messages are parsed as they come; output is forwarded."""
        if channel != "messages":
            if channel == "stderr":
                self.tail = (self.tail + data)[-TAIL_BYTES:]
            if self.phase in REPEATED:
                self.printed_bytes += len(data)
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

    def left(self, elapsed: float) -> float:
        """Of the limit that is the nearest now."""
        return self.allowance.left(elapsed)

    def _message(self, line: bytes) -> None:
        if self.last_word or self.garbage:
            return
        try:
            message = parse_message(line)
        except ValidationError as error:
            what = error.errors(include_url=False, include_input=False)[0]["msg"]
            self.garbage = f"a message cannot be read ({what}): {_excerpt(line)}"
            return
        self._take(message)

    def _take(self, message: Message) -> None:
        match message:
            case PhaseStarted(phase=phase):
                self.phase = phase
                self._phase_reached(phase)
            case PhaseEnded(phase=phase, seconds=seconds, parts=parts):
                self.phases.append(PhaseRecord(phase=phase, seconds=seconds, parts=parts))
            case AsideStarted(name=name, alone=alone):
                if alone and name in PROBES:
                    self.probe = name
                    self.allowance.probe_began()
                else:
                    self.aside = name
            case AsideEnded(name=name, seconds=seconds, problem=problem):
                self._aside_ended(name, seconds, problem)
            case Measured():
                self.measured = True
            case FactsTold(values=values):
                self.facts |= values
            case BlockTimed(units=units, seconds=seconds):
                self.blocks.append(Block(units=units, seconds=seconds))
            case Done() | Failed():
                self.last_word = message

    def _aside_ended(self, name: Aside, seconds: float, problem: str) -> None:
        self.asides[name] = self.asides.get(name, 0.0) + seconds
        if self.probe == name:
            self.probe = None
            self.allowance.probe_ended()
        elif self.aside == name:
            self.aside = None
        if problem and name in PROBES:
            self.unchecked[name] = f"{own(name)} raised {problem}"


def own(probe: Probe) -> str:
    """How a probe is spoken of."""
    return f"accelbench's own probe `{probe}`"


def _excerpt(line: bytes) -> str:
    return repr(line[:100].decode(errors="replace")) + ("..." if len(line) > 100 else "")  # noqa: PLR2004
