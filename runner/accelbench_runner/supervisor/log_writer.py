"""Write the supervisor's log within a budget, and the headline into the termination message.

The log stays under 4 MiB whatever a launch prints and however many rounds there are. Each kind of line has a share of
its own, so that many lines of one kind leave no less space for another. There is always space for the result, and for
the checkpoints of the largest run, because results compress to a quarter. A note counts the lines that are left out.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
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
from accelbench.document import escape_unprintable, shorten
from accelbench.machine.output import print_to
from accelbench_runner.supervisor.children import CHUNK_BYTES, Channel

KIB = 1024
MAXIMUM_OUTPUT_BYTES_PER_LAUNCH = 16 * KIB
MAXIMUM_OUTPUT_LINE_BYTES = 2 * KIB

LineKind = Literal["output", "phase", "progress", "launch", "checkpoint", "result", "notice"]

MAXIMUM_BYTES_BY_KIND: dict[LineKind, int] = {
    "output": 256 * KIB,
    "phase": 128 * KIB,
    "progress": 512 * KIB,
    "launch": 992 * KIB,
    "checkpoint": 1824 * KIB,  # 50 rounds of 16 variants take 1,360 KiB
    "result": 352 * KIB,  # 256 KiB that do not compress, as base64
    "notice": 32 * KIB,
}
"""Maximum bytes of each kind of line; together `MAXIMUM_LOG_BYTES`."""

_NAMES: dict[LineKind, str] = {
    "output": "lines that launches printed",
    "phase": "phases reached",
    "progress": "progress events",
    "launch": "block series of launches",
    "checkpoint": "checkpoints",
    "result": "results",
    "notice": "notices",
}


class LogWriter:
    """Write lines to the container's log, of each kind at most `MAXIMUM_BYTES_BY_KIND`."""

    def __init__(self, descriptor: int) -> None:
        """Prepare to write to the file descriptor of the container's log."""
        self._descriptor = descriptor
        self._written_bytes: dict[LineKind, int] = dict.fromkeys(MAXIMUM_BYTES_BY_KIND, 0)
        self._omitted_counts: dict[LineKind, int] = {}

    def event(self, event: Event) -> None:
        """Write a progress event."""
        self._write("phase" if isinstance(event, PhaseReached) else "progress", [encode_event(event)])

    def document(self, kind: DocumentKind, identifier: str, text: str) -> str:
        """Write a document if its kind has space left; return the document's digest in either case.

        The pod's termination message names the last document by its digest.
        """
        self._write(kind, list(encode_document(kind, identifier, text)))
        return digest_of(text)

    def notice(self, text: str) -> None:
        """Write a message of the supervisor for people."""
        self._write("notice", [shorten(f"accelbench: {escape_unprintable(text)}", MAXIMUM_OUTPUT_LINE_BYTES)])

    def output(self, line: str) -> None:
        """Write a line that a launch printed. `line` begins with the launch's name."""
        self._write("output", [line])

    def omission_notes(self) -> tuple[str, ...]:
        """Return a note for each kind of line that exceeded its share of the log, with the number of lines left out."""
        shares = {kind: f"{maximum_bytes // KIB} KiB" for kind, maximum_bytes in MAXIMUM_BYTES_BY_KIND.items()}
        return tuple(
            f"{count} {_NAMES[kind]} left out of the log: their share of {shares[kind]} is used up"
            for kind, count in self._omitted_counts.items()
        )

    def _write(self, kind: LineKind, lines: Sequence[str]) -> None:
        """Write all `lines`, or none of them if their kind would exceed its maximum bytes."""
        data = "".join(f"{line}\n" for line in lines).encode()
        if self._written_bytes[kind] + len(data) > MAXIMUM_BYTES_BY_KIND[kind]:
            is_first_omission = kind not in self._omitted_counts
            self._omitted_counts[kind] = self._omitted_counts.get(kind, 0) + 1
            if is_first_omission and kind != "notice":  # a notice about notices would exceed the maximum too
                self.notice(f"{_NAMES[kind]} from here on left out: their share of the log is used up")
            return
        self._written_bytes[kind] += len(data)
        # `os.write` has no buffer: nothing is lost if this process is killed, and a closed log raises at once.
        unwritten = memoryview(data)
        while unwritten:
            written_bytes = os.write(self._descriptor, unwritten)
            unwritten = unwritten[written_bytes:]


class OutputForwarder:
    """Forward what one launch prints to the log: whole lines with a prefix, at most 16 KiB."""

    def __init__(self, log: LogWriter, label: str) -> None:
        """Prepare to forward output to `log`; each line begins with `label`, such as the name of the launch."""
        self._log = log
        self._label = label
        self._incomplete_lines: dict[Channel, bytes] = {}
        self._forwarded_bytes = 0
        self._dropped_bytes = 0

    def __call__(self, channel: Channel, data: bytes) -> None:
        """Forward the lines that `data` completes to the log; keep an incomplete last line until more data arrives."""
        if self._forwarded_bytes >= MAXIMUM_OUTPUT_BYTES_PER_LAUNCH:
            self._dropped_bytes += len(data)
            return
        *lines, last_line = (self._incomplete_lines.get(channel, b"") + data).split(b"\n")
        if len(last_line) > MAXIMUM_OUTPUT_LINE_BYTES:  # an endless line must not fill the memory
            lines.append(last_line)
            last_line = b""
        self._incomplete_lines[channel] = last_line
        for line in lines:
            self._forward(channel, line)

    def finish(self) -> None:
        """Forward the incomplete last lines, and log how many bytes were dropped, when the launch has ended."""
        for channel, line in self._incomplete_lines.items():
            if line:
                self._forward(channel, line)
        if self._dropped_bytes:
            self._log.notice(f"{self._label} printed {self._dropped_bytes} bytes more, which are left out")

    def _forward(self, channel: Channel, line: bytes) -> None:
        """Write a line to the log, cut to the maximum length; drop it if the launch has printed too much."""
        clipped = line[:MAXIMUM_OUTPUT_LINE_BYTES]
        self._dropped_bytes += len(line) - len(clipped)
        if self._forwarded_bytes + len(clipped) > MAXIMUM_OUTPUT_BYTES_PER_LAUNCH:
            self._forwarded_bytes = MAXIMUM_OUTPUT_BYTES_PER_LAUNCH  # so that later lines are dropped, even short ones
            self._dropped_bytes += len(clipped)
            return
        self._forwarded_bytes += len(clipped) + 1  # 1 for the line break
        text = escape_unprintable(clipped.decode(errors="replace"))[:MAXIMUM_OUTPUT_LINE_BYTES]
        self._log.output(f"[{self._label} {channel}] {text}")


@contextmanager
def forward_output(log: LogWriter, label: str) -> Iterator[None]:
    """Write to the log what this process prints within the `with` block, for example while it loads a user's script."""
    descriptor = os.memfd_create(label)
    try:
        with print_to(descriptor):
            yield
    finally:
        forward = OutputForwarder(log, label)
        os.lseek(descriptor, 0, os.SEEK_SET)
        while data := os.read(descriptor, CHUNK_BYTES):
            forward("stdout", data)
        forward.finish()
        os.close(descriptor)


class TerminationMessage:
    """Write the headline into a file that is a bind mount, so it is rewritten in place and never renamed."""

    def __init__(self, path: Path | None, *, complain: Callable[[str], None]) -> None:
        """Prepare to write to the file `path`, or nowhere if it is None; call `complain` if writing fails."""
        self._path = path
        self._complain = complain

    def write(self, headline: Headline) -> None:
        """Replace the file's content by the headline, which describes the runner's progress.

        The new text is written by one call, so that after a kill the file has the whole old or the whole new text. A
        problem is passed to `complain` once; after that, nothing is written.
        """
        if self._path is None:
            return
        data = headline.to_message().encode()
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                # Until the file is truncated, spaces cover the end of a longer old text; JSON allows spaces there.
                old_bytes = os.fstat(descriptor).st_size
                os.pwrite(descriptor, data.ljust(old_bytes), 0)
                os.ftruncate(descriptor, len(data))
            finally:
                os.close(descriptor)
        except OSError as error:
            self._complain(f"the termination message {self._path} cannot be written: {error.strerror}")
            self._path = None  # so that the problem is logged once
