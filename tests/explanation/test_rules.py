"""Each rule gives its sentence where its condition holds, and is silent otherwise."""

from dataclasses import replace

import pytest

from accelbench.explanation.explain import explain_sides
from accelbench.explanation.side import LongestOperation, Side

FUSED = Side("jax/jit", 1.6e-3, operations=1, accessed_bytes=32_000_000, compiled=True, bytes_per_second=2e10)
PASSES = Side("pytorch/eager", 30.5e-3, operations=30, accessed_bytes=960_000_000, bytes_per_second=2e10)
SMALL = Side("pytorch/eager", 225e-6, operations=100, needed_seconds=4.1e-6)
SMALL_COMPILED = Side("jax/jit", 70e-6, operations=100, compiled=True, needed_seconds=4.1e-6)
FAST = Side("pytorch/eager", 14.4e-3, products=10, bound="compute", share_of_limit=0.93)
SLOW = Side("jax/jit", 25.8e-3, products=10, bound="compute", share_of_limit=0.52)
CLOSE = Side("jax/jit", 1.6e-3, bound="memory", share_of_limit=0.91)
FAR = Side("pytorch/eager", 6e-3, bound="memory", share_of_limit=0.24)


def reasons(faster: Side, slower: Side) -> str:
    return " ".join(explain_sides(faster, slower))


def test_fewer_passes_over_memory() -> None:
    assert reasons(FUSED, PASSES) == (
        "In a call, pytorch/eager dispatches 30 operations that read and write 960 MB; "
        "jax/jit runs 1 kernel that reads and writes 32.0 MB."
    )


@pytest.mark.parametrize(
    ("faster", "slower"),
    [
        pytest.param(replace(FUSED, operations=16), PASSES, id="nearly as many operations"),
        pytest.param(replace(FUSED, accessed_bytes=490_000_000), PASSES, id="nearly as many bytes"),
        pytest.param(FUSED, replace(PASSES, seconds=0.2), id="too few bytes for so much time"),
        pytest.param(FUSED, replace(PASSES, bytes_per_second=None), id="unknown speed of the memory"),
        pytest.param(FUSED, replace(PASSES, accessed_bytes=None), id="unknown bytes"),
        pytest.param(FUSED, replace(PASSES, operations=None), id="unknown operations"),
        pytest.param(PASSES, FUSED, id="more passes are faster"),
    ],
)
def test_passes_are_not_named_without_evidence_that_they_matter(faster: Side, slower: Side) -> None:
    assert reasons(faster, slower) == ""


def test_the_cost_of_small_operations() -> None:
    assert reasons(SMALL_COMPILED, SMALL) == (
        "At the device's limits, the work of a call would take 4.10 µs. "
        "pytorch/eager dispatches 100 operations in 225 µs, 2.25 µs each; "
        "jax/jit runs 100 kernels in 70.0 µs, 700 ns each."
    )


def test_small_operations_are_named_although_those_of_the_faster_side_are_unknown() -> None:
    assert reasons(replace(SMALL_COMPILED, operations=None), SMALL).endswith("in 225 µs, 2.25 µs each.")


@pytest.mark.parametrize(
    "slower",
    [
        pytest.param(replace(SMALL, needed_seconds=30e-6), id="work that takes more than a tenth of the time"),
        pytest.param(replace(SMALL, needed_seconds=None), id="unknown work"),
        pytest.param(replace(SMALL, operations=9), id="few operations"),
        pytest.param(replace(SMALL, operations=None), id="unknown operations"),
        pytest.param(replace(SMALL, seconds=3e-3), id="operations that take long, such as a slow sort"),
    ],
)
def test_the_cost_of_operations_is_not_named_without_evidence_that_it_matters(slower: Side) -> None:
    assert reasons(SMALL_COMPILED, slower) == ""


def test_the_same_products_at_another_rate() -> None:
    assert reasons(FAST, SLOW) == (
        "Both make 10 matrix products in a call: "
        "pytorch/eager reaches 93 % of what the device can compute, jax/jit 52 %."
    )


def test_more_products() -> None:
    assert reasons(FAST, replace(SLOW, products=20)) == (
        "In a call, jax/jit makes 20 matrix products and pytorch/eager 10."
    )


@pytest.mark.parametrize(
    ("faster", "slower"),
    [
        pytest.param(replace(FAST, share_of_limit=0.4), SLOW, id="most of the time is no arithmetic"),
        pytest.param(replace(FAST, share_of_limit=None), SLOW, id="unknown share"),
        pytest.param(replace(FAST, share_of_limit=0.7), replace(SLOW, products=11), id="other products, hardly more"),
        pytest.param(replace(FAST, share_of_limit=0.7), replace(SLOW, products=None), id="unknown products"),
        pytest.param(FAST, replace(SLOW, bound="memory"), id="bound by different limits"),
    ],
)
def test_products_are_not_named_without_evidence_that_they_matter(faster: Side, slower: Side) -> None:
    assert reasons(faster, slower) == ""


def test_a_variant_close_to_the_limit() -> None:
    assert reasons(CLOSE, FAR) == "jax/jit reaches 91 % of what the device's memory can move, pytorch/eager 24 %."


@pytest.mark.parametrize(
    ("faster", "slower"),
    [
        pytest.param(replace(CLOSE, share_of_limit=0.79), FAR, id="not close"),
        pytest.param(replace(CLOSE, bound=None), replace(FAR, bound=None), id="unknown limit"),
        pytest.param(CLOSE, replace(FAR, bound="compute"), id="bound by different limits"),
    ],
)
def test_a_limit_is_not_named_if_no_variant_is_close_to_it(faster: Side, slower: Side) -> None:
    assert reasons(faster, slower) == ""


SORT = LongestOperation("sort", share=0.998, runs=1, source="rows.py:12")
ATEN_SORT = LongestOperation("aten::sort", share=0.92, runs=1)
SORTS = Side("pytorch/eager", 71e-3, longest=ATEN_SORT)
SORTS_SLOWLY = Side("jax/jit", 352e-3, longest=SORT)


def test_a_slow_operation_with_its_counterpart() -> None:
    assert reasons(SORTS, SORTS_SLOWLY) == (
        "sort (rows.py:12) takes 100 % of jax/jit's call of 352 ms; "
        "a whole call of pytorch/eager takes 71.0 ms, 92 % of it in aten::sort."
    )


@pytest.mark.parametrize(
    "faster",
    [
        pytest.param(replace(SORTS, longest=None), id="no profile"),
        pytest.param(replace(SORTS, longest=replace(ATEN_SORT, share=0.4)), id="no operation takes most"),
        pytest.param(replace(SORTS, longest=replace(ATEN_SORT, merged=True)), id="a compiled program"),
    ],
)
def test_a_slow_operation_although_the_other_sides_operations_are_unknown(faster: Side) -> None:
    assert reasons(faster, SORTS_SLOWLY).endswith("a whole call of pytorch/eager takes 71.0 ms.")


@pytest.mark.parametrize(
    ("faster", "slower"),
    [
        pytest.param(SORTS, replace(SORTS_SLOWLY, longest=None), id="no profile, or a slow profiler"),
        pytest.param(SORTS, replace(SORTS_SLOWLY, longest=replace(SORT, share=0.49)), id="half of the call is other"),
        pytest.param(SORTS, replace(SORTS_SLOWLY, longest=replace(SORT, merged=True)), id="a fusion"),
        pytest.param(SORTS, replace(SORTS_SLOWLY, longest=replace(SORT, runs=20_000)), id="small operations"),
        pytest.param(
            replace(SORTS, seconds=0.2),
            replace(SORTS_SLOWLY, longest=replace(SORT, share=0.6)),
            id="the faster side may spend as long on it",
        ),
    ],
)
def test_an_operation_is_not_named_without_evidence_that_it_matters(faster: Side, slower: Side) -> None:
    assert "sort" not in reasons(faster, slower)


def test_matrix_products_that_are_counted_are_not_named_again() -> None:
    products = LongestOperation("dot_general", share=0.99, runs=10)
    assert "dot_general" not in reasons(FAST, replace(SLOW, longest=products))


WAITS = Side("jax/op-by-op", 636e-6, idle_share=0.89)


def test_time_in_which_nothing_runs() -> None:
    assert reasons(Side("jax/jit", 70e-6), WAITS) == (
        "During at least 89 % of jax/op-by-op's call of 636 µs, none of its operations runs; "
        "a whole call of jax/jit takes 70.0 µs."
    )


@pytest.mark.parametrize(
    ("faster", "slower"),
    [
        pytest.param(Side("jax/jit", 70e-6), replace(WAITS, idle_share=None), id="unknown"),
        pytest.param(Side("jax/jit", 70e-6), replace(WAITS, idle_share=0.4), id="operations take most"),
        pytest.param(Side("jax/jit", 500e-6), WAITS, id="the faster side may wait as long"),
        pytest.param(
            Side("jax/jit", 400e-6, idle_share=0.8), replace(WAITS, idle_share=0.55), id="the faster side waits as long"
        ),
    ],
)
def test_waiting_is_not_named_without_evidence_that_it_matters(faster: Side, slower: Side) -> None:
    assert reasons(faster, slower) == ""
