"""What is shown of a case that was observed: findings in words, every observation, no time and no verdict."""

import io

import pytest
from rich.console import Console

from accelbench.api.run import Expectation
from accelbench.report import html, markdown, terminal
from accelbench.verdict.expectations import evaluate
from report import sample

RAISED, DIFFERS = sample.USES[:2]


def printed(width: int) -> str:
    out = io.StringIO()
    result = sample.observing()
    expectation = Expectation(observation="raised", variant=RAISED, equals="KeyReuseError")
    Console(file=out, width=width).print(terminal.report(result, evaluate((expectation,), result)))
    return out.getvalue()


@pytest.mark.parametrize("width", [80, 140])
def test_the_terminal_says_the_finding_and_every_observation(width: int) -> None:
    text = printed(width)
    assert all(len(line) <= width for line in text.splitlines())
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert f"{RAISED} raised KeyReuseError." in lines
    assert f"{DIFFERS} compiled 1 or 2 times in 4 calls." in lines
    assert f"{RAISED} calls 4" in lines
    assert "message Used <before> | now." in lines
    assert "compilations 1 in 5 launches, 2 in 1" in lines
    assert f"✓ raised of {RAISED} equal to KeyReuseError: met, KeyReuseError." in text


def test_no_time_and_no_verdict_is_shown() -> None:
    text = printed(140)
    for word in ("speedup", "verdict", "baseline", "confidence", "target met"):
        assert word not in text
    assert "nothing timed" in text


def test_markdown_has_the_same_rows_in_one_table() -> None:
    text = markdown.report("run", [(sample.observing(), ())])
    (table,) = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
    assert table[0] == "| variant | observed | value |"
    assert f"| {RAISED} | message | Used \\<before\\> \\| now. |" in table
    assert f"| {DIFFERS} | compilations | 1 in 5 launches, 2 in 1 |" in table


def test_the_page_has_them_where_others_have_verdicts() -> None:
    text = html.report("run", [html.MeasuredCase(sample.observing())])
    assert "<h2>Observations</h2>" in text
    assert '<th scope="row">' + RAISED in text
    assert "1 in 5 launches, 2 in 1" in text
    assert "<h2>Verdict</h2>" not in text
