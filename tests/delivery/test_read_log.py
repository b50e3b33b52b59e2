"""A document comes out of a log whole or not at all, whatever happened to the log's lines."""

import random
import string
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelbench.delivery.log import (
    MARK,
    MAXIMUM_BYTES_BY_KIND,
    MAXIMUM_LINE_BYTES,
    PAYLOAD_CHARACTERS,
    DocumentKind,
    LogDocuments,
    LogReader,
    encode_document,
    parse_event,
    read_log,
)

KINDS: tuple[DocumentKind, ...] = ("checkpoint", "result", "launch")
incompressible = st.builds(
    lambda seed, length: "".join(random.Random(seed).choices(string.printable + "äé€😀", k=length)),  # noqa: S311
    st.integers(0, 1000),
    st.sampled_from([0, 1, 100, PAYLOAD_CHARACTERS, 2 * PAYLOAD_CHARACTERS]),
)
texts = st.one_of(st.text(st.characters(exclude_categories=["Cs"])), incompressible)
named = st.tuples(st.sampled_from(KINDS), st.from_regex(r"[1-9][0-9]?/[a-z/-]{1,63}", fullmatch=True), texts)
"""A document of a kind, with an identifier and a text."""
noise = st.one_of(
    st.text(),
    st.text().map(f"{MARK} ".__add__),
    st.text().map(f"{MARK} event ".__add__),
    st.text().map(f"{MARK} result 1 1/2 ".__add__),
    st.just(f"{MARK} result 1 {'9' * 5000}/{'9' * 5000} {'0' * 64} AAAA"),
)


def lines_of(document: tuple[DocumentKind, str, str]) -> list[str]:
    return list(encode_document(*document))


def documents_of(delivered: LogDocuments) -> list[tuple[DocumentKind, str, str]]:
    return [(found.kind, found.identifier, found.text) for found in delivered.documents]


@given(st.lists(named, max_size=3))
def test_written_documents_are_read(documents: list[tuple[DocumentKind, str, str]]) -> None:
    log = [line for document in documents for line in lines_of(document)]
    delivered = read_log(log)
    assert set(documents_of(delivered)) == set(documents)
    assert delivered.problems == ()


@given(named)
def test_no_line_is_so_long_that_the_runtime_splits_it(document: tuple[DocumentKind, str, str]) -> None:
    assert all(len(line.encode()) <= MAXIMUM_LINE_BYTES for line in lines_of(document))


@given(st.lists(named, min_size=2, max_size=3, unique_by=lambda document: document[:2]), st.data())
def test_documents_are_read_among_other_lines_in_any_order(
    documents: list[tuple[DocumentKind, str, str]], data: Any
) -> None:
    stray = data.draw(st.lists(st.text().filter(lambda line: not line.startswith(MARK)), max_size=10))
    log = data.draw(st.permutations([*(line for document in documents for line in lines_of(document)), *stray]))
    delivered = read_log(log)
    assert set(documents_of(delivered)) == set(documents)
    assert delivered.problems == ()


@given(st.lists(named, max_size=3), st.integers(1, 9000))
def test_a_log_in_pieces_of_any_size_gives_the_same_documents(
    documents: list[tuple[DocumentKind, str, str]], piece_size: int
) -> None:
    lines = [line for document in documents for line in lines_of(document)]
    log = "\n".join([*lines, f"{MARK} rubbish", "bye"]).encode()
    reader = LogReader()
    for start in range(0, len(log), piece_size):
        reader.feed(log[start : start + piece_size])
    assert reader.finish() == read_log(log.decode().split("\n"))


@given(named, st.data())
def test_a_log_that_is_partly_read_twice_gives_each_document_once(
    document: tuple[DocumentKind, str, str], data: Any
) -> None:
    lines = lines_of(document)
    start = data.draw(st.integers(0, len(lines)))
    delivered = read_log([*lines, *lines[start:]])
    assert documents_of(delivered) == [document]
    assert delivered.problems == ()


@given(incompressible.filter(lambda text: len(text) > PAYLOAD_CHARACTERS), st.data())
def test_a_log_cut_at_the_front_or_the_end_reports_that_the_document_is_not_whole(text: str, data: Any) -> None:
    lines = list(encode_document("result", "1", text))
    log = "\n".join(lines)
    cut = data.draw(st.integers(1, len(log) - len(lines[-1]) - 1))
    for rest in (log[cut:], log[:-cut]):
        delivered = read_log(rest.split("\n"))
        assert delivered.documents == ()
        assert any("truncated" in problem or "altered" in problem for problem in delivered.problems)


@given(named, st.data())
def test_an_altered_log_never_gives_another_document(document: tuple[DocumentKind, str, str], data: Any) -> None:
    log = list("\n".join(lines_of(document)))
    for place in data.draw(st.sets(st.integers(0, len(log) - 1), min_size=1, max_size=5)):
        log[place] = data.draw(st.characters(exclude_categories=["Cs"]))
    text = "".join(log)
    delivered = read_log(text.split("\n"))
    assert {found.text for found in delivered.documents} <= {document[2]}


@given(incompressible.filter(bool), st.data())
def test_a_byte_altered_in_the_payload_is_reported(text: str, data: Any) -> None:
    lines = list(encode_document("result", "1", text))
    number = data.draw(st.integers(0, len(lines) - 1))
    head, payload = lines[number].rsplit(" ", 1)
    place = data.draw(st.integers(0, len(payload) - 1))
    other = data.draw(st.sampled_from(string.ascii_letters + string.digits + "+/").filter(payload[place].__ne__))
    lines[number] = f"{head} {payload[:place]}{other}{payload[place + 1 :]}"
    delivered = read_log(lines)
    if delivered.documents:  # the last digit of base64 has bits that mean nothing
        assert documents_of(delivered) == [("result", "1", text)]
    else:
        assert delivered.problems == ("result 1: altered: its lines do not have the digest that they name",)


@given(named, st.lists(noise, max_size=5), st.data())
def test_forged_lines_do_not_remove_a_document(
    document: tuple[DocumentKind, str, str], pretended: list[str], data: Any
) -> None:
    log = data.draw(st.permutations([*lines_of(document), *pretended]))
    assert document in documents_of(read_log(log))


@given(st.lists(st.one_of(noise, st.text(st.characters())), max_size=20))
def test_reading_never_raises(lines: list[str]) -> None:
    delivered = read_log(lines)
    assert delivered.documents == ()
    for line in lines:
        parse_event(line)


def test_a_document_that_inflates_beyond_the_limit_is_refused() -> None:
    text = "0" * (9 * 1024 * 1024)
    delivered = read_log(encode_document("result", "1", text))
    assert delivered.documents == ()
    [problem] = delivered.problems
    assert problem.startswith(f"result 1: too large: more than {MAXIMUM_BYTES_BY_KIND['result'] // 1024} KiB")


def test_memory_for_a_log_is_no_larger_than_the_log() -> None:
    log = [line for number in range(20) for line in encode_document("launch", str(number), f"{number:8000000}")]
    tracemalloc.start()
    try:
        delivered = read_log(log)
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(delivered.documents) == 20
    assert held < 2 * sum(map(len, log)) < 1_000_000


HOSTILE = {
    "pieces of a document each": f"{MARK} result %d 1/9 {'0' * 64} A\n",
    "many pieces of few documents": f"{MARK} checkpoint {'x' * 200} 1/1 %064d A\n",
    "whole documents": f"{MARK} result %d 1/1 {'0' * 64} A\n",
    "documents that inflate to half a megabyte": next(encode_document("result", "%d", "0" * 524_288)) + "\n",
    "rubbish": f"{MARK} %d\n",
    "short lines": "%d\n",
    "no lines": "%d",
}


@pytest.mark.parametrize("line", HOSTILE.values(), ids=HOSTILE)
def test_no_log_takes_more_memory_than_its_size_allows(line: str) -> None:
    size, piece_size = 2 * 1024 * 1024, 64 * 1024
    honest = "".join(f"{each}\n" for each in encode_document("result", "last", "the result")).encode()
    log = "".join(line % number for number in range(size // len(line) + 1)).encode() + b"\n" + honest
    pieces = [log[start : start + piece_size] for start in range(0, len(log), piece_size)]
    reader = LogReader({"checkpoint", "result"}, newest=128)
    tracemalloc.start()
    try:
        for piece in pieces:
            reader.feed(piece)
        delivered = reader.finish()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert ("result", "last", "the result") in documents_of(delivered)
    assert peak < size


def test_kinds_that_were_not_requested_are_not_collected() -> None:
    log = [*encode_document("launch", "1", "the launch"), *encode_document("result", "1", "the result")]
    assert documents_of(read_log(log, {"result"})) == [("result", "1", "the result")]


def test_many_problems_are_reported_as_a_number() -> None:
    pieces = [next(encode_document("result", str(number), "x" * 9)).replace(" 1/1 ", " 1/2 ") for number in range(1000)]
    problems = read_log(pieces).problems
    assert len(problems) == 21
    assert problems[-1] == "980 more documents that are not whole"


def test_many_unreadable_lines_are_reported_as_a_number() -> None:
    delivered = read_log([f"{MARK} rubbish"] * 1000)
    assert len(delivered.problems) == 21
    assert delivered.problems[0] == "line 1: altered: begins with accelbench/1 and cannot be parsed"
    assert delivered.problems[-1] == "980 more lines that begin with accelbench/1 cannot be parsed"


def test_another_documents_payload_under_a_documents_digest_is_reported() -> None:
    (line,), (other,) = (list(encode_document("result", "1", text)) for text in ("the truth", "something else"))
    forged = f"{line.rsplit(' ', 1)[0]} {other.rsplit(' ', 1)[1]}"
    delivered = read_log([forged])
    assert delivered.documents == ()
    assert delivered.problems == ("result 1: altered: its lines do not have the digest that they name",)
