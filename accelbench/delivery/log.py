"""How a result leaves the pod: numbered, digested lines of the container's log, and a headline as termination message.

The runner writes (`accelbench_runner.supervisor.log_writer`), the command line and the operator read (`read_log`).
Nothing here trusts what it reads: the container runtime splits lines at 16 KiB and standard error can land between the
parts, a log may begin after its last rotation or be read twice, and anyone can print a line that looks like ours. A
document counts only when every line of it is there and its digest is right; what is ours and not whole is reported.

One line is `accelbench/1 KIND ID INDEX/COUNT SHA256 PAYLOAD`: payload is a slice of base64 of zlib of JSON, the digest
is that of the JSON, whole. Events are `accelbench/1 event JSON`.
"""

import base64
import hashlib
import re
import zlib
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple, cast

from pydantic import Field, TypeAdapter, ValidationError

from accelbench.api.reasons import FailureReason
from accelbench.api.result import MAXIMUM_BYTES, Phase, Result, SpeedupEstimate
from accelbench.document import DecimalString, Document, Line

MARK = "accelbench/1"
MAXIMUM_LINE_BYTES = 8 * 1024
MAXIMUM_LOG_BYTES = 4 * 1024 * 1024
MAXIMUM_DOCUMENT_BYTES = 8 * 1024 * 1024
MAXIMUM_HEADLINE_BYTES = 3 * 1024
PAYLOAD_CHARACTERS = 7800
MAXIMUM_REPORTED = 20
"""Lines, and documents, that are named in what is said of a log."""

DocumentKind = Literal["checkpoint", "result", "launch"]
LARGEST: Mapping[DocumentKind, int] = {
    "checkpoint": 2 * MAXIMUM_BYTES,
    "result": 2 * MAXIMUM_BYTES,
    "launch": MAXIMUM_DOCUMENT_BYTES,
}
"""Bytes of JSON; an API server takes no larger result than `MAXIMUM_BYTES`."""
Unfinished = Literal["interrupted", "time-limit", "probe"]
"""Why a launch ended before it had measured, and no variant is to blame: we ended it, or a probe of accelbench's own
did; then it is made again without that probe."""


class LaunchStarted(Document):
    """A launch begins: `position` of `of` in its round."""

    type: Literal["launch-started"] = "launch-started"
    variant: Line
    round: int
    position: int
    of: int


class PhaseReached(Document):
    """The launch under way has entered a phase."""

    type: Literal["phase-reached"] = "phase-reached"
    phase: Phase


class LaunchFinished(Document):
    """A launch ended. What it measured is said when its round is judged: its outputs have not been looked at yet."""

    type: Literal["launch-finished"] = "launch-finished"
    variant: Line
    round: int
    failure: FailureReason | None = None
    unfinished: Unfinished | None = None
    wall_seconds: DecimalString


class TimeNow(Document):
    """A variant's time over the rounds that count so far, or the checks for which it has none."""

    variant: Line
    seconds: DecimalString | None = None
    invalid: tuple[Line, ...] = ()


class RoundFinished(Document):
    """A round is complete and judged; this is where times and comparisons stand."""

    type: Literal["round-finished"] = "round-finished"
    round: int
    quarantined: tuple[Line, ...] = ()
    """What disturbed it; then it counts for no variant."""
    advice: Line | None = None
    """What to do about what disturbed it."""
    times: tuple[TimeNow, ...] = ()
    """Of the variants that have not failed."""
    noisy: tuple[Line, ...] = ()
    """What disturbed it; it counts all the same, as the case accepts noise."""
    comparisons: tuple[SpeedupEstimate, ...] = ()


class MachineSeen(Document):
    """A look at the machine before the first launch: what may disturb the case, a sentence each."""

    type: Literal["machine-seen"] = "machine-seen"
    warnings: tuple[Line, ...] = ()


Event = LaunchStarted | PhaseReached | LaunchFinished | RoundFinished | MachineSeen
_event: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="type")])


class Headline(Document):
    """The termination message: rewritten before each launch, so that a killed container still says who did it."""

    format: Literal["accelbench.dev/headline/v1alpha1"] = "accelbench.dev/headline/v1alpha1"
    case: Line
    attempt: int
    state: Literal["running", "finished", "failed"]
    running: Line | None = None
    """The variant that is about to run, while `state` is `running`."""
    round: int = Field(default=0, ge=0)
    digest: str | None = None
    """SHA-256 of the result's JSON, once there is one; of the last checkpoint's before."""
    comparisons: tuple[SpeedupEstimate, ...] = ()
    message: Line = ""

    def to_message(self) -> str:
        """JSON of at most `MAXIMUM_HEADLINE_BYTES`: comparisons are left out from the end, then the message is cut."""
        headline = self
        while len((text := headline.to_json()).encode()) > MAXIMUM_HEADLINE_BYTES:
            if headline.comparisons:
                headline = headline.model_copy(update={"comparisons": headline.comparisons[:-1]})
            elif headline.message:
                headline = headline.model_copy(update={"message": headline.message[: len(headline.message) // 2]})
            else:
                raise ValueError(f"{headline.case[:80]}: a headline of more than {MAXIMUM_HEADLINE_BYTES} bytes")
        return text


def digest_of(text: str) -> str:
    """SHA-256 of a document's JSON, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def encode_document(kind: DocumentKind, identifier: str, text: str) -> Iterator[str]:
    """The lines, without line ends, that carry `text`; `identifier` has no spaces and is unique among the kind."""
    payload = base64.b64encode(zlib.compress(text.encode(), 9)).decode()
    slices = [payload[start : start + PAYLOAD_CHARACTERS] for start in range(0, len(payload), PAYLOAD_CHARACTERS)]
    digest = digest_of(text)
    for index, piece in enumerate(slices, start=1):
        yield f"{MARK} {kind} {identifier} {index}/{len(slices)} {digest} {piece}"


def encode_event(event: Event) -> str:
    """The line, without line end, that carries `event`; comparisons that it has no room for are left out."""
    while len((line := f"{MARK} event {event.to_json()}").encode()) > MAXIMUM_LINE_BYTES:
        if not (isinstance(event, RoundFinished) and event.comparisons):
            raise ValueError(f"an event of more than {MAXIMUM_LINE_BYTES} bytes: {line[:80]}")
        event = event.model_copy(update={"comparisons": event.comparisons[:-1]})
    return line


def parse_event(line: str) -> Event | None:
    """The event on a line, or None where the line carries none."""
    prefix = f"{MARK} event "
    if not line.startswith(prefix):
        return None
    try:
        return _event.validate_json(line[len(prefix) :])
    except ValueError:  # pydantic's own, and UnicodeEncodeError for half a surrogate pair
        return None


class _Identity(NamedTuple):
    kind: DocumentKind
    identifier: str
    lines: int
    digest: str


@dataclass(frozen=True)
class DeliveredDocument:
    """A whole document, as small as it came: a few hundred kilobytes of log can inflate to as many megabytes."""

    kind: DocumentKind
    identifier: str
    digest: str
    payload: str
    """Base64 of zlib of its JSON, which has the digest."""

    @property
    def text(self) -> str:
        """Its JSON, inflated anew; empty where that is none."""
        return _inflate(self.payload, LARGEST[self.kind])

    @property
    def flaw(self) -> str:
        """What is wrong with it; empty where its JSON has the digest that its lines name."""
        if digest_of(self.text) == self.digest:
            return ""
        if _is_larger(self.payload, most := LARGEST[self.kind]):
            return f"too large: more than {most // 1024} KiB; compare fewer variants, or measure fewer rounds"
        return "altered: its lines do not have the digest that they name"


@dataclass(frozen=True)
class Delivered:
    """What a log holds: whole documents in order of appearance, and what was wrong with the others."""

    documents: tuple[DeliveredDocument, ...] = ()
    """Every digest checked."""
    problems: tuple[str, ...] = ()

    def latest(self, kind: DocumentKind, digest: str | None = None) -> Result | None:
        """The last whole result or checkpoint; with `digest`, only the one that has it."""
        for found in reversed(self.documents):
            if found.kind == kind and digest in {None, found.digest}:
                try:
                    return Result.model_validate_json(found.text)
                except ValidationError:
                    continue
        return None


_PIECE = re.compile(
    re.escape(MARK)
    + " (checkpoint|result|launch) ([!-~]{1,256}) ([0-9]{1,4})/([0-9]{1,4}) ([0-9a-f]{64}) ([A-Za-z0-9+/=]+)"
)


def read_log(lines: Iterable[str], kinds: Container[DocumentKind] = frozenset(LARGEST)) -> Delivered:
    """Every whole document of a log, of these kinds; lines may be cut at the front, interleaved, repeated or altered.

    Pieces are gathered by the digest that they name, so that a stray line can only spoil a document that it claims to
    belong to; a document that comes again, whole or in part, counts once. What is held is never more than the log.
    """
    gathering: dict[_Identity, dict[int, str]] = {}
    complete: set[_Identity] = set()
    documents: list[DeliveredDocument] = []
    problems: list[str] = []
    unreadable: list[int] = []
    for number, line in enumerate(lines, start=1):
        if not line.startswith(MARK + " "):
            continue
        parsed = _parse_piece(line)
        if parsed is None:
            if parse_event(line) is None:
                unreadable.append(number)
            continue
        identity, index, payload = parsed
        if identity in complete or identity.kind not in kinds:
            continue
        pieces = gathering.setdefault(identity, {})
        pieces[index] = payload
        if len(pieces) < identity.lines:
            continue
        payload = "".join(piece for _, piece in sorted(gathering.pop(identity).items()))
        document = DeliveredDocument(identity.kind, identity.identifier, identity.digest, payload)
        if flaw := document.flaw:
            problems.append(f"{identity.kind} {identity.identifier}: {flaw}")
        else:
            complete.add(identity)
            documents.append(document)
    problems += [
        f"{identity.kind} {identity.identifier}: truncated: {len(pieces)} of {identity.lines} lines"
        for identity, pieces in gathering.items()
    ]
    return Delivered(tuple(documents), (*_altered(unreadable), *_bounded(problems)))


def _altered(lines: Sequence[int]) -> Iterator[str]:
    for number in lines[:MAXIMUM_REPORTED]:
        yield f"line {number}: altered: marked as ours, and cannot be read"
    if (more := len(lines) - MAXIMUM_REPORTED) > 0:
        yield f"{more} more lines that are marked as ours cannot be read"


def _bounded(problems: Sequence[str]) -> Iterator[str]:
    yield from problems[:MAXIMUM_REPORTED]
    if (more := len(problems) - MAXIMUM_REPORTED) > 0:
        yield f"{more} more documents that are not whole"


def _parse_piece(line: str) -> tuple[_Identity, int, str] | None:
    match = _PIECE.fullmatch(line.rstrip("\r\n"))
    if match is None:
        return None
    kind, identifier, index, count, digest, payload = match.groups()
    if not 1 <= int(index) <= int(count) <= MAXIMUM_DOCUMENT_BYTES // PAYLOAD_CHARACTERS:
        return None
    return _Identity(cast("DocumentKind", kind), identifier, int(count), digest), int(index), payload


def _inflate(payload: str, most: int) -> str:
    """The text; empty where it is none, or has more than `most` bytes."""
    try:
        inflate = zlib.decompressobj()
        text = inflate.decompress(base64.b64decode(payload, validate=True), most).decode()
    except (ValueError, zlib.error):
        return ""
    return text if inflate.eof and not inflate.unconsumed_tail else ""


def _is_larger(payload: str, most: int) -> bool:
    """Whether it inflates to more than `most` bytes."""
    try:
        return len(zlib.decompressobj().decompress(base64.b64decode(payload, validate=True), most + 1)) > most
    except (ValueError, zlib.error):
        return False
