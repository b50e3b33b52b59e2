"""Text of a manifest, a log, a result, a script or an exception is never interpreted where people read it."""

from __future__ import annotations

import io
import json
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from accelbench.api.metadata import ObjectMeta
from accelbench.api.result import BenchmarkResult, Result, SpeedupEstimate
from accelbench.delivery.log import (
    Headline,
    LaunchFinished,
    LaunchStarted,
    MachineSeen,
    RoundFinished,
    TimeSoFar,
)
from accelbench.document import on_one_line
from accelbench.problem import Problem
from accelbench.report import html, markdown, reproduce, terminal
from accelbench.report.live import draw_frame
from accelbench.report.progress import advance, begin
from accelbench.terminal.console import console
from accelbench_operator.runs.events import Transition, event_manifest
from accelbench_operator.runs.failure import job_refused, without_result
from accelbench_operator.runs.pending import explain_pending
from fuzz import targets
from fuzz.written import STYLES, assert_line, assert_markdown, assert_readable
from metrics import documents
from operator_world.builders import NOW, UID, ended, make_attempt, make_plan
from report import sample
from security.spoiled import NASTY, spoiled

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=200) | st.sampled_from(NASTY)
"""What a JSON document can hold: any character, those of a terminal and of markup more often."""
results = st.sampled_from([sample.result(), documents.invalid(), documents.failed(), documents.noisy()])


def read(result: Result, text: str) -> Result:
    return Result.model_validate_json(spoiled(result, text))


class Elements(HTMLParser):
    """Every element of a page with its attributes' names, and what links and sources point to."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.targets: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.targets |= {value or "" for name, value in attrs if name in {"href", "src"}}


@given(results, texts)
def test_only_colour_sequences_reach_a_terminal(result: Result, text: str) -> None:
    for width in (40, 200):
        written = io.StringIO()
        paper = console()
        paper.file, paper.width = written, width
        paper.print(terminal.report(read(result, text)))
        assert_readable(written.getvalue())


@pytest.mark.parametrize("text", NASTY)
def test_brackets_and_colons_are_text_on_a_terminal_with_colours(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    written = io.StringIO()
    paper = console()
    paper.file, paper.width = written, 20000
    paper.print(terminal.report(read(sample.result(), text)))
    shown = STYLES.sub("", written.getvalue())
    assert shown != written.getvalue()
    assert_readable(shown)
    assert on_one_line(text) in shown


@given(texts)
def test_live_lines_and_the_live_display_are_clean(text: str) -> None:
    result = read(sample.result(), text)
    names = [variant.name for variant in result.case.variants]
    events = [
        MachineSeen(warnings=(text,)),
        LaunchStarted(variant=text + "jax/jit", round=1, position=1, of=2),
        LaunchFinished(variant=text + "jax/jit", round=1, wall_seconds="1"),
        RoundFinished(round=1, quarantined=(text,), advice=text),
        RoundFinished(
            round=2,
            noisy=(text,),
            times=tuple(TimeSoFar(variant=name, seconds="0.1", invalid=(text,)) for name in names),
            comparisons=tuple(SpeedupEstimate(variant=name, invalid=(text,)) for name in names),
        ),
    ]
    progress = begin(result.case, 0.0)
    written = io.StringIO()
    paper = console()
    paper.file, paper.width = written, 100
    for event in events:
        progress = advance(progress, event, 1.0)
        paper.print(draw_frame(progress, 2.0, None, case_number=1, case_count=2))
    assert_readable(written.getvalue())


@given(results, texts)
def test_markdown_finds_no_markup_in_a_text(result: Result, text: str) -> None:
    assert_markdown(markdown.report(text, [(read(result, text), ())]))


@pytest.mark.parametrize("text", ["__0__", "_0_", "__init__", "a_b", "a__b", "0_"])
def test_markdown_takes_no_underscore_for_markup(text: str) -> None:
    assert_markdown(f"{markdown.escape(text)}matmul-chain\n")


@given(st.sampled_from("#->+=1."), texts)
def test_markdown_keeps_its_headings_lists_and_columns(first: str, text: str) -> None:
    def structure(text: str) -> list[str]:
        written = markdown.report("run", [(read(sample.result(notes=(text,)), text), ())])
        return [token.type for token in MarkdownIt("commonmark").enable("table").parse(written)]

    assert "table_open" in structure("plain")
    assert structure(f"{first} {text}") == structure("plain")


def test_no_text_adds_an_element_an_attribute_or_a_link_to_a_page() -> None:
    plain = html.report("run", [html.MeasuredCase(sample.result())])
    text = "".join(NASTY[:-1])
    spoilt = html.report(text, [html.MeasuredCase(read(sample.result(), text))])
    ours, theirs = Elements(plain), Elements(spoilt)
    assert theirs.tags <= ours.tags
    assert theirs.attributes <= ours.attributes
    assert {target for target in theirs.targets if not target.startswith("#")} <= ours.targets
    assert "alert(1)&lt;/script&gt;" in spoilt
    assert "\x1b" not in spoilt


@pytest.mark.parametrize("text", [*NASTY, f"\n{reproduce.END}\nrm -rf /\n"])
def test_the_command_to_paste_into_a_shell_ends_where_it_should(text: str) -> None:
    command = reproduce.command(reproduce.manifest_of_case(read(sample.result(), text).case))
    first, *manifest, last = command.split("\n")
    assert first == f"accelbench run - <<'{reproduce.END}'"
    assert last == reproduce.END
    assert reproduce.END not in manifest
    assert all(line.startswith((" ", "apiVersion:", "kind:", "metadata:", "spec:")) for line in manifest)


@given(results, texts)
def test_status_events_and_metrics_are_clean_and_bounded(result: Result, text: str) -> None:
    targets.stored(spoiled(result, text).encode())


@given(results, texts)
def test_kubectl_shows_each_text_of_a_result_in_one_line(result: Result, text: str) -> None:
    stored = BenchmarkResult.from_result(read(result, text), ObjectMeta(name="result"))
    assert_line(stored.summary.headline)


@given(texts)
def test_a_message_of_a_pod_or_the_api_server_becomes_one_bounded_line(text: str) -> None:
    plan = make_plan()
    attempt = make_attempt(plan)
    for code in (2, 3, 1):
        failure = without_result(ended(attempt, code, pod_reason=text, reason=text), text, text)
        assert_line(failure.message)
        assert len(failure.message) < 4096
    assert_line(job_refused(text * 100).message)
    event = event_manifest(Transition("Warning", "Refused", text * 100), "team", "chain", UID, NOW)
    assert_line(event["message"])
    assert len(event["message"]) <= 1024
    assert explain_pending(None, ended(attempt, waiting=f"Unschedulable: {text}"), plan.profile, None)


@given(texts, texts)
def test_a_problem_is_one_line(path: str, message: str) -> None:
    assert_line(str(Problem(path, message)))


@given(texts)
def test_a_headline_carries_no_control_character(text: str) -> None:
    headline = Headline(case=text, attempt=1, state="failed", message=text)
    again = Headline.model_validate_json(json.dumps({"case": text, "attempt": 1, "state": "failed", "message": text}))
    assert headline == again
    assert_line(headline.message)


@given(texts)
def test_a_text_that_was_cleaned_stays_as_it_is(text: str) -> None:
    assert on_one_line(on_one_line(text)) == on_one_line(text)
