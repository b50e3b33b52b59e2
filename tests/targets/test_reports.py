"""Show what was compiled: a row for each target and variant in every report, and no time of a program."""

import io
import re
from collections.abc import Callable

import pytest
from rich.console import Console

from accelbench.report import html, markdown, targets, terminal
from targets.documents import compiled

RESULTS = (compiled("h100x8"), compiled("v5e-16", fits=False))
TIMED = ("speedup", "verdict", "faster", "time per", "steady")


def printed(width: int) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(terminal.reports((result, ()) for result in RESULTS))
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


@pytest.mark.parametrize("width", [80, 150])
def test_the_terminal_shows_no_time(width: int, golden: Callable[[str, str], None]) -> None:
    text = printed(width)
    assert all(len(line) <= width for line in text.splitlines())
    assert not [word for word in TIMED if word in text]
    golden(f"terminal-{width}.txt", text)


def test_markdown_shows_no_time(golden: Callable[[str, str], None]) -> None:
    text = markdown.report("chain", [(result, ()) for result in RESULTS])
    assert not [word for word in TIMED if word in text]
    golden("report.md", text)


def test_the_page_plots_no_time() -> None:
    page = html.report("chain", [html.MeasuredCase(result) for result in RESULTS])
    text = re.sub(r"<[^>]*>", " ", page.partition("<body")[2].partition("<footer")[0]).lower()
    assert not [word for word in TIMED if word in text]


def test_a_dispatched_program_that_is_not_divided_comes_with_the_reason() -> None:
    (found,) = compiled().compiled
    eager = found.model_copy(update={"variant": "pytorch/eager", "dispatched": True})
    assert any(targets.NOT_DIVIDED_TORCH in sentence for sentence in targets.sentences(compiled(compiled=(eager,))))


def test_exact_figures_have_no_footnote_on_estimates() -> None:
    assert targets.ESTIMATES in targets.footnotes(RESULTS)
    assert targets.ESTIMATES not in targets.footnotes([compiled("v5e-16")])


@pytest.mark.parametrize(("part", "text"), [(0, "0 %"), (50, "50 %"), (100, "100 %"), (130, "130 %")])
def test_a_bar_is_full_at_all_memory_and_shows_the_excess(part: int, text: str) -> None:
    full = min(12, 12 * part // 100)
    assert targets.bar(part, 100) == f"{'█' * full}{'░' * (12 - full)}{'▶' if part > 100 else ''} {text}"
