"""How a result leaves the pod: numbered, digested lines of the container's log, and a headline as termination message.

The runner writes (`LogWriter`), the command line and the operator read (`read_log`). Nothing here trusts what it reads:
the container runtime splits lines at 16 KiB and standard error can land between the parts, a log may begin after its
last rotation, and anyone can print a line that looks like ours. A document counts only when every line of it is there
and its digest is right.

One line is `accelbench/1 KIND ID INDEX/COUNT SHA256 PAYLOAD`: payload is a slice of base64 of zlib of JSON, the digest
is that of the JSON, whole. Events are `accelbench/1 event JSON`.
"""

import base64
import hashlib
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from accelbench.api.result import FailureReason, Phase, Result, Verdict
from accelbench.document import DecimalString, Document

MARK = "accelbench/1"
MAXIMUM_LINE_BYTES = 8 * 1024
MAXIMUM_LOG_BYTES = 4 * 1024 * 1024
MAXIMUM_DOCUMENT_BYTES = 8 * 1024 * 1024
MAXIMUM_HEADLINE_BYTES = 3 * 1024
PAYLOAD_CHARACTERS = 7800

DocumentKind = Literal["checkpoint", "result", "launch"]


class LaunchStarted(Document):
    """A launch begins: `position` of `of` in its round."""

    type: Literal["launch-started"] = "launch-started"
    variant: str
    round: int
    position: int
    of: int


class PhaseReached(Document):
    """The launch under way has entered a phase."""

    type: Literal["phase-reached"] = "phase-reached"
    phase: Phase


class LaunchFinished(Document):
    """A launch ended: with seconds per unit, or with the reason it has none."""

    type: Literal["launch-finished"] = "launch-finished"
    variant: str
    round: int
    seconds: DecimalString | None = None
    failure: FailureReason | None = None
    wall_seconds: DecimalString


class ComparisonNow(Document):
    """Where a comparison stands: what a headline or a progress line shows of it."""

    variant: str
    verdict: Verdict | None = None
    invalid: tuple[str, ...] = ()
    speedup: DecimalString | None = None
    lower: DecimalString | None = None
    upper: DecimalString | None = None


class RoundFinished(Document):
    """A round is complete; this is where the comparisons stand."""

    type: Literal["round-finished"] = "round-finished"
    round: int
    comparisons: tuple[ComparisonNow, ...] = ()


Event = LaunchStarted | PhaseReached | LaunchFinished | RoundFinished
_event: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="type")])


class Headline(Document):
    """The termination message: rewritten before each launch, so that a killed container still says who did it."""

    format: Literal["accelbench.dev/headline/v1alpha1"] = "accelbench.dev/headline/v1alpha1"
    case: str
    attempt: int
    state: Literal["running", "finished", "failed"]
    running: str | None = None
    """The variant that is about to run, while `state` is `running`."""
    round: int = 0
    digest: str | None = None
    """SHA-256 of the result's JSON, once there is one; of the last checkpoint's before."""
    comparisons: tuple[ComparisonNow, ...] = ()
    message: str = ""

    def to_message(self) -> str:
        """JSON of at most `MAXIMUM_HEADLINE_BYTES`: comparisons are left out from the end rather than cut."""
        headline = self
        while len(text := headline.to_json()) > MAXIMUM_HEADLINE_BYTES:
            if headline.comparisons:
                headline = headline.model_copy(update={"comparisons": headline.comparisons[:-1]})
            else:
                headline = headline.model_copy(update={"message": headline.message[: len(headline.message) // 2]})
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
    """The line, without line end, that carries `event`."""
    return f"{MARK} event {event.to_json()}"


def parse_event(line: str) -> Event | None:
    """The event on a line, or None where the line carries none."""
    prefix = f"{MARK} event "
    if not line.startswith(prefix):
        return None
    try:
        return _event.validate_json(line[len(prefix) :])
    except ValidationError:
        return None


@dataclass(frozen=True)
class Delivered:
    """What a log holds: whole documents in order of appearance, and what was wrong with the others."""

    documents: tuple[tuple[DocumentKind, str, str], ...] = ()
    """(kind, identifier, JSON), every digest checked."""
    problems: tuple[str, ...] = ()

    def latest(self, kind: DocumentKind, digest: str | None = None) -> Result | None:
        """The last whole result or checkpoint; with `digest`, only the one that has it."""
        for found, _, text in reversed(self.documents):
            if found == kind and (digest is None or digest_of(text) == digest):
                try:
                    return Result.model_validate_json(text)
                except ValidationError:
                    continue
        return None


@dataclass
class _Partial:
    count: int
    digest: str
    pieces: dict[int, str] = field(default_factory=dict)


def read_log(lines: Iterable[str]) -> Delivered:
    """Every whole document of a log; lines may be cut at the front, interleaved, repeated or altered."""
    partial: dict[tuple[DocumentKind, str], _Partial] = {}
    documents: list[tuple[DocumentKind, str, str]] = []
    problems: list[str] = []
    for line in lines:
        parsed = _parse_piece(line)
        if parsed is None:
            continue
        key, index, count, digest, piece = parsed
        held = partial.get(key)
        if held is None or held.digest != digest or held.count != count:
            held = partial[key] = _Partial(count=count, digest=digest)
        held.pieces[index] = piece
        if len(held.pieces) == held.count:
            del partial[key]
            text = _join(held)
            if text is None:
                problems.append(f"{key[0]} {key[1]}: altered: its lines do not have the digest that they name")
            else:
                documents.append((*key, text))
    problems += [
        f"{kind} {identifier}: truncated: {len(held.pieces)} of {held.count} lines"
        for (kind, identifier), held in partial.items()
    ]
    return Delivered(tuple(documents), tuple(problems))


def _parse_piece(line: str) -> tuple[tuple[DocumentKind, str], int, int, str, str] | None:
    words = line.rstrip("\r\n").split(" ")
    if len(words) != 6 or words[0] != MARK:  # noqa: PLR2004 - the six words of a line
        return None
    _, kind, identifier, place, digest, piece = words
    index, slash, count = place.partition("/")
    if kind not in {"checkpoint", "result", "launch"} or not (slash and index.isdecimal() and count.isdecimal()):
        return None
    limit = MAXIMUM_DOCUMENT_BYTES // PAYLOAD_CHARACTERS
    if not 1 <= int(index) <= int(count) <= limit:
        return None
    return (kind, identifier), int(index), int(count), digest, piece  # type: ignore[return-value]


def _join(held: _Partial) -> str | None:
    payload = "".join(held.pieces[index] for index in range(1, held.count + 1))
    try:
        inflate = zlib.decompressobj()
        content = inflate.decompress(base64.b64decode(payload, validate=True), MAXIMUM_DOCUMENT_BYTES)
        text = content.decode()
    except (ValueError, zlib.error):
        return None
    whole = inflate.eof and not inflate.unconsumed_tail
    return text if whole and digest_of(text) == held.digest else None
