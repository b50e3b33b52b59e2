"""Write the supervisor's log within a budget, and the headline into the termination message.

The log stays under 4 MiB whatever a launch prints and however many rounds there are. Each kind of line has a share of
its own, so that a flood of one never displaces another. A result always has room, and so have the checkpoints of the
largest run, because results compress to a quarter. A note has the number of lines left out.
"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from accelbench.delivery.log import (
    DocumentKind,
    Event,
    Headline,
    PhaseReached,
    digest_of,
    encode_document,
    encode_event,
)
from accelbench.document import printable
from accelbench_runner.supervisor.children import Channel

KIB = 1024
MAXIMUM_OUTPUT_BYTES_PER_LAUNCH = 16 * KIB
MAXIMUM_OUTPUT_LINE_BYTES = 2 * KIB

Share = Literal["output", "phase", "progress", "launch", "checkpoint", "result", "notice"]

SHARES: dict[Share, int] = {
    "output": 256 * KIB,
    "phase": 128 * KIB,
    "progress": 512 * KIB,
    "launch": 992 * KIB,
    "checkpoint": 1824 * KIB,  # 50 rounds of 16 variants take 1,360 KiB
    "result": 352 * KIB,  # 256 KiB that do not compress, as base64
    "notice": 32 * KIB,
}
"""Maximum bytes of each kind of line; together `MAXIMUM_LOG_BYTES`."""

_LINES: dict[Share, str] = {
    "output": "lines that launches printed",
    "phase": "phases reached",
    "progress": "progress events",
    "launch": "block series of launches",
    "checkpoint": "checkpoints",
    "result": "results",
    "notice": "notices",
}


class LogWriter:
    """Write lines to the container's log, each within the share of its kind."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._used: dict[Share, int] = dict.fromkeys(SHARES, 0)
        self._omitted: dict[Share, int] = {}

    def event(self, event: Event) -> None:
        """Write a progress event."""
        self._write("phase" if isinstance(event, PhaseReached) else "progress", [encode_event(event)])

    def document(self, kind: DocumentKind, identifier: str, text: str) -> str:
        """Write a document whole, or not at all if its share is used up; return its digest."""
        self._write(kind, list(encode_document(kind, identifier, text)))
        return digest_of(text)

    def notice(self, text: str) -> None:
        """Write a message of the supervisor for people."""
        self._write("notice", [f"accelbench: {printable(text)}"[:MAXIMUM_OUTPUT_LINE_BYTES]])

    def output(self, line: str) -> None:
        """Write a line that a launch printed; a prefix marks it."""
        self._write("output", [line])

    def omission_notes(self) -> tuple[str, ...]:
        """Return a note for each kind of line of which some were left out, with their number."""
        return tuple(
            f"{count} {_LINES[share]} left out of the log: their share of {SHARES[share] // KIB} KiB is used up"
            for share, count in self._omitted.items()
        )

    def _write(self, share: Share, lines: Sequence[str]) -> None:
        """Write all lines, or none if they exceed what is left of the share; log a notice at the first omission."""
        data = "".join(f"{line}\n" for line in lines).encode()
        if self._used[share] + len(data) > SHARES[share]:
            first = share not in self._omitted
            self._omitted[share] = self._omitted.get(share, 0) + 1
            if first and share != "notice":
                self.notice(f"{_LINES[share]} from here on left out: their share of the log is used up")
            return
        self._used[share] += len(data)
        # Unbuffered: nothing is lost if this process is killed, and a closed log is an error at once.
        unwritten = memoryview(data)
        while unwritten:
            unwritten = unwritten[os.write(self._descriptor, unwritten) :]


class OutputForwarder:
    """Forward what one launch prints: whole lines with a prefix, at most 16 KiB, and the number of bytes left out."""

    def __init__(self, log: LogWriter, label: str) -> None:
        self._log = log
        self._label = label
        self._unfinished: dict[Channel, bytes] = {}
        self._forwarded = 0
        self._dropped = 0

    def __call__(self, channel: Channel, data: bytes) -> None:
        """Forward the whole lines of `data`, and store the rest until its line ends or is too long."""
        if self._forwarded >= MAXIMUM_OUTPUT_BYTES_PER_LAUNCH:
            self._dropped += len(data)
            return
        *lines, rest = (self._unfinished.get(channel, b"") + data).split(b"\n")
        if len(rest) > MAXIMUM_OUTPUT_LINE_BYTES:
            lines, rest = [*lines, rest], b""
        self._unfinished[channel] = rest
        for line in lines:
            self._forward(channel, line)

    def finish(self) -> None:
        """Forward the last line if it has no line end, and report how much was left out."""
        for channel, rest in self._unfinished.items():
            if rest:
                self._forward(channel, rest)
        if self._dropped:
            self._log.notice(f"{self._label} printed {self._dropped} bytes more, which are left out")

    def _forward(self, channel: Channel, line: bytes) -> None:
        """Forward one line, cut to the maximum length; after the launch's maximum, drop it."""
        clipped = line[:MAXIMUM_OUTPUT_LINE_BYTES]
        self._dropped += len(line) - len(clipped)
        if self._forwarded + len(clipped) > MAXIMUM_OUTPUT_BYTES_PER_LAUNCH:
            self._forwarded = MAXIMUM_OUTPUT_BYTES_PER_LAUNCH
            self._dropped += len(clipped)
            return
        self._forwarded += len(clipped) + 1
        text = printable(clipped.decode(errors="replace"))[:MAXIMUM_OUTPUT_LINE_BYTES]
        self._log.output(f"[{self._label} {channel}] {text}")


class TerminationMessage:
    """Write the headline into a file that is a bind mount, so it is rewritten in place and never renamed."""

    def __init__(self, path: Path | None, *, complain: Callable[[str], None]) -> None:
        self._path = path
        self._complain = complain

    def write(self, headline: Headline) -> None:
        """Replace the content in one write, so that a kill leaves one whole headline, the old or the new."""
        if self._path is None:
            return
        data = headline.to_message().encode()
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                # Spaces hide the rest of a longer old headline until the file is truncated; JSON allows them.
                os.pwrite(descriptor, data.ljust(os.fstat(descriptor).st_size), 0)
                os.ftruncate(descriptor, len(data))
            finally:
                os.close(descriptor)
        except OSError as error:
            self._complain(f"the termination message {self._path} cannot be written: {error.strerror}")
            self._path = None
