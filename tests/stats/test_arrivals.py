"""When requests arrive: at one rate, the same for all variants of a round, and known before any of them is served."""

import itertools
import math
import statistics
from typing import Any

import pytest

from accelbench.stats.arrivals import arrival_times


def times(**changes: Any) -> tuple[float, ...]:
    asked = {"rate_per_second": 50.0, "process": "poisson", "requests": 1000, "seed": 3, "case": "all"}
    return arrival_times(**{**asked, "round_number": 1, **changes})


def intervals(arrivals: tuple[float, ...]) -> list[float]:
    return [later - earlier for earlier, later in itertools.pairwise((0.0, *arrivals))]


def test_a_rounds_schedule_is_the_same_however_often_it_is_asked_for() -> None:
    assert times() == times()


@pytest.mark.parametrize("change", [{"round_number": 2}, {"seed": 4}, {"case": "size-16"}])
def test_each_round_seed_and_case_has_its_own_schedule(change: dict[str, Any]) -> None:
    assert times() != times(**change)


def test_a_schedule_is_the_same_on_every_python() -> None:
    assert times(requests=100)[:3] == pytest.approx((0.040754535, 0.057666195, 0.076397954), rel=1e-7)


def test_intervals_of_independent_requests_are_exponential_with_the_mean_of_the_rate() -> None:
    found = intervals(times(requests=10_000))
    mean = statistics.fmean(found)
    assert mean == pytest.approx(1 / 50, rel=5 / math.sqrt(10_000))
    assert statistics.pstdev(found) == pytest.approx(mean, rel=0.05)
    for share in (0.1, 0.5, 0.9):  # the exponential distribution's own quantiles
        shorter = sum(interval < -math.log(1 - share) / 50 for interval in found) / len(found)
        assert shorter == pytest.approx(share, abs=0.02)
    assert min(found) > 0


def test_a_constant_rate_has_equal_intervals_in_every_round() -> None:
    assert intervals(times(process="constant", requests=100)) == pytest.approx([0.02] * 100)
    assert times(process="constant") == times(process="constant", round_number=2)
