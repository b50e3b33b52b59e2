"""Sweep to cases: every combination once, in a stable order, with what a runner needs to know."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelbench.api.run import BenchmarkRun
from accelbench.plan.cases import TooManyCasesError, plan_cases, to_fraction


def run_with(**spec: Any) -> BenchmarkRun:
    manifest = {
        "apiVersion": "accelbench.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": "sweep", "namespace": "team", "uid": "u-1"},
        "spec": {
            "workload": {"name": "matmul-chain", "parameters": {"length": 10}},
            "variants": [{"use": "pytorch/eager"}, {"use": "jax/jit", "name": "jit"}, {"use": "jax/scan"}],
            **spec,
        },
    }
    return BenchmarkRun.model_validate(manifest)


def test_a_run_without_a_sweep_is_one_case() -> None:
    (case,) = plan_cases(run_with())
    assert case.name == "all"
    assert case.parameters == {"length": 10}
    assert [variant.name for variant in case.variants] == ["pytorch/eager", "jit", "jax/scan"]
    assert case.baseline == "pytorch/eager"
    assert case.comparisons_in_run == 2


def test_axes_multiply_and_the_last_varies_fastest() -> None:
    cases = plan_cases(
        run_with(sweep=[{"name": "size", "values": [256, 512]}, {"name": "scaling", "values": ["none", "normalized"]}])
    )
    assert [case.swept for case in cases] == [
        {"size": 256, "scaling": "none"},
        {"size": 256, "scaling": "normalized"},
        {"size": 512, "scaling": "none"},
        {"size": 512, "scaling": "normalized"},
    ]
    assert all(case.parameters == {"length": 10, **case.swept} for case in cases)
    assert all(case.comparisons_in_run == 8 for case in cases)


@given(st.lists(st.integers(1, 5), max_size=4))
def test_every_combination_is_one_case_with_a_name_of_its_own(sizes: list[int]) -> None:
    sweep = [{"name": f"p{axis}", "values": list(range(size))} for axis, size in enumerate(sizes)]
    product = 1
    for size in sizes:
        product *= size
    run = run_with(sweep=sweep)
    if product > 256:
        with pytest.raises(TooManyCasesError):
            plan_cases(run)
        return
    cases = plan_cases(run)
    assert len({case.name for case in cases}) == len(cases) == product
    assert cases == plan_cases(run)


def test_more_than_256_cases_are_refused_with_their_number() -> None:
    axes = [{"name": name, "values": list(range(17))} for name in ("a", "b")]
    with pytest.raises(TooManyCasesError, match=r"spec\.sweep: 289 cases, at most 256"):
        plan_cases(run_with(sweep=axes))


def test_the_case_carries_run_series_and_measurement() -> None:
    (case,) = plan_cases(run_with(measurement={"targetRelativeError": "0.5%", "confidence": "99%", "seed": 7}))
    assert case.origin.model_dump() == {
        "run": "sweep", "series": "sweep", "namespace": "team", "uid": "u-1", "attempt": 1,
    }  # fmt: skip
    assert case.measurement.target_relative_error == "0.005"
    assert case.measurement.confidence == "0.99"
    assert case.measurement.equivalence_margin == "0.02"
    assert case.measurement.seed == 7


@pytest.mark.parametrize(("percentage", "decimal"), [("1%", "0.01"), ("0.25%", "0.0025"), ("95%", "0.95"), ("0%", "0")])
def test_percentages_become_exact_decimals(percentage: str, decimal: str) -> None:
    assert to_fraction(percentage) == decimal
