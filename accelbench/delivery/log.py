"""Carry a result out of its pod: as lines of the container's log, and a headline as its termination message.

The runner writes (`accelbench_runner.supervisor.log_writer`); the command line and the operator read (`read_log`). A
reader trusts nothing: the container runtime splits lines at 16 KiB, standard error can land between the parts, a log
may begin after its last rotation or be read twice, and any program can print a line that looks like these. A document
counts only if all its lines are there and its digest is right; other marked lines are reported.

A line is `accelbench/1 KIND ID INDEX/COUNT SHA256 PAYLOAD`. The payload is a slice of base64 of zlib of JSON; the
digest is that of the whole JSON. A line with an event is `accelbench/1 event JSON`.
"""

import base64
import hashlib
import re
import zlib
from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple, cast

from pydantic import Field, TypeAdapter, ValidationError

from accelbench.api.reasons import FailureReason
from accelbench.api.result import MAXIMUM_BYTES, Phase, Result, SpeedupEstimate
from accelbench.document import DecimalString, Document, Line, shorten

MARK = "accelbench/1"
MAXIMUM_LINE_BYTES = 8 * 1024
"""Maximum size of a line: container runtimes split lines at 16 KiB."""
MAXIMUM_LOG_BYTES = 4 * 1024 * 1024
"""Maximum size of what a runner writes into its log."""
MAXIMUM_DOCUMENT_BYTES = 8 * 1024 * 1024
"""Maximum size of a document's JSON."""
MAXIMUM_HEADLINE_BYTES = 3 * 1024
"""Kubelets cut a termination message after 4 KiB."""
PAYLOAD_CHARACTERS = 7800
"""Maximum number of Base64 characters in a line: with what comes before them, a line has less than
`MAXIMUM_LINE_BYTES`."""
MAXIMUM_REPORTED = 20
"""Maximum number of problems of each kind that are listed for a log."""
MAXIMUM_INCOMPLETE = 16
"""Maximum number of documents that are gathered at once. The supervisor writes one after another; a log that is read
twice, or output between the lines, does not mix more than a few."""

DocumentKind = Literal["checkpoint", "result", "launch"]
MAXIMUM_BYTES_BY_KIND: Mapping[DocumentKind, int] = {
    "checkpoint": 2 * MAXIMUM_BYTES,
    "result": 2 * MAXIMUM_BYTES,
    "launch": MAXIMUM_DOCUMENT_BYTES,
}
"""Maximum bytes of each kind's JSON; the API server refuses a result of more than `MAXIMUM_BYTES`."""
Unfinished = Literal["interrupted", "time-limit", "probe"]
"""Reason why a launch ended early without a fault of its variant: the supervisor ended it, or a probe of accelbench
failed. After a failed probe, the launch is repeated without it."""


class LaunchStarted(Document):
    """Announce that a launch begins, the `position`-th of `of` in its round."""

    type: Literal["launch-started"] = "launch-started"
    variant: Line
    round: int
    position: int
    of: int


class PhaseReached(Document):
    """Announce that the current launch has entered a phase."""

    type: Literal["phase-reached"] = "phase-reached"
    phase: Phase


class LaunchFinished(Document):
    """Announce that a launch ended. Its times follow with `RoundFinished`, when its outputs have been checked."""

    type: Literal["launch-finished"] = "launch-finished"
    variant: Line
    round: int
    """The round; 0 if it turned out before the first round that the variant cannot be launched."""
    failure: FailureReason | None = None
    unfinished: Unfinished | None = None
    wall_seconds: DecimalString


class TimeSoFar(Document):
    """Hold a variant's time over the rounds that count so far, or the checks because of which it has no time."""

    variant: Line
    seconds: DecimalString | None = None
    invalid: tuple[Line, ...] = ()


class RoundFinished(Document):
    """Announce that a round is complete and judged, with all times and comparisons so far."""

    type: Literal["round-finished"] = "round-finished"
    round: int
    quarantined: tuple[Line, ...] = ()
    """Disturbances because of which the round counts for no variant."""
    advice: Line | None = None
    """How to avoid these disturbances."""
    times: tuple[TimeSoFar, ...] = ()
    """Times of the variants that have not failed."""
    noisy: tuple[Line, ...] = ()
    """Disturbances despite which the round counts, because the case accepts noise."""
    comparisons: tuple[SpeedupEstimate, ...] = ()


class MachineSeen(Document):
    """List what may disturb the case, as seen before the first launch, a sentence each."""

    type: Literal["machine-seen"] = "machine-seen"
    warnings: tuple[Line, ...] = ()


Event = LaunchStarted | PhaseReached | LaunchFinished | RoundFinished | MachineSeen
_event: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="type")])


class Headline(Document):
    """Describe the runner's progress, as its pod's termination message.

    It is rewritten before each launch, so that after a kill it names the variant that was running.
    """

    format: Literal["accelbench.dev/headline/v1alpha1"] = "accelbench.dev/headline/v1alpha1"
    case: Line
    attempt: int
    state: Literal["running", "finished", "failed"]
    running: Line | None = None
    """Variant of the current launch, while `state` is `running`."""
    round: int = Field(default=0, ge=0)
    digest: str | None = None
    """SHA-256 of the JSON of the result or, before there is a result, of the last checkpoint."""
    comparisons: tuple[SpeedupEstimate, ...] = ()
    message: Line = ""

    def to_message(self) -> str:
        """Return the headline, the runner's progress, as JSON of at most `MAXIMUM_HEADLINE_BYTES`.

        Until the JSON fits, comparisons are left out from the end, and then the message is shortened. Raises ValueError
        if it is too long even without them.
        """
        headline = self
        while True:
            text = headline.to_json()
            if len(text.encode()) <= MAXIMUM_HEADLINE_BYTES:
                return text
            if headline.comparisons:
                headline = headline.model_copy(update={"comparisons": headline.comparisons[:-1]})
            elif headline.message:
                first_part = shorten(headline.message, 3 * len(headline.message) // 4)
                headline = headline.model_copy(update={"message": first_part})
            else:
                raise ValueError(f"{headline.case[:80]}: a headline of more than {MAXIMUM_HEADLINE_BYTES} bytes")


def digest_of(text: str) -> str:
    """Return the SHA-256 of a document's JSON, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def encode_document(kind: DocumentKind, identifier: str, text: str) -> Iterator[str]:
    """Yield the log lines of a document: slices of its JSON `text`, compressed and in Base64.

    `identifier` has no spaces, and is unique among documents of `kind`.
    """
    payload = base64.b64encode(zlib.compress(text.encode(), 9)).decode()
    starts = range(0, len(payload), PAYLOAD_CHARACTERS)
    slices = [payload[start : start + PAYLOAD_CHARACTERS] for start in starts]
    digest = digest_of(text)
    for index, payload_slice in enumerate(slices, start=1):
        yield f"{MARK} {kind} {identifier} {index}/{len(slices)} {digest} {payload_slice}"


def encode_event(event: Event) -> str:
    """Return the log line of `event`; raises ValueError if the line is too long.

    From a `RoundFinished`, comparisons are left out until the line fits.
    """
    while True:
        line = f"{MARK} event {event.to_json()}"
        if len(line.encode()) <= MAXIMUM_LINE_BYTES:
            return line
        if not (isinstance(event, RoundFinished) and event.comparisons):
            raise ValueError(f"an event of more than {MAXIMUM_LINE_BYTES} bytes: {line[:80]}")
        event = event.model_copy(update={"comparisons": event.comparisons[:-1]})


def parse_event(line: str) -> Event | None:
    """Return the event that a log line contains; None if the line has no valid event."""
    prefix = f"{MARK} event "
    if not line.startswith(prefix):
        return None
    try:
        return _event.validate_json(line[len(prefix) :])
    except ValueError:  # pydantic's ValidationError, or UnicodeEncodeError for half a surrogate pair
        return None


class _Identity(NamedTuple):
    """Identify a document by the fields that all its lines share."""

    kind: DocumentKind
    identifier: str
    lines: int
    """Number of lines of the document."""
    digest: str


@dataclass(frozen=True)
class DeliveredDocument:
    """Hold a whole document, compressed: a few hundred kilobytes of log can inflate to as many megabytes."""

    kind: DocumentKind
    identifier: str
    digest: str
    payload: str
    """Base64 of zlib of its JSON."""

    @property
    def text(self) -> str:
        """Return the document's JSON; empty if the payload is invalid or too large."""
        return _inflate(self.payload, MAXIMUM_BYTES_BY_KIND[self.kind])

    @property
    def problem(self) -> str:
        """Return why the document must not be used; empty if the document is intact."""
        if digest_of(self.text) == self.digest:
            return ""
        maximum_bytes = MAXIMUM_BYTES_BY_KIND[self.kind]
        if _is_larger(self.payload, maximum_bytes):
            return f"too large: more than {maximum_bytes // 1024} KiB; compare fewer variants, or measure fewer rounds"
        return "altered: its lines do not have the digest that they name"


@dataclass(frozen=True)
class LogDocuments:
    """Hold the complete documents of a log, in order, and the problems of its other documents."""

    documents: tuple[DeliveredDocument, ...] = ()
    problems: tuple[str, ...] = ()

    def latest(self, kind: DocumentKind, digest: str | None = None) -> Result | None:
        """Return the last valid result among the documents of this kind; None if there is none.

        With `digest`, only the document with this digest counts.
        """
        for document in reversed(self.documents):
            if document.kind != kind or (digest is not None and document.digest != digest):
                continue
            try:
                return Result.model_validate_json(document.text)
            except ValidationError:
                continue
        return None


# The module's docstring describes the line.
_DOCUMENT_LINE = re.compile(
    re.escape(MARK)
    + " (checkpoint|result|launch) ([!-~]{1,256}) ([0-9]{1,4})/([0-9]{1,4}) ([0-9a-f]{64}) ([A-Za-z0-9+/=]+)"
)


_MARKED_LINE = re.compile(rb"^" + re.escape(MARK).encode() + rb" [^\n]*", re.MULTILINE)


def read_log(lines: Iterable[str], kinds: Container[DocumentKind] = frozenset(MAXIMUM_BYTES_BY_KIND)) -> LogDocuments:
    """Return the intact documents of `kinds` in a log, and a problem for each truncated or altered document or line.

    The log's lines may be missing, interleaved, repeated or altered.
    """
    reader = LogReader(kinds)
    for number, line in enumerate(lines, start=1):
        if line.startswith(f"{MARK} "):
            reader.add(number, line)
    return reader.finish()


class LogReader:
    """Find the documents of a log that arrives in pieces: `feed` the pieces, then `finish`.

    Any program can print what looks like a document. So at most `MAXIMUM_INCOMPLETE` documents are gathered at once,
    and only the newest complete documents are kept.
    """

    def __init__(
        self, kinds: Container[DocumentKind] = frozenset(MAXIMUM_BYTES_BY_KIND), newest: int | None = None
    ) -> None:
        """Prepare to read documents of these kinds, and to keep the last `newest` of them; None keeps all."""
        self._kinds = kinds
        self._incomplete: dict[_Identity, dict[int, str]] = {}
        """The lines of each document that is not complete, by their position."""
        self._complete: deque[tuple[_Identity, str]] = deque(maxlen=newest)
        """Documents with their payloads, which have not been verified."""
        self._problems = _Problems("documents that are not whole")
        self._unreadable = _Problems(f"lines that begin with {MARK} cannot be parsed")
        self._lines = 0
        """Number of complete lines that have been fed."""
        self._incomplete_line = b""
        """Beginning of a line whose end has not been fed yet."""

    def feed(self, piece: bytes) -> None:
        """Read the next piece of the log, which may end within a line."""
        complete_lines, newline, incomplete_line = (self._incomplete_line + piece).rpartition(b"\n")
        self._read_lines(complete_lines)
        self._lines += complete_lines.count(b"\n") + len(newline)  # `newline` ends the last complete line, if any
        # The runner's lines are never longer. If another program's line is, its beginning is enough to report it.
        self._incomplete_line = incomplete_line[: MAXIMUM_LINE_BYTES + 1]

    def finish(self) -> LogDocuments:
        """Return the documents of the whole log, after the last piece."""
        self._read_lines(self._incomplete_line)
        intact: dict[_Identity, DeliveredDocument] = {}
        altered: list[str] = []
        # A document can be in the log twice, once altered and once intact. Of intact copies, the newest is kept.
        for identity, payload in reversed(self._complete):
            if identity in intact:
                continue
            document = DeliveredDocument(identity.kind, identity.identifier, identity.digest, payload)
            if problem := document.problem:
                altered.append(f"{identity.kind} {identity.identifier}: {problem}")
            else:
                intact[identity] = document
        for problem in reversed(altered):  # in the order of the log
            self._problems.add(problem)
        truncated = [identity for identity in self._incomplete if identity not in intact]
        for identity in truncated:
            self._report_truncated(identity)
        problems = (*self._unreadable.reports(), *self._problems.reports())
        return LogDocuments(tuple(reversed(intact.values())), problems)

    def add(self, number: int, line: str) -> None:
        """Read one line of the log, which begins with `MARK`; `number` is its line number, for problems."""
        parsed = _parse_document_line(line)
        if parsed is None:
            if parse_event(line) is None:  # events have the same mark
                self._unreadable.add(f"line {number}: altered: begins with {MARK} and cannot be parsed")
            return
        identity, position, payload_slice = parsed
        if identity.kind not in self._kinds:
            return  # the caller did not ask for such documents
        slices = self._incomplete.setdefault(identity, {})
        slices[position] = payload_slice
        if len(slices) == identity.lines:
            del self._incomplete[identity]
            payload = "".join(slices[number] for number in sorted(slices))
            self._complete.append((identity, payload))
        elif len(self._incomplete) > MAXIMUM_INCOMPLETE:
            oldest = next(iter(self._incomplete))
            self._report_truncated(oldest)

    def _read_lines(self, block: bytes) -> None:
        """Read the lines that begin with `MARK`, those of documents and events, in a block of complete lines."""
        line_number, counted_to = self._lines + 1, 0
        for match in _MARKED_LINE.finditer(block):
            # Count the lines between the last match and this one.
            line_number += block.count(b"\n", counted_to, match.start())
            counted_to = match.start()
            self.add(line_number, match.group().decode(errors="replace"))

    def _report_truncated(self, identity: _Identity) -> None:
        """Drop the lines that were gathered of an incomplete document, and report the document as truncated."""
        slices = self._incomplete.pop(identity)
        line_count = f"{len(slices)} of {identity.lines} lines"
        self._problems.add(f"{identity.kind} {identity.identifier}: truncated: {line_count}")


class _Problems:
    """Hold the first `MAXIMUM_REPORTED` problems of one kind, and count the others."""

    def __init__(self, description: str) -> None:
        """Begin without problems; `reports` ends in `3 more DESCRIPTION` for those that are only counted."""
        self._description = description
        self._first_problems: list[str] = []
        self._further_count = 0

    def add(self, problem: str) -> None:
        """Store a problem or, after the first `MAXIMUM_REPORTED`, only count it."""
        if len(self._first_problems) < MAXIMUM_REPORTED:
            self._first_problems.append(problem)
        else:
            self._further_count += 1

    def reports(self) -> Iterator[str]:
        """Yield the first problems, and a line with the number of further ones."""
        yield from self._first_problems
        if self._further_count:
            yield f"{self._further_count} more {self._description}"


def _parse_document_line(line: str) -> tuple[_Identity, int, str] | None:
    """Return the document to which a log line belongs, the line's position in it from 1, and the line's payload.

    Returns None if the line is malformed.
    """
    match = _DOCUMENT_LINE.fullmatch(line.rstrip("\r\n"))
    if match is None:
        return None
    kind, identifier, index, count, digest, payload_slice = match.groups()
    maximum_count = MAXIMUM_DOCUMENT_BYTES // PAYLOAD_CHARACTERS
    if not 1 <= int(index) <= int(count) <= maximum_count:
        return None
    identity = _Identity(cast("DocumentKind", kind), identifier, int(count), digest)
    return identity, int(index), payload_slice


def _inflate(payload: str, maximum_bytes: int) -> str:
    """Return the text of a compressed payload in Base64; empty if it is invalid, or has more than `maximum_bytes`."""
    decompressor = zlib.decompressobj()
    try:
        text = decompressor.decompress(base64.b64decode(payload, validate=True), maximum_bytes).decode()
    except (ValueError, zlib.error):
        return ""
    # False if the payload ends too early, or if its text has more than `maximum_bytes`.
    is_complete = decompressor.eof and not decompressor.unconsumed_tail
    return text if is_complete else ""


def _is_larger(payload: str, maximum_bytes: int) -> bool:
    """Return True if a compressed payload in Base64 is valid, and has more than `maximum_bytes` when decompressed."""
    try:
        data = zlib.decompressobj().decompress(base64.b64decode(payload, validate=True), maximum_bytes + 1)
    except (ValueError, zlib.error):
        return False
    return len(data) > maximum_bytes
