import io

import pytest
from rich.console import Console, RenderableType

from accelbench.cli.live import Lines, Picture, display, picture, standing, time_left
from accelbench.cli.progress import Progress, Remaining, advance, begin
from accelbench.delivery import ComparisonNow, LaunchFinished, LaunchStarted, PhaseReached, RoundFinished
from report import sample

FASTER = ComparisonNow(variant="jax/jit", verdict="faster", speedup="2.041", lower="2.012", upper="2.071")


def under_way() -> Progress:
    progress = begin(sample.case(), 0.0)
    for at, event in [
        (0, LaunchStarted(variant="pytorch/eager", round=1, position=1, of=3)),
        (8, LaunchFinished(variant="pytorch/eager", round=1, seconds="0.00117", wall_seconds="8")),
        (8, LaunchStarted(variant="jax/jit", round=1, position=2, of=3)),
        (14, LaunchFinished(variant="jax/jit", round=1, seconds="0.000574", wall_seconds="6")),
        (14, LaunchStarted(variant="jax/op-by-op", round=1, position=3, of=3)),
        (20, LaunchFinished(variant="jax/op-by-op", round=1, failure="OutOfMemory", wall_seconds="6")),
        (20, RoundFinished(round=1, comparisons=(FASTER,))),
        (20, LaunchStarted(variant="jax/jit", round=2, position=1, of=2)),
        (21, PhaseReached(phase="compile")),
    ]:
        progress = advance(progress, event, at)
    return progress


def printed(renderable: RenderableType, width: int) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(renderable)
    return out.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_the_picture_shows_variants_phase_round_and_time_left_without_cutting_anything(width: int) -> None:
    text = printed(picture(under_way(), 752.0, Remaining(148, 3595), number=2, of=6), width)
    lines = text.splitlines()
    assert all(len(line) <= width for line in lines)
    assert "…" not in text
    assert "case 2 of 6" in text
    assert "●  jax/jit" in text
    assert "2.04x (2.01 to 2.07) faster" in text
    assert "✗  jax/op-by-op" in text
    assert "failed: OutOfMemory" in text
    assert "import > device-init > setup > compile > first-step > warm-up > steady" in text
    assert "round 2 of 5 to 8" in lines[-1]
    assert "12 min 32 s" in lines[-1]
    assert "2 min 28 s to 59 min 55 s left" in lines[-1]


def test_a_comparison_on_the_way_is_told_in_its_own_words() -> None:
    assert standing(FASTER) == "2.04x (2.01 to 2.07) faster"
    assert standing(ComparisonNow(variant="jax/jit", invalid=("parity",))) == "invalid: parity"
    assert standing(ComparisonNow(variant="jax/jit")) == "too early to say"


def test_the_time_left_is_one_number_where_least_and_most_agree() -> None:
    assert time_left(None) == "time left: known after the first launch"
    assert time_left(Remaining(10.1, 10.2)) == "10 s left"


def test_without_a_terminal_there_is_a_line_a_launch_and_a_line_a_round() -> None:
    out = io.StringIO()
    console = Console(file=out, width=80)
    with display(console) as shown:
        assert isinstance(shown, Lines)
        shown.case_begins(sample.case(), 1, 1)
        shown.event(PhaseReached(phase="compile"))
        shown.event(LaunchFinished(variant="jax/jit", round=1, seconds="0.000574", wall_seconds="6"))
        shown.event(LaunchFinished(variant="jax/op-by-op", round=1, failure="TimedOut", wall_seconds="60"))
        shown.event(RoundFinished(round=1, comparisons=(FASTER,)))
        shown.event(LaunchFinished(variant="jax/jit", round=2, unfinished="interrupted", wall_seconds="1"))
        shown.tick()
        shown.case_ends()
    assert out.getvalue().splitlines() == [
        "case 1 of 1: matmul-chain (size 512, length 100), float32, cpu",
        "round 1: jax/jit: 574 µs (6.0 s in all)",
        "round 1: jax/op-by-op: failed: TimedOut (60.0 s in all)",
        "after round 1: jax/jit: 2.04x (2.01 to 2.07) faster",
        "round 2: jax/jit: interrupted (1.0 s in all)",
    ]


def test_the_picture_stands_still_while_blocks_are_timed() -> None:
    out = io.StringIO()
    shown = display(Console(file=out, width=80, force_terminal=True), clock=lambda: 1.0)
    assert isinstance(shown, Picture)
    with shown:
        shown.case_begins(sample.case(), 1, 1)
        shown.event(PhaseReached(phase="compile"))
        before = len(out.getvalue())
        shown.tick()
        redrawn = len(out.getvalue())
        shown.event(PhaseReached(phase="steady"))
        timed = len(out.getvalue())
        shown.tick()
        assert redrawn > before
        assert len(out.getvalue()) == timed


def test_the_terminal_gets_its_cursor_back() -> None:
    out = io.StringIO()
    with display(Console(file=out, width=80, force_terminal=True)) as shown:
        shown.case_begins(sample.case(), 1, 1)
    assert out.getvalue().rindex("\x1b[?25h") > out.getvalue().rindex("\x1b[?25l")
