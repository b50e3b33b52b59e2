"""Collect the messages of a launch, and forward what it prints to the log."""

from collections.abc import Callable
from typing import Any

from pydantic import ValidationError

from accelbench.api.result import Phase
from accelbench.launch.facts import PROBES, Probe
from accelbench.launch.record import Activity, Block, PhaseRecord
from accelbench_runner.protocol import (
    MAXIMUM_MESSAGE_BYTES,
    ActivityEnded,
    ActivityStarted,
    BlockTimed,
    Done,
    FactsReported,
    Failed,
    FinalMessage,
    Measured,
    Message,
    NeedsGradients,
    PhaseEnded,
    PhaseStarted,
    parse_message,
)
from accelbench_runner.supervisor.allowance import Allowance
from accelbench_runner.supervisor.children import Channel

MAXIMUM_LAUNCH_BYTES = 4 * MAXIMUM_MESSAGE_BYTES
"""Maximum bytes of all messages of a launch; a launch that sends more has failed."""
EXIT_SECONDS = 10.0
"""Maximum time to exit after the final message: frameworks tear down threads and devices."""
TAIL_BYTES = 64 * 1024
"""Bytes of standard error to keep: faulthandler writes up to 100 calls a thread, then all extension modules."""
MAXIMUM_EXCERPT_BYTES = 100
"""Maximum bytes of an unreadable message that the error shows."""
REPEATING_PHASES: frozenset[Phase] = frozenset({"warm-up", "steady"})
"""Phases in which the steps run again and again."""

Forward = Callable[[Channel, bytes], None]


class LaunchListener:
    """Collect a launch's messages, and pass its output to `forward`."""

    def __init__(self, *, forward: Forward, phase_reached: Callable[[Phase], None], allowance: Allowance) -> None:
        """Prepare to listen to one launch: pass its output to `forward`, and each phase that begins to `phase_reached`.

        `allowance` decides how long the launch may take.
        """
        self._forward = forward
        self.allowance = allowance
        self._phase_reached = phase_reached
        self._incomplete_line = b""
        self._message_bytes = 0
        self._messages_closed = False
        self.phases: list[PhaseRecord] = []
        self.blocks: list[Block] = []
        self.facts: dict[str, Any] = {}
        """Facts as received, not parsed yet."""
        self.phase: Phase | None = None
        self.activity_seconds: dict[Activity, float] = {}
        """Seconds of each activity outside the phases."""
        self.activity: Activity | None = None
        """The activity outside the phases that is running."""
        self.probe: Probe | None = None
        """The running probe; None also while an activity of the same name makes calls of the variant."""
        self.unchecked: dict[Probe, str] = {}
        """Why a probe has no result."""
        self.measured = False
        """True once everything that a verdict needs was received."""
        self.final_message: FinalMessage | None = None
        self.protocol_error: str | None = None
        """Problem of the first unreadable message; later messages are ignored."""
        self.stderr_tail = b""
        """The end of standard error, where faulthandler reports a crash."""
        self.printed_bytes = 0
        """Bytes printed in the phases whose steps repeat."""

    def received(self, channel: Channel, data: bytes) -> None:
        """Handle data that the launch wrote: parse its messages, or forward what it printed to the log."""
        if channel == "messages":
            self._receive_messages(data)
            return
        if channel == "stderr":
            self.stderr_tail = (self.stderr_tail + data)[-TAIL_BYTES:]
        if self.phase in REPEATING_PHASES:
            self.printed_bytes += len(data)
        self._forward(channel, data)

    def _receive_messages(self, data: bytes) -> None:
        """Parse the messages that `data` completes, and keep an incomplete last line until more data arrives."""
        if self.final_message or self.protocol_error:
            return
        self._message_bytes += len(data)
        *lines, self._incomplete_line = (self._incomplete_line + data).split(b"\n")
        for line in lines:
            self._parse(line)
        if self._message_bytes > MAXIMUM_LAUNCH_BYTES or len(self._incomplete_line) > MAXIMUM_MESSAGE_BYTES:
            self.protocol_error = f"it sent {self._message_bytes} bytes of messages, more than a launch may"

    def closed(self, channel: Channel) -> None:
        """Handle the end of `channel`; a last message without a line break is an error."""
        if channel == "messages":
            self._messages_closed = True
            if self._incomplete_line and not self.final_message and not self.protocol_error:
                self.protocol_error = f"its last message is cut off: {_quote_beginning(self._incomplete_line)}"

    def grace_seconds(self) -> float | None:
        """Return within how many seconds the launch must exit; None as long as it may still send messages."""
        if self.protocol_error:
            return 0.0  # an unreadable message has ended the launch
        return EXIT_SECONDS if self.final_message or self._messages_closed else None

    def seconds_left(self, elapsed: float) -> float:
        """Return the seconds until the launch's nearest limit, `elapsed` seconds after the launch began."""
        return self.allowance.seconds_left(elapsed)

    def _parse(self, line: bytes) -> None:
        """Parse a message and store what it reports; ignore it after the final message or an unreadable one."""
        if self.final_message or self.protocol_error:
            return
        try:
            message = parse_message(line)
        except ValidationError as error:
            problem = error.errors(include_url=False, include_input=False)[0]["msg"]
            self.protocol_error = f"a message cannot be read ({problem}): {_quote_beginning(line)}"
            return
        self._apply(message)

    def _apply(self, message: Message) -> None:
        """Store what a message from the launch reports.

        An activity is work outside the launch's phases. A probe is an activity of accelbench's own with its own time
        limit: if it hangs or crashes, the variant has not failed.
        """
        match message:
            case PhaseStarted(phase=phase):
                self.phase = phase
                self._phase_reached(phase)
            case PhaseEnded(phase=phase, seconds=seconds, parts=parts):
                self.phases.append(PhaseRecord(phase=phase, seconds=seconds, parts=parts))
            case ActivityStarted(name=name, alone=alone):
                # An activity that is not `alone` also calls the variant's program, so it is not treated as a probe.
                if alone and name in PROBES:
                    self.probe = name
                    self.allowance.probe_began()
                else:
                    self.activity = name
            case ActivityEnded(name=name, seconds=seconds, problem=problem):
                self._end_activity(name, seconds, problem)
            case Measured():
                self.measured = True
            case FactsReported(values=values):
                self.facts |= values
            case BlockTimed(units=units, seconds=seconds, response_seconds=response):
                self.blocks.append(Block(units=units, seconds=seconds, response_seconds=response))
            case Done() | Failed() | NeedsGradients():
                self.final_message = message

    def _end_activity(self, name: Activity, seconds: float, problem: str) -> None:
        """Store the seconds of an activity outside the launch's phases, and the problem of a probe that failed."""
        self.activity_seconds[name] = self.activity_seconds.get(name, 0.0) + seconds
        if self.probe == name:
            self.probe = None
            self.allowance.probe_ended()
        elif self.activity == name:
            self.activity = None
        if problem and name in PROBES:
            self.unchecked[name] = f"{describe_probe(name)} raised {problem}"


class OutputListener:
    """Pass on what a child prints, and limit how long it runs; its answer is read from a file after its end."""

    def __init__(self, forward: Forward, limit_seconds: float) -> None:
        """Prepare to pass the child's output to `forward`, and to stop the child after `limit_seconds`."""
        self.stderr_tail = b""
        """The end of standard error, where faulthandler reports a crash."""
        self._forward = forward
        self._limit_seconds = limit_seconds

    def received(self, channel: Channel, data: bytes) -> None:
        """Forward what the child printed to the log, and keep the end of its standard error."""
        if channel == "stderr":
            self.stderr_tail = (self.stderr_tail + data)[-TAIL_BYTES:]
        self._forward(channel, data)

    def closed(self, channel: Channel) -> None:
        """Do nothing: the child may close its output and live on."""

    def grace_seconds(self) -> float | None:
        """Return None: only the limit applies."""
        return None

    def seconds_left(self, elapsed: float) -> float:
        """Return the seconds until the child's limit."""
        return self._limit_seconds - elapsed


def describe_probe(probe: Probe) -> str:
    """Return the probe's name as messages show it."""
    return f"accelbench's own probe `{probe}`"


def _quote_beginning(line: bytes) -> str:
    """Quote the beginning of a message, at most `MAXIMUM_EXCERPT_BYTES`."""
    beginning = repr(line[:MAXIMUM_EXCERPT_BYTES].decode(errors="replace"))
    return f"{beginning}..." if len(line) > MAXIMUM_EXCERPT_BYTES else beginning
