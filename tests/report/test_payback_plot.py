import pytest

from accelbench.api.result import LaunchSummary, VariantResult
from accelbench.report.plots import payback
from accelbench.stats.payback import LaunchCost, whole_steps
from accelbench.stats.payback import estimate_payback as answer
from accelbench.stats.summary import geometric_mean
from report import sample


def measured(use: str, steps: list[float]) -> VariantResult:
    """Its time is the geometric mean of `steps`, as everywhere."""
    launches = tuple(
        LaunchSummary(round=number, seconds=f"{step:.9f}", blocks=20, units_per_block=10)
        for number, step in enumerate(steps, start=1)
    )
    return sample.variant(use, f"{geometric_mean(steps):.12f}").model_copy(update={"launches": launches})


def test_a_curve_crosses_the_baseline_at_the_number_of_steps_of_the_result() -> None:
    before, after = [0.0112, 0.0118, 0.0115, 0.0109], [0.0057, 0.0061, 0.0058, 0.0055]
    found = answer([LaunchCost(0.041, geometric_mean(before))] * 4, [LaunchCost(0.78, geometric_mean(after))] * 4, 0.05)
    assert found is not None
    assert found.steps is not None
    pays_back = sample.PAYS_BACK["jax/jit"].model_copy(update={"steps": whole_steps(found.steps)})
    comparison = sample.comparison("jax/jit", "faster", "2.041", "2.012", "2.071")
    [curve] = payback.curves(
        sample.result(
            variants=(measured("pytorch/eager", before), measured("jax/jit", after)),
            comparisons=(comparison.model_copy(update={"pays_back": pays_back}),),
        )
    )
    assert curve.speedup(found.steps) == pytest.approx(1, rel=1e-6)
    assert curve.speedup(1) < 1 < curve.speedup(1e6) < 2.1


def test_the_curve_shows_the_answer_of_the_result() -> None:
    plot = payback.plot(sample.result(), "payback")
    assert plot is not None
    assert "jax/jit pays back after 1,240 products (1,180 to 1,310); jax/op-by-op pays back never" in plot.description


def test_invalid_comparisons_and_equal_first_calls_have_no_curve() -> None:
    assert payback.plot(sample.result(comparisons=(sample.invalid("jax/jit"),)), "payback") is None
    free = sample.PAYS_BACK["jax/jit"].model_copy(update={"extra_seconds": "0.0002"})
    comparison = sample.comparison("jax/jit", "faster", "2.041", "2.012", "2.071")
    result = sample.result(comparisons=(comparison.model_copy(update={"pays_back": free}),))
    assert payback.plot(result, "payback") is None
