import io
import re

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
    TimeNow,
)
from accelbench.report.live import Lines, LiveTable, display, frame, plan, standing, time_left
from accelbench.report.progress import Progress, Remaining, advance, begin
from report import sample

FASTER = SpeedupEstimate(variant="jax/jit", verdict="faster", speedup="2.041", lower="2.012", upper="2.071")

TIMES = (TimeNow(variant="pytorch/eager", seconds="0.00117"), TimeNow(variant="jax/jit", seconds="0.000574"))


UNTIL = "until intervals are within ±1.0 %"


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


@pytest.mark.parametrize("width", [80, 120])
def test_the_picture_shows_variants_phase_round_and_time_left_without_cutting_anything(width: int) -> None:
    text = printed(frame(under_way(), 752.0, Remaining(148, 3595), number=2, of=6), width)
    lines = text.splitlines()
    assert all(len(line) <= width for line in lines)
    assert "…" not in text
    assert "case 2 of 6" in text
    assert "●  jax/jit" in text
    assert "574 µs" in text
    assert "2.04x (2.01 to 2.07) faster" in text
    assert "✗  jax/op-by-op" in text
    assert "failed: OutOfMemory" in text
    assert "import > device-init > setup > compile > first-step > warm-up > steady" in text
    assert "round 2 of 5 to 8" in lines[-1]
    assert "12 min 32 s" in lines[-1]
    assert "2 min 28 s to 59 min 55 s left" in lines[-1]


def test_a_comparison_on_the_way_is_told_in_its_own_words() -> None:
    assert standing(FASTER) == "2.04x (2.01 to 2.07) faster"
    assert standing(SpeedupEstimate(variant="jax/jit", invalid=("parity",))) == "invalid: parity"
    assert standing(SpeedupEstimate(variant="jax/jit")) == "no interval yet"


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
        shown.event(LaunchFinished(variant="jax/jit", round=1, wall_seconds="6"))
        shown.event(LaunchFinished(variant="jax/op-by-op", round=1, failure="TimedOut", wall_seconds="60"))
        shown.event(RoundFinished(round=1, times=TIMES, comparisons=(FASTER,)))
        shown.event(LaunchFinished(variant="jax/jit", round=2, unfinished="interrupted", wall_seconds="1"))
        shown.tick()
        shown.case_ends()
    assert out.getvalue().splitlines() == [
        "case 1 of 1: matmul-chain (size 512, length 100), float32, cpu",
        f"pytorch/eager, jax/jit, jax/op-by-op: 5 to 8 rounds, {UNTIL}, at most 10 min 00 s",
        "round 1: jax/jit: measured (6.0 s)",
        "round 1: jax/op-by-op: failed: TimedOut (60.0 s)",
        "after round 1: pytorch/eager: 1.17 ms",
        "after round 1: jax/jit: 574 µs, 2.04x (2.01 to 2.07) faster",
        "round 2: jax/jit: interrupted (1.0 s)",
    ]


def test_why_rounds_go_on_after_a_verdict_is_said_once() -> None:
    out = io.StringIO()
    with display(Console(file=out, width=80)) as shown:
        shown.case_begins(sample.case(), 1, 1)
        for number in range(1, 8):
            shown.event(LaunchStarted(variant="jax/jit", round=number, position=1, of=3))
            shown.event(RoundFinished(round=number, times=TIMES, comparisons=(FASTER,)))
    lines = out.getvalue().splitlines()
    why = "measuring on until intervals are within ±1.0 %, or 8 rounds are done"
    assert lines.count(why) == 1
    assert lines[lines.index(why) - 1].startswith("after round 5: ")
    assert "measuring until intervals are within ±1.0 %" in printed(
        frame(under_way(), 752.0, Remaining(148, 3595), number=1, of=1), 80
    )


@pytest.mark.parametrize(("target", "said"), [(None, "failed: Unsupported"), ("h100", "not compiled: Unsupported")])
def test_what_a_target_has_no_program_for_is_not_compiled_as_the_report_says(target: str | None, said: str) -> None:
    case = sample.case()
    case = case.model_copy(update={"accelerator": case.accelerator.model_copy(update={"target": target})})
    event = LaunchFinished(variant="jax/jit", round=1, failure="Unsupported", wall_seconds="6")
    out = io.StringIO()
    with display(Console(file=out, width=80)) as shown:
        shown.case_begins(case, 1, 1)
        shown.event(event)
    assert f"round 1: jax/jit: {said} (6.0 s)" in out.getvalue()
    drawn = printed(frame(advance(begin(case, 0.0), event, 6.0), 6.0, None, number=1, of=1), 80)
    assert said in drawn


def test_as_many_rounds_as_must_be_are_said_once() -> None:
    case = sample.case()
    asked = case.measurement.model_copy(update={"rounds_min": 3, "rounds_max": 3})
    assert ": 3 rounds, at most 10 min 00 s" in plan(case.model_copy(update={"measurement": asked}))


def test_no_time_is_shown_before_a_round_is_judged_nor_of_what_was_rejected() -> None:
    out = io.StringIO()
    rejected = SpeedupEstimate(variant="jax/jit", invalid=("parity",))
    wrong = TimeNow(variant="jax/jit", invalid=("parity",))
    with display(Console(file=out, width=80)) as shown:
        shown.case_begins(sample.case(), 1, 1)
        for variant in ("pytorch/eager", "jax/jit"):
            shown.event(LaunchFinished(variant=variant, round=1, wall_seconds="6"))
        before = out.getvalue()
        shown.event(RoundFinished(round=1, times=(TIMES[0], wrong), comparisons=(rejected,)))
    assert not re.search("[nµm]s", before)
    assert out.getvalue()[len(before) :].splitlines() == [
        "after round 1: pytorch/eager: 1.17 ms",
        "after round 1: jax/jit: invalid: parity",
    ]


def test_a_discarded_round_says_so_and_shows_no_time_of_its_own() -> None:
    out = io.StringIO()
    with display(Console(file=out, width=80)) as shown:
        shown.event(RoundFinished(round=2, quarantined=("shared-device of jax/jit: 40 %",), times=TIMES))
    assert (
        "round 2 is discarded for every variant, and measured again if there is time: shared-device of jax/jit: 40 %"
        in out.getvalue()
    )
    assert "after round" not in out.getvalue()


def test_the_picture_stands_still_while_blocks_are_timed() -> None:
    out = io.StringIO()
    shown = display(Console(file=out, width=80, force_terminal=True), clock=lambda: 1.0)
    assert isinstance(shown, LiveTable)
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


STOLEN = ("throttled for jax/jit: Hypervisor steal: 7 % (limit 5 %)",)
ADVICE = "What to do: wait for a quieter time; or accept noise: --accept-noise."


def lines_of(*events: Event) -> list[str]:
    out = io.StringIO()
    with display(Console(file=out, width=80)) as shown:
        shown.case_begins(sample.case(), 1, 1)
        for event in events:
            shown.event(event)
        shown.case_ends()
    return out.getvalue().splitlines()[2:]


def test_why_rounds_are_discarded_and_what_to_do_is_said_once() -> None:
    lines = lines_of(*(RoundFinished(round=number, quarantined=STOLEN, advice=ADVICE) for number in (1, 2)))
    first, advice, second = lines
    assert advice == ADVICE
    assert first == f"round 1 is discarded for every variant, and measured again if there is time: {STOLEN[0]}"
    assert second == "round 2 is discarded for every variant, and measured again if there is time"


def test_rounds_that_count_although_they_were_disturbed_are_said_to() -> None:
    noisy = SpeedupEstimate(variant="jax/jit", noisy=True, speedup="2.041", lower="1.512", upper="2.771")
    lines = lines_of(
        RoundFinished(round=1, noisy=STOLEN, times=TIMES[1:], comparisons=(noisy,)),
        RoundFinished(round=2, noisy=STOLEN),
    )
    assert lines == [
        f"round 1 was disturbed, and counts because noise is accepted: {STOLEN[0]}",
        "after round 1: jax/jit: 574 µs, 2.04x (1.51 to 2.77) noisy",
        "round 2 was disturbed, and counts because noise is accepted",
    ]


def test_the_picture_says_what_disturbs_and_what_to_do() -> None:
    progress = advance(under_way(), RoundFinished(round=2, quarantined=STOLEN, advice=ADVICE), 22.0)
    text = " ".join(printed(frame(progress, 22.0, None, number=1, of=1), 80).split())
    assert f"disturbed: {STOLEN[0]}" in text
    assert ADVICE in text


def test_warnings_about_the_machine_stay_above_the_picture() -> None:
    out = io.StringIO()
    with display(Console(file=out, width=80, force_terminal=True)) as shown:
        shown.case_begins(sample.case(), 1, 1)
        shown.event(MachineSeen(warnings=("Hypervisor steal: 11 % (limit 5 %).",)))
    assert "warning: Hypervisor steal: 11 % (limit 5 %)." in out.getvalue()
