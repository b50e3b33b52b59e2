import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelbench.api.result import Certificate, Check
from accelbench.stats.interval import Interval
from accelbench.verdict.rule import InvalidMeasurementError, ValidMeasurement, checks_against_verdict, verdict_sentence

CLEAN = Certificate(
    checks=(
        Check(name="parity", outcome="passed", reading="0.2"),
        Check(name="non-finite", outcome="passed", reading="none"),
        Check(name="throttled", outcome="untested", reading="not reported"),
    )
)
measurement = ValidMeasurement(certificate=CLEAN, variant="jax/jit", baseline="pytorch/eager")
logarithms = st.floats(-3, 3)
widths = st.floats(0, 1)
margins = st.floats(0, 0.5)


def an_interval(lower: float, upper: float) -> Interval:
    half = (math.log(upper) - math.log(lower)) / 2
    return Interval(log_estimate=math.log(lower) + half, log_half_width=half, pairs=8)


def a_sentence(lower: float, upper: float, margin: float = 0.02) -> str:
    interval = an_interval(lower, upper)
    return verdict_sentence(
        measurement.decide(interval, margin),
        interval,
        variant="jax/jit",
        baseline="torch",
        margin=margin,
        confidence="95 %",
    )


@pytest.mark.parametrize(
    ("lower", "upper", "verdict"),
    [
        (1.03, 1.05, "faster"),
        (0.90, 0.97, "slower"),
        (0.99, 1.01, "equivalent"),
        (1.005, 1.015, "equivalent"),
        (1.01, 1.05, "inconclusive"),
        (0.90, 1.10, "inconclusive"),
        (0.95, 0.99, "inconclusive"),
    ],
)
def test_the_interval_against_the_margin_decides(lower: float, upper: float, verdict: str) -> None:
    assert measurement.decide(an_interval(lower, upper), 0.02) == verdict


@given(logarithms, widths, margins)
def test_swapping_the_sides_swaps_faster_and_slower(log_estimate: float, width: float, margin: float) -> None:
    there = measurement.decide(Interval(log_estimate, width, 8), margin)
    back = measurement.decide(Interval(-log_estimate, width, 8), margin)
    edges = [abs(abs(log_estimate + sign * width) - math.log1p(margin)) for sign in (-1, 1)]
    if min(edges) > 1e-12:
        assert back == {"faster": "slower", "slower": "faster"}.get(there, there)


@given(logarithms, widths, margins)
def test_an_interval_that_holds_1_never_says_faster_or_slower(log_estimate: float, width: float, margin: float) -> None:
    if abs(log_estimate) <= width:
        assert measurement.decide(Interval(log_estimate, width, 8), margin) in {"equivalent", "inconclusive"}


@given(logarithms, widths, widths, margins)
def test_a_wider_interval_is_never_more_decisive(log_estimate: float, width: float, more: float, margin: float) -> None:
    narrow = measurement.decide(Interval(log_estimate, width, 8), margin)
    wide = measurement.decide(Interval(log_estimate, width + more, 8), margin)
    assert wide in {narrow, "inconclusive"}


@pytest.mark.parametrize(
    ("checks", "names"),
    [
        ((), ("parity", "non-finite")),
        ((*CLEAN.checks, Check(name="recompiled", outcome="failed", reading="2", variant="jax/jit")), ("recompiled",)),
        ((*CLEAN.checks, Check(name="threads", outcome="failed", reading="1", variant="pytorch/eager")), ("threads",)),
        ((*CLEAN.checks, Check(name="same-inputs", outcome="failed", reading="2")), ("same-inputs",)),
        (CLEAN.checks[1:], ("parity",)),
        ((Check(name="parity", outcome="untested", reading="?"), *CLEAN.checks[1:]), ("parity",)),
    ],
)
def test_a_certificate_with_failed_checks_gives_no_verdict(checks: tuple[Check, ...], names: tuple[str, ...]) -> None:
    certificate = Certificate(checks=checks)
    assert checks_against_verdict(certificate, "jax/jit", "pytorch/eager") == names
    with pytest.raises(InvalidMeasurementError, match=names[0]):
        ValidMeasurement(certificate=certificate, variant="jax/jit", baseline="pytorch/eager")


def test_a_failed_check_of_another_variant_does_not_matter() -> None:
    other = Check(name="recompiled", outcome="failed", reading="2", variant="pytorch/compile")
    assert checks_against_verdict(Certificate(checks=(*CLEAN.checks, other)), "jax/jit", "pytorch/eager") == ()


@pytest.mark.parametrize(
    ("lower", "upper", "sentence"),
    [
        (1.99, 2.09, "jax/jit is 2.04 times as fast as torch (1.99 to 2.09, 95 %)."),
        (0.485, 0.495, "jax/jit takes 2.04 times as long as torch (2.02 to 2.06, 95 %)."),
        (0.997, 1.011, "jax/jit is as fast as torch, within 2 %: between 0.997 and 1.01 times as fast (95 %)."),
        (0.9, 1.1, "No verdict: jax/jit is between 0.900 and 1.10 times as fast as torch (95 %)."),
        (
            1.01,
            1.05,
            (
                "No verdict: jax/jit is 1.010 to 1.050 times as fast as torch, "
                "which may be less than the margin of 2 % (95 %)."
            ),
        ),
        (
            0.95,
            0.99,
            (
                "No verdict: jax/jit is 0.950 to 0.990 times as fast as torch, "
                "which may be less than the margin of 2 % (95 %)."
            ),
        ),
        (1230.0, 1270.0, "jax/jit is 1,250 times as fast as torch (1,230 to 1,270, 95 %)."),
        (0.000123, 0.000124, "jax/jit takes 8,100 times as long as torch (8,060 to 8,130, 95 %)."),
    ],
)
def test_the_sentence_is_plain_with_at_most_three_digits(lower: float, upper: float, sentence: str) -> None:
    assert a_sentence(lower, upper) == sentence


def test_an_interval_without_width_has_a_sentence() -> None:
    assert "2.00 times as fast" in a_sentence(2.0, 2.0)
