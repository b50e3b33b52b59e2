"""A result is explained only where it has a verdict, and from numbers of whole calls."""

from typing import Any

import pytest

from accelbench.api.result import Certificate, Result, VariantResult
from accelbench.explanation.explain import MAXIMUM_SENTENCES, explain
from report import sample
from report.scenarios import explained

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
