"""A compiled case has no time: its result refuses one, and everything derived from one."""

from typing import Any

import pytest
from pydantic import ValidationError

from accelbench.api.numbers import Numbers
from accelbench.api.result import Comparison, LaunchSummary, PhaseTime, Quantiles, Result
from accelbench.api.run import Expectation
from accelbench.verdict.expectations import evaluate
from targets.documents import compiled

SECONDS = dict.fromkeys(
    ("geometric_mean_seconds", "p5_seconds", "p25_seconds", "median_seconds", "p75_seconds", "p95_seconds"), "1"
)


@pytest.mark.parametrize(
    "timed",
    [
        {"seconds": Quantiles(**SECONDS)},
        {"launches": (LaunchSummary(round=1, seconds="1", blocks=1, units_per_block=1),)},
        {"phases": (PhaseTime(phase="steady", median_seconds="1", min_seconds="1", max_seconds="1"),)},
        {"numbers": Numbers(flops_per_second="1")},
        {"bound": "compute"},
    ],
    ids=lambda timed: next(iter(timed)),
)
def test_a_variant_that_was_compiled_cannot_have_a_time(timed: dict[str, Any]) -> None:
    result = compiled()
    variants = (result.variants[0], result.variants[1].model_copy(update=timed))
    with pytest.raises(ValidationError, match="a case that is compiled for a target did not run: it has no time"):
        Result.model_validate(result.model_copy(update={"variants": variants}).model_dump())


def test_what_was_compiled_cannot_have_a_speedup() -> None:
    comparison = Comparison(
        variant="jax/jit", baseline="pytorch/eager", rounds=5, confidence="0.95", speedup="2", sentence="faster"
    )
    with pytest.raises(ValidationError, match="no speedup can be known"):
        compiled(comparisons=(comparison,))


def test_the_headline_shows_whether_the_program_fits() -> None:
    assert compiled().headline.startswith("jax/jit fits h100x8 (40.0 GB of 80.0 GB a device)")
    assert compiled(fits=False).headline.startswith("jax/jit does not fit h100x8")


def test_a_variant_that_cannot_be_compiled_is_a_valid_answer() -> None:
    assert compiled().valid
    broken = compiled().variants[1].failure
    assert broken is None
    assert not compiled(compiled=()).valid, "where nothing was compiled, there is no answer"


def test_a_result_survives_being_written_and_read() -> None:
    assert Result.model_validate_json(compiled().to_json()) == compiled()


def judged(**asked: Any) -> list[tuple[str, str]]:
    expectation = Expectation(variant="jax/jit", **asked)
    return [(each.outcome, each.sentence) for each in evaluate((expectation,), compiled())]


def test_an_expectation_is_evaluated_on_the_compiled_program() -> None:
    assert judged(metric="peakBytes", at_most="80000000000", target="h100x8") == [
        ("met", "peakBytes of jax/jit on h100x8 at most 80000000000: met, 40,000,000,000 B.")
    ]
    [(outcome, _)] = judged(metric="allReduces", at_most="2")
    assert outcome == "not-met"


def test_an_expectation_on_another_target_does_not_apply_to_this_one() -> None:
    assert judged(metric="fits", at_least="1", target="v5e-16") == []
