"""Each rule gives its sentence where its condition holds, and is silent otherwise."""

from dataclasses import replace

import pytest

from accelbench.explanation.explain import explain_sides
from accelbench.explanation.side import Side

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
def test_a_limit_is_not_named_if_nobody_is_close_to_it(faster: Side, slower: Side) -> None:
    assert reasons(faster, slower) == ""
