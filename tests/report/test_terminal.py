import io
import re

import pytest
from rich.console import Console, RenderableType

from accelbench.api.result import Certificate, Check
from accelbench.api.run import Expectation
from accelbench.report import terminal
from accelbench.verdict.expectations import evaluate
from report import sample


def printed(renderable: RenderableType, width: int, *, colour: bool = False) -> str:
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=colour, color_system="standard" if colour else None).print(renderable)
    return out.getvalue()


@pytest.mark.parametrize("width", [80, 104, 120, 140])
def test_a_verdict_fits_the_terminal_and_no_number_is_cut(width: int) -> None:
    text = printed(terminal.report(sample.result()), width)
    assert all(len(line) <= width for line in text.splitlines())
    assert "…" not in text
    line = next(line for line in text.splitlines() if line.startswith("jax/jit  "))
    assert line.split()[1:11] == ["574", "µs", "±", "0.4", "%", "2.04x", "2.01", "to", "2.07", line.split()[10]]
    assert "faster" in line
    assert "✓ all 6 checks passed" in text
    assert "jax/jit is faster: 2.041x (2.012 to 2.071)." in text


def test_the_longest_variant_of_xor_fits_into_eighty_columns() -> None:
    uses = ("pytorch/nn", "pytorch/no-optimizer")
    compared = sample.comparison(uses[1], "inconclusive", "0.0621", "0.0233", "0.101", uses[0])
    result = sample.result(
        case=sample.case(uses),
        variants=tuple(sample.variant(use, "0.000801", spread=0.18) for use in uses),
        comparisons=(compared,),
        certificate=Certificate(checks=sample.PARITY),
    )
    lines = printed(terminal.report(result), 80).splitlines()
    assert [len(line.split()) for line in lines if line.startswith("pytorch/no-optimizer  ")][:1] == [11]
    assert [len(line.split()) for line in lines if re.match("pytorch/no-optimizer +612", line)] == [15]


def test_a_wide_terminal_also_shows_the_interval_drawn() -> None:
    assert ["●" in printed(terminal.report(sample.result()), width) for width in (80, 120)] == [False, True]


def test_eighty_columns_show_what_the_first_call_and_the_work_cost() -> None:
    lines = [line.split() for line in printed(terminal.report(sample.result()), 80).splitlines()]
    assert ["jax/jit", "after", "1,240", "products", "(1,180", "to", "1,310)", "181", "ms"] in lines
    assert ["jax/jit", "230", "GFLOP/s", "2.70", "GB/s", "93", "%", "compute", "312", "MB"] in lines
    assert any(line[:4] == ["outlier", "blocks", "(kept", "in"] for line in lines)


def test_seven_phases_and_a_name_fit_into_eighty_columns() -> None:
    text = printed(terminal.report(sample.result()), 80)
    line = next(line for line in text.splitlines() if re.match(r"jax/op-by-op +612", line))
    assert line.split() == [
        "jax/op-by-op",
        "612",
        "ms",
        "84.1",
        "ms",
        "31.2",
        "ms",
        "63.4",
        "ms",
        "118",
        "ms",
        "1.02",
        "s",
        "3.41",
        "s",
    ]


def test_a_failed_check_is_shown_with_reading_and_threshold() -> None:
    check = Check(name="parity", outcome="failed", reading="x is off by 3e-2", threshold="1e-5", variant="jax/jit")
    result = sample.result(
        comparisons=(sample.invalid("jax/jit", "parity"),), certificate=Certificate(checks=(*sample.CHECKS, check))
    )
    text = printed(terminal.report(result), 80)
    assert "parity (jax/jit): x is off by 3e-2. Required: 1e-5." in text
    assert "✗ 6 of 7 checks passed, 1 failed (parity for jax/jit)" in text


def test_markup_in_a_message_is_printed_as_it_is() -> None:
    result = sample.result(notes=("[bold]not ours[/bold] [/oops]",))
    assert "note: [bold]not ours[/bold] [/oops]" in printed(terminal.report(result), 80)


def test_colours_only_where_there_is_a_terminal() -> None:
    assert "\x1b[" in printed(terminal.report(sample.result()), 80, colour=True)
    assert "\x1b" not in printed(terminal.report(sample.result()), 80)


def test_expectations_are_shown_with_their_outcome() -> None:
    expectations = [
        Expectation(metric="speedup", variant="jax/jit", at_least="2"),
        Expectation(metric="speedup", variant="jax/op-by-op", at_least="2"),
    ]
    text = printed(terminal.report(sample.result(), evaluate(expectations, sample.result())), 80)
    assert "✓ speedup of jax/jit at least 2: met" in text
    assert "✗ speedup of jax/op-by-op at least 2: not-met" in text


@pytest.mark.parametrize("width", [40, 60])
def test_a_narrow_terminal_splits_no_word_and_hides_no_number(width: int) -> None:
    text = printed(terminal.report(sample.result()), width)
    assert all(len(line) <= width for line in text.splitlines())
    wide = printed(terminal.report(sample.result()), 120)
    shown = {word for word in re.findall(r"[^\s│━●]+", wide) if word.strip("-")}
    heads = {
        "variant",
        "device-",
        "init",
        "first-",
        "step",
        "equal",
        "speed",
    }  # a list has no head, and writes device-init
    assert shown - heads <= set(text.split())


def test_the_mark_is_green_only_where_every_check_was_made_and_passed() -> None:
    open_ = Check(name="work-present", outcome="untested", reading="nobody counted", variant="jax/jit")
    text = printed(terminal.report(sample.result(certificate=Certificate(checks=(*sample.CHECKS, open_)))), 80)
    assert "? 6 of 7 checks passed, 1 untested (work-present for jax/jit)" in text
    assert "✓" not in text
