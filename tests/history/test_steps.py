import pytest

from accelbench.history import change_points
from accelbench.history.sample import Side
from history.runs import run

QUIET = (1.000, 1.002, 0.999, 1.001, 0.998, 1.003, 1.000, 0.999, 1.002, 1.001, 0.999, 1.000)


def series(*factors: float) -> Side:
    times = ((0.001 * factor * wobble for wobble in (1.0, 1.001, 0.999)) for factor in factors)
    return Side("nightly", tuple(run({"jax/jit": list(its)}, day=day) for day, its in enumerate(times, start=1)))


def test_a_step_in_a_series_is_reported_with_its_time_and_size() -> None:
    side = series(*QUIET[:6], *(1.1 * factor for factor in QUIET[6:]))
    [found] = change_points.find_changes(side)
    assert (found.variant, found.since) == ("jax/jit", "2026-11-07T09:00:00Z")
    assert (found.position, found.series_length) == (7, 12)
    assert found.ratio == pytest.approx(1.1, rel=0.01)
    assert found.sentence == (
        "matmul-chain: jax/jit takes 1.1 times as long since 2026-11-07T09:00:00Z (result 7 of 12 in nightly)."
    )


def test_a_series_that_began_before_its_parameter_was_swept_is_one_series() -> None:
    stepped = series(*QUIET[:6], *(1.1 * factor for factor in QUIET[6:])).results
    swept = [
        each.model_copy(update={"case": each.case.model_copy(update={"swept": {"size": 512}})}) for each in stepped
    ]
    [found] = change_points.find_changes(Side("nightly", (*stepped[:9], *swept[9:])))
    assert (found.position, found.series_length, found.case) == (7, 12, ("matmul-chain", (("size", "512"),)))


def test_a_quiet_series_a_short_one_and_a_step_within_the_margin_have_none() -> None:
    assert change_points.find_changes(series(*QUIET)) == ()
    assert change_points.find_changes(series(*QUIET[:6], *(1.01 * factor for factor in QUIET[6:]))) == ()
    short = series(*QUIET[:9])
    assert change_points.find_changes(short) == ()
    assert (change_points.has_enough_results(short), change_points.has_enough_results(series(*QUIET))) == (False, True)
