"""The output of each renderer for every kind of result equals its golden file."""

import io
import re
from collections.abc import Callable

import pytest
from rich.console import Console, RenderableType

from accelbench import __version__
from accelbench.history import change_points
from accelbench.history.runs import compare
from accelbench.history.sample import Side
from accelbench.report import certificate, comparison, html, machine, markdown, terminal, tidy, view
from history.runs import run, scaled
from report.scenarios import SCENARIOS, SUMMARIES, expected

Golden = Callable[[str, str], None]


def printed(renderable: RenderableType, width: int) -> str:
    out = io.StringIO()
    Console(file=out, width=width, color_system=None).print(renderable)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines())


def test_the_terminal(golden: Golden) -> None:
    parts = [
        f"=== {name}, {width} columns\n{printed(terminal.report(result, expected(result)), width)}\n"
        for name, result in SCENARIOS.items()
        for width in (80, 120)
    ]
    golden("terminal.txt", "\n".join(parts))


@pytest.mark.parametrize("width", [40, 60, 80, 104, 140])
def test_nothing_is_wider_than_the_terminal_and_no_text_is_truncated(width: int) -> None:
    for result in SCENARIOS.values():
        text = printed(terminal.report(result, expected(result)), width)
        assert max(map(len, text.splitlines())) <= width
        assert "…" not in text


def test_every_markdown_table_is_complete() -> None:
    text = markdown.report("every kind", [(result, expected(result)) for result in SCENARIOS.values()])
    tables = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
    assert len(tables) > len(SCENARIOS)
    assert all(len({len(re.findall(r"(?<!\\)\|", line)) for line in table}) == 1 for table in tables)


def test_an_observed_case_has_no_time_and_no_verdict() -> None:
    text = printed(terminal.report(SCENARIOS["observing"]), 140)
    assert not [word for word in ("speedup", "verdict", "baseline", "confidence", "target met") if word in text]


def test_a_run_without_a_result_is_reported_as_such() -> None:
    assert markdown.report("run", []) == "# run\n\nNo case has a result.\n"
    assert machine.describe({}) == ""


def test_sentences_of_a_report(golden: Golden) -> None:
    texts = []
    for name, result in SUMMARIES.items():
        lines = {
            "state": (view.warning(result),),
            "basis": (view.measurement_summary(result),),
            "findings": view.sentences(result),
            "checks": (certificate.summary(result),),
            "remarks": view.remarks(result),
            "machine": (machine.describe(result.fingerprint),),
        }
        texts.append("\n".join([f"=== {name}", *(f"{part}: {line}" for part in lines for line in lines[part] if line)]))
    golden("sentences.txt", "\n\n".join(texts) + "\n")


def test_markdown(golden: Golden) -> None:
    golden("report.md", markdown.report("every kind", [(result, expected(result)) for result in SCENARIOS.values()]))


def test_the_page(golden: Golden) -> None:
    """Without plots, whose coordinates are matplotlib's, and without the style sheet."""
    cases = [html.MeasuredCase(result, expected(result)) for result in SCENARIOS.values()]
    text = "\n".join((html.report("every kind", cases), html.report("one", cases[:1])))
    text = re.sub(r"<svg.*?</svg>|(?<=<style>).*?(?=</style>)", "", text, flags=re.DOTALL)
    golden("report.html", re.sub(r"\n\s*\n+", "\n", text).replace(f"accelbench {__version__}", "accelbench VERSION"))


def test_csv(golden: Golden) -> None:
    golden("report.csv", tidy.report(SCENARIOS.values()))


def test_a_comparison_of_runs(golden: Golden) -> None:
    alike = Side("A", (run(),), "results/a"), Side("B", (run({"jax/jit": scaled(0.5)}),), "results/b")
    other = Side("B", (run(fingerprint={"cpu": "another", "kernel": "7.0", "memoryBytes": str(2**33)}),), "results/b")
    texts = []
    for sides, allowed in ((alike, ()), ((alike[0], other), ()), ((alike[0], other), ("hardware",))):
        report = comparison.ComparisonReport(compare(*sides, allowed), change_points.find_changes(sides[0]), ["a note"])
        texts += [printed(report, width) for width in (80, 120)]
    golden("compare.txt", "\n\n".join(texts) + "\n")
