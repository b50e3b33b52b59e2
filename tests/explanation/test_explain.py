"""A result is explained only where it has a verdict, and from numbers of whole calls."""

from typing import Any

import pytest

from accelbench.api.numbers import Numbers
from accelbench.api.operation_times import OperationTimes
from accelbench.api.result import Certificate, Result, VariantResult
from accelbench.document import decimal_string
from accelbench.explanation.explain import MAXIMUM_SENTENCES, explain
from report import sample
from report.scenarios import explained, profiled

PASSES = "pytorch/eager dispatches 30 operations"


def changed(number: int, **numbers: Any) -> tuple[VariantResult, ...]:
    """The variants of the explained result, with other numbers of one of them."""
    variants = list(explained().variants)
    variant = variants[number]
    variants[number] = variant.model_copy(update={"numbers": variant.numbers.model_copy(update=numbers)})
    return tuple(variants)


def test_the_sides_are_named_whichever_is_the_baseline() -> None:
    (sentence,) = explain(explained())
    assert PASSES in sentence
    assert "jax/jit runs 1 kernel" in sentence
    slower = sample.comparison("pytorch/eager", "slower", "0.0525", "0.052", "0.053", "jax/jit")
    case = sample.case(("jax/jit", "pytorch/eager"))
    reversed_result = explained().model_copy(update={"case": case, "comparisons": (slower,)})
    assert explain(reversed_result) == (sentence,)


@pytest.mark.parametrize("verdict", ["equivalent", "inconclusive"])
def test_without_a_difference_nothing_is_explained(verdict: str) -> None:
    undecided = sample.comparison("jax/jit", verdict, "1.01", "0.99", "1.03")
    assert explain(explained().model_copy(update={"comparisons": (undecided,)})) == ()


def test_an_invalid_comparison_is_not_explained() -> None:
    failed = sample.passed("parity", "jax/jit").model_copy(update={"outcome": "failed"})
    changes = {"comparisons": (sample.invalid("jax/jit", "parity"),), "certificate": Certificate(checks=(failed,))}
    assert explain(explained().model_copy(update=changes)) == ()


def test_bytes_of_a_program_with_a_loop_are_not_compared_because_its_body_counts_once() -> None:
    assert explain(explained().model_copy(update={"variants": changed(1, kernels_per_call=10)})) == ()


def test_calls_of_different_length_are_not_compared() -> None:
    assert explain(explained().model_copy(update={"variants": changed(1, units_per_call=10)})) == ()


@pytest.mark.parametrize("protocol", ["episode", "arrivals"])
def test_times_that_contain_compiling_or_waiting_are_not_explained(protocol: str) -> None:
    assert explain(explained().model_copy(update={"protocol": protocol})) == ()


def slowed_down(times_as_long: float) -> Result:
    """The profiled result, whose slower side took so many times as long under the profiler."""
    variants = []
    for variant in profiled().variants:
        profile = variant.operation_times
        assert profile is not None
        assert variant.seconds is not None
        seconds = float(variant.seconds.geometric_mean_seconds)
        operations = tuple(
            operation.model_copy(update={"seconds": decimal_string(times_as_long * float(operation.seconds))})
            for operation in profile.operations
        )
        changes = {"seconds_per_call": decimal_string(times_as_long * seconds), "operations": operations}
        variants.append(variant.model_copy(update={"operation_times": profile.model_copy(update=changes)}))
    return profiled().model_copy(update={"variants": tuple(variants)})


def test_an_operation_that_a_profile_shows_is_named() -> None:
    (sentence,) = explain(profiled())
    assert sentence.startswith("sort (rows.py:12) takes")


def test_shares_are_those_of_a_call_that_the_profiler_slows_down_by_a_quarter_at_most() -> None:
    assert explain(slowed_down(1.24))
    assert explain(slowed_down(1.26)) == ()


@pytest.mark.parametrize(
    ("busy_share", "profiled", "sentences"),
    [
        pytest.param("0.1", "0.4", ("During at least 90 % of",), id="as fast as timed"),
        pytest.param("0.1", "0.6", ("During at least 85 % of",), id="half as fast as timed, mostly between operations"),
        pytest.param("0.4", "0.8", (), id="operations may take most of the timed call"),
        pytest.param(None, "0.4", (), id="unknown"),
    ],
)
def test_idle_time_is_what_operations_cannot_fill_however_slow_the_profiler(
    busy_share: str | None, profiled: str, sentences: tuple[str, ...]
) -> None:
    times = OperationTimes(seconds_per_call=profiled, calls=3, busy_share=busy_share, operations=())
    variants = (
        sample.variant("pytorch/eager", "0.01").model_copy(update={"numbers": Numbers(), "bound": None}),
        sample.variant("jax/jit", "0.4").model_copy(
            update={"numbers": Numbers(), "bound": None, "operation_times": times}
        ),
    )
    comparison = sample.comparison("jax/jit", "slower", "0.025", "0.024", "0.026")
    result = explained().model_copy(update={"variants": variants, "comparisons": (comparison,)})
    found = explain(result)
    assert len(found) == len(sentences)
    assert all(text.startswith(beginning) for text, beginning in zip(found, sentences, strict=True))


def test_a_profile_does_not_explain_what_has_no_verdict() -> None:
    undecided = sample.comparison("jax/jit", "inconclusive", "0.99", "0.9", "1.03")
    assert explain(profiled().model_copy(update={"comparisons": (undecided,)})) == ()


def test_the_sentences_of_a_result_are_few() -> None:
    names = tuple(f"jax/jit-{number}" for number in range(15))
    baseline, fast = explained().variants
    many: Result = explained().model_copy(
        update={
            "variants": (baseline, *(fast.model_copy(update={"name": name}) for name in names)),
            "comparisons": tuple(sample.comparison(name, "faster", "19", "18", "20") for name in names),
        }
    )
    assert len(explain(many)) == MAXIMUM_SENTENCES
