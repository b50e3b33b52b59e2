"""What a reader sees: targets by variants, in every report; never a time of a program."""

import io
import re

import pytest
from rich.console import Console

from accelbench.report import html, markdown, targets, terminal
from targets.documents import compiled

RESULTS = (compiled("h100x8"), compiled("v5e-16", fits=False))
TIMED = ("speedup", "verdict", "faster", "time per", "steady")


def printed(width: int) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(terminal.reports((result, ()) for result in RESULTS))
    return out.getvalue()


@pytest.mark.parametrize("width", [80, 150])
def test_the_terminal_has_a_row_for_each_target_and_variant(width: int) -> None:
    text = printed(width)
    assert all(len(line) <= width for line in text.splitlines())
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "h100x8 jax/jit ≈fits ██████░░░░░░ 50 % ≈40.0 GB 80.0 GB" in lines
    assert "v5e-16 jax/jit does not fit ██████░░░░░░ 50 % 40.0 GB 80.0 GB" in lines
    assert "h100x8 pytorch/eager not compiled" in lines
    assert not [word for word in TIMED if word in text]


def test_what_is_estimated_has_a_sign_and_what_is_exact_has_none() -> None:
    text = " ".join(printed(150).split())
    assert "h100x8 jax/jit 101 ≈12 ≈9 3 all-reduce (6.00 MB) 2.50 s 300 MB" in text
    assert "v5e-16 jax/jit 101 12 9 3 all-reduce (6.00 MB) 2.50 s 300 MB" in text
    assert targets.ESTIMATES in text
    assert targets.ESTIMATES not in targets.footnotes([compiled("v5e-16")])


def test_why_a_variant_was_not_compiled_is_said_once() -> None:
    text = " ".join(printed(150).split())
    assert text.count("pytorch/eager was not compiled: PyTorch compiles for no device that is not there.") == 1


def test_a_program_that_every_device_does_whole_is_said_to_be_with_the_reason() -> None:
    text = " ".join(printed(150).split())
    assert "jax/jit is not divided: each of h100x8's 8 devices does all of it. A program is divided where" in text
    (found,) = compiled().compiled
    eager = found.model_copy(update={"variant": "pytorch/eager", "dispatched": True})
    (_, why) = targets.sentences(compiled(compiled=(eager,)))[:2]
    assert why.startswith("pytorch/eager is not divided: each of h100x8's 8 devices does all of it.")
    assert why.endswith("before they make an optimizer.")


def test_markdown_has_the_same_rows() -> None:
    text = markdown.report("chain", [(result, ()) for result in RESULTS])
    assert "| h100x8 | jax/jit | ≈fits | ██████░░░░░░ 50 % | ≈40.0 GB | 80.0 GB |" in text
    assert "| v5e-16 | jax/jit | does not fit | ██████░░░░░░ 50 % | 40.0 GB | 80.0 GB |" in text
    assert "| h100x8 | jax/jit | add, dot, tanh (4 kernels) |" in text
    assert not [word for word in TIMED if word in text]


def test_the_page_begins_with_them_and_plots_no_time() -> None:
    page = html.report("chain", [html.MeasuredCase(result) for result in RESULTS])
    body = page.partition("<body")[2].partition("<footer")[0]
    assert "Compiled, not run" in body
    assert "does not fit" in body
    assert "3 all-reduce (6.00 MB)" in body
    text = re.sub(r"<[^>]*>", " ", body).lower()
    assert not [word for word in TIMED if word in text]


@pytest.mark.parametrize(
    ("part", "drawn"),
    [(0, "░░░░░░░░░░░░ 0 %"), (50, "██████░░░░░░ 50 %"), (100, "████████████ 100 %"), (130, "████████████▶ 130 %")],
)
def test_a_bar_is_full_where_all_memory_is_held_and_shows_what_is_beyond(part: int, drawn: str) -> None:
    assert targets.bar(part, 100) == drawn
