import io
import re
from collections.abc import Callable

import pytest
from rich.console import Console, RenderableType

from accelbench.api.result import SpeedupEstimate
from accelbench.delivery.log import (
    Event,
    LaunchFinished,
    LaunchStarted,
    MachineSeen,
    PhaseReached,
    RoundFinished,
    TimeSoFar,
)
from accelbench.report.live import LiveTable, display, draw_frame, estimate_text, time_left
from accelbench.report.progress import Progress, Remaining, advance, begin
from report import sample

FASTER = SpeedupEstimate(variant="jax/jit", verdict="faster", speedup="2.041", lower="2.012", upper="2.071")

TIMES = (TimeSoFar(variant="pytorch/eager", seconds="0.00117"), TimeSoFar(variant="jax/jit", seconds="0.000574"))

STOLEN = ("throttled for jax/jit: Hypervisor steal: 7 % (limit 5 %)",)
ADVICE = "What to do: wait for a quieter time; or accept noise: --accept-noise."


def under_way() -> Progress:
    progress = begin(sample.case(), 0.0)
    for at, event in [
        (0, LaunchStarted(variant="pytorch/eager", round=1, position=1, of=3)),
        (8, LaunchFinished(variant="pytorch/eager", round=1, wall_seconds="8")),
        (8, LaunchStarted(variant="jax/jit", round=1, position=2, of=3)),
        (14, LaunchFinished(variant="jax/jit", round=1, wall_seconds="6")),
        (14, LaunchStarted(variant="jax/op-by-op", round=1, position=3, of=3)),
        (20, LaunchFinished(variant="jax/op-by-op", round=1, failure="OutOfMemory", wall_seconds="6")),
        (20, RoundFinished(round=1, times=TIMES, comparisons=(FASTER,))),
        (20, LaunchStarted(variant="jax/jit", round=2, position=1, of=2)),
        (21, PhaseReached(phase="compile")),
    ]:
        progress = advance(progress, event, at)
    return progress


def printed(renderable: RenderableType, width: int) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(renderable)
    return out.getvalue()


def lines_of(*events: Event) -> list[str]:
    """Return the lines of the events, without the two that describe the case."""
    return output_of(*events).splitlines()[2:]


def output_of(*events: Event) -> str:
    out = io.StringIO()
    with display(Console(file=out, width=80)) as shown:
        shown.start_case(sample.case(), 1, 1)
        for event in events:
            shown.event(event)
        shown.end_case()
    return out.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_the_table_truncates_nothing(width: int) -> None:
    text = printed(draw_frame(under_way(), 752.0, Remaining(148, 3595), case_number=2, case_count=6), width)
    assert all(len(line) <= width for line in text.splitlines())
    assert "…" not in text


def test_the_words_of_the_table(golden: Callable[[str, str], None]) -> None:
    disturbed = advance(under_way(), RoundFinished(round=2, quarantined=STOLEN, advice=ADVICE), 22.0)
    frames = (
        draw_frame(under_way(), 752.0, Remaining(148, 3595), case_number=2, case_count=6),
        draw_frame(disturbed, 22.0, None, case_number=1, case_count=1),
    )
    golden("live_table.txt", "\n".join(printed(drawn, 80) for drawn in frames))


def test_the_state_of_a_comparison() -> None:
    assert estimate_text(FASTER) == "2.04x (2.01 to 2.07) faster"
    assert estimate_text(SpeedupEstimate(variant="jax/jit", invalid=("parity",))) == "invalid: parity"
    assert estimate_text(SpeedupEstimate(variant="jax/jit")) == "no interval yet"


def test_the_time_left_is_one_number_if_minimum_and_maximum_agree() -> None:
    assert time_left(Remaining(10.1, 10.2)) == "10 s left"


def test_the_words_of_the_lines(golden: Callable[[str, str], None]) -> None:
    noisy = SpeedupEstimate(variant="jax/jit", noisy=True, speedup="2.041", lower="1.512", upper="2.771")
    output = output_of(
        PhaseReached(phase="compile"),
        LaunchFinished(variant="jax/jit", round=1, wall_seconds="6"),
        LaunchFinished(variant="jax/op-by-op", round=1, failure="TimedOut", wall_seconds="60"),
        RoundFinished(round=1, times=TIMES, comparisons=(FASTER,)),
        LaunchFinished(variant="jax/jit", round=2, unfinished="interrupted", wall_seconds="1"),
        RoundFinished(round=2, quarantined=STOLEN, times=TIMES, advice=ADVICE),
        RoundFinished(round=3, quarantined=STOLEN, times=TIMES, advice=ADVICE),
        RoundFinished(round=4, noisy=STOLEN, times=TIMES[1:], comparisons=(noisy,)),
    )
    golden("live_lines.txt", output)


def test_more_rounds_than_the_minimum_are_explained_once() -> None:
    rounds = range(1, 8)
    events = (
        (LaunchStarted(variant="jax/jit", round=number, position=1, of=3), RoundFinished(round=number, times=TIMES))
        for number in rounds
    )
    lines = lines_of(*(event for pair in events for event in pair))
    [explained] = [number for number, line in enumerate(lines) if "until 8 rounds" in line]
    assert lines[explained - 1].startswith("after round 5: ")


def test_a_disturbed_round_that_counts_gives_its_reason_once() -> None:
    first, second = lines_of(RoundFinished(round=1, noisy=STOLEN), RoundFinished(round=2, noisy=STOLEN))
    assert STOLEN[0] in first
    assert STOLEN[0] not in second


def test_a_discarded_round_gives_reason_and_advice_once_and_no_time() -> None:
    discarded = (RoundFinished(round=number, quarantined=STOLEN, advice=ADVICE, times=TIMES) for number in (1, 2))
    first, advice, second = lines_of(*discarded)
    assert advice == ADVICE
    assert STOLEN[0] in first
    assert STOLEN[0] not in second
    assert not re.search("[nµm]s", first + second)


@pytest.mark.parametrize(
    ("target", "expected_text"), [(None, "failed: Unsupported"), ("h100", "not compiled: Unsupported")]
)
def test_a_case_without_a_program_for_its_target_is_shown_as_not_compiled(
    target: str | None, expected_text: str
) -> None:
    case = sample.case()
    case = case.model_copy(update={"accelerator": case.accelerator.model_copy(update={"target": target})})
    event = LaunchFinished(variant="jax/jit", round=1, failure="Unsupported", wall_seconds="6")
    out = io.StringIO()
    with display(Console(file=out, width=80)) as shown:
        shown.start_case(case, 1, 1)
        shown.event(event)
    assert f"round 1: jax/jit: {expected_text} (6.0 s)" in out.getvalue()
    drawn = printed(draw_frame(advance(begin(case, 0.0), event, 6.0), 6.0, None, case_number=1, case_count=1), 80)
    assert expected_text in drawn


def test_no_time_is_shown_before_a_round_is_judged_or_after_a_rejection() -> None:
    out = io.StringIO()
    rejected = SpeedupEstimate(variant="jax/jit", invalid=("parity",))
    wrong = TimeSoFar(variant="jax/jit", invalid=("parity",))
    with display(Console(file=out, width=80)) as shown:
        shown.start_case(sample.case(), 1, 1)
        for variant in ("pytorch/eager", "jax/jit"):
            shown.event(LaunchFinished(variant=variant, round=1, wall_seconds="6"))
        before = out.getvalue()
        shown.event(RoundFinished(round=1, times=(TIMES[0], wrong), comparisons=(rejected,)))
    assert not re.search("[nµm]s", before)
    assert out.getvalue()[len(before) :].splitlines() == [
        "after round 1: pytorch/eager: 1.17 ms",
        "after round 1: jax/jit: invalid: parity",
    ]


def test_the_table_is_not_redrawn_while_blocks_are_timed() -> None:
    out = io.StringIO()
    shown = display(Console(file=out, width=80, force_terminal=True), clock=lambda: 1.0)
    assert isinstance(shown, LiveTable)
    with shown:
        shown.start_case(sample.case(), 1, 1)
        shown.event(PhaseReached(phase="compile"))
        before = len(out.getvalue())
        shown.tick()
        redrawn = len(out.getvalue())
        shown.event(PhaseReached(phase="steady"))
        timed = len(out.getvalue())
        shown.tick()
        assert redrawn > before
        assert len(out.getvalue()) == timed


def test_the_cursor_of_the_terminal_is_restored() -> None:
    out = io.StringIO()
    with display(Console(file=out, width=80, force_terminal=True)) as shown:
        shown.start_case(sample.case(), 1, 1)
    assert out.getvalue().rindex("\x1b[?25h") > out.getvalue().rindex("\x1b[?25l")


def test_warnings_about_the_machine_stay_above_the_table() -> None:
    out = io.StringIO()
    with display(Console(file=out, width=80, force_terminal=True)) as shown:
        shown.start_case(sample.case(), 1, 1)
        shown.event(MachineSeen(warnings=("Hypervisor steal: 11 % (limit 5 %).",)))
    assert "warning: Hypervisor steal: 11 % (limit 5 %)." in out.getvalue()
