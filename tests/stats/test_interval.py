import math
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from accelbench.stats.interval import Interval, log_speedups, student_interval, student_quantile

seconds = st.floats(min_value=1e-9, max_value=1e3)
pairs = st.lists(st.tuples(seconds, seconds), min_size=3, max_size=50)


def interval_of(baseline: Sequence[float], variant: Sequence[float]) -> Interval | None:
    return student_interval(log_speedups(baseline, variant), 0.05)


def test_the_interval_of_known_numbers_is_the_textbooks() -> None:
    # Mean of the logarithms 0.1, deviation 0.01, four pairs: 2.5 % quantile of t with 3 degrees of freedom is 3.182446.
    spread = 0.01 * math.sqrt(3) / 2
    log_ratios = [0.1 - spread, 0.1 + spread, 0.1 - spread, 0.1 + spread]
    interval = student_interval(log_ratios, 0.05)
    assert interval.estimate == pytest.approx(math.exp(0.1))
    assert interval.log_half_width == pytest.approx(3.182446305 * 0.01 / 2)
    assert (interval.lower, interval.upper) == pytest.approx((math.exp(0.1 - 0.01591223), math.exp(0.1 + 0.01591223)))


def test_a_variant_that_takes_half_the_time_has_a_speedup_of_two() -> None:
    assert interval_of([2.0, 2.0, 2.0], [1.0, 1.0, 1.0]).estimate == pytest.approx(2)


@given(pairs)
def test_swapping_variant_and_baseline_inverts_the_interval_exactly(values: Any) -> None:
    one, other = zip(*values, strict=True)
    interval, inverse = interval_of(one, other), interval_of(other, one)
    if interval is None:
        assert inverse is None
    else:
        assert inverse.log_estimate == -interval.log_estimate
        assert inverse.log_half_width == interval.log_half_width


@given(pairs, st.floats(min_value=1e-3, max_value=1e3))
def test_another_unit_of_time_changes_nothing(values: Any, unit: float) -> None:
    one, other = zip(*values, strict=True)
    interval = interval_of(one, other)
    scaled = interval_of([value * unit for value in one], [value * unit for value in other])
    if interval is None or scaled is None:
        assume(interval is scaled)  # one of them is at the limit of what is shown
    else:
        assert scaled.log_estimate == pytest.approx(interval.log_estimate, abs=1e-12)
        assert scaled.log_half_width == pytest.approx(interval.log_half_width, abs=1e-11)


@given(pairs)
def test_a_smaller_alpha_never_narrows_the_interval(values: Any) -> None:
    log_ratios = log_speedups(*zip(*values, strict=True))
    wide, narrow = student_interval(log_ratios, 0.001), student_interval(log_ratios, 0.05)
    if wide is not None:
        assert wide.log_half_width >= narrow.log_half_width


@pytest.mark.parametrize("log_ratios", [[], [0.3]])
def test_fewer_than_two_pairs_have_no_interval(log_ratios: list[float]) -> None:
    assert student_interval(log_ratios, 0.05) is None


def test_an_unbounded_interval_is_none() -> None:
    assert student_interval([0.0, 1.0], 1e-5) is None


def test_unequal_numbers_of_launches_are_no_pairs() -> None:
    with pytest.raises(ValueError, match="shorter"):
        log_speedups([1.0, 2.0], [1.0])


def test_the_quantile_is_the_tables() -> None:
    assert student_quantile(0.975, 4) == pytest.approx(2.776445, abs=1e-6)


def test_statistics_can_be_imported_without_numpy_and_scipy() -> None:
    modules = "interval, stopping, summary, gap, independence, drift, payback, spread, change_points"
    program = (
        f"from accelbench.stats import {modules}; import sys; print('numpy' in sys.modules, 'scipy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
