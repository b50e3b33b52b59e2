"""Measured rows without a verdict: unfair sides, and ratios that a plain product has too."""

from typing import Any

import pytest

from accelbench.api.run import Expectation
from accelbench.claims.ledger import Claim
from accelbench.claims.settle import ClaimManifest, MeasuredRun, SettledClaim, settle
from accelbench.verdict.expectations import evaluate
from report import sample

EAGER, JIT = "pytorch/eager", "jax/jit"
Interval = tuple[str, str]
TWICE = Expectation(metric="speedup", variant=JIT, at_least="2")


def a_claim(**changes: Any) -> Claim:
    fields = {"row": 1, "article": "A0", "quote": "twice as fast", "asks": "is it?", "hardware": ("cpu",)}
    return Claim(**{**fields, "manifests": ("row.yaml",), "beside": ("product.yaml",), **changes})


def a_run(name: str, interval: Interval, **changes: Any) -> MeasuredRun:
    middle = f"{(float(interval[0]) + float(interval[1])) / 2:g}"
    result = sample.result(
        case=sample.case((EAGER, JIT)),
        variants=(sample.variant(EAGER, "0.002"), sample.variant(JIT, "0.0009")),
        comparisons=(sample.comparison(JIT, "faster", middle, *interval, EAGER),),
        **changes,
    )
    return MeasuredRun(((result, evaluate((TWICE,), result)),), 1, name)


def settled(claim: Claim, row: Interval, product: MeasuredRun | None = None) -> SettledClaim:
    return settle(claim, [ClaimManifest("row", a_run("row", row))], hardware="cpu", control=product)


@pytest.mark.parametrize("interval", [("2.1", "2.3"), ("1.2", "1.4"), ("1.9", "2.1")])
def test_sides_unlike_common_practice_decide_nothing_and_the_shortcomings_are_named(
    interval: Interval,
) -> None:
    found = settled(a_claim(sides_lack="CUDA graphs"), interval)
    assert found.verdict == "withheld"
    assert "missing: CUDA graphs" in found.withheld[0]


def test_shortcomings_of_the_sides_are_named_before_anything_is_measured() -> None:
    found = settle(a_claim(sides_lack="CUDA graphs"), [ClaimManifest("row", None)], hardware="cpu")
    assert found.verdict == "not-measured-yet"
    assert "missing: CUDA graphs" in found.withheld[0]


@pytest.mark.parametrize(
    ("row", "product", "verdict"),
    [
        (("2.1", "2.3"), ("2.0", "2.2"), "withheld"),
        (("2.1", "2.3"), ("3.0", "3.4"), "withheld"),
        (("2.1", "2.3"), ("1.2", "1.4"), "confirmed"),
        (("2.1", "2.3"), ("0.7", "0.8"), "confirmed"),
        (("0.4", "0.5"), ("0.45", "0.6"), "withheld"),
        (("0.4", "0.5"), ("2.0", "2.2"), "refuted"),
        (("0.9", "1.1"), ("2.0", "2.2"), "refuted"),  # no difference needs no explanation
    ],
)
def test_a_ratio_no_larger_than_that_of_a_plain_product_decides_nothing(
    row: Interval, product: Interval, verdict: str
) -> None:
    found = settled(a_claim(control="product.yaml"), row, a_run("product", product))
    assert found.verdict == verdict
    assert bool(found.withheld) == (verdict == "withheld")


def test_a_product_on_another_processor_explains_nothing_and_a_verdict_needs_one() -> None:
    elsewhere = a_run("product", ("1.0", "1.1"), fingerprint={"device.name": "another processor"})
    for product in (elsewhere, None):
        assert settled(a_claim(control="product.yaml"), ("2.1", "2.3"), product).verdict == "withheld"


def test_a_plain_product_alone_does_not_measure_the_row() -> None:
    product = a_run("product", ("1.0", "1.1"))
    manifests = [ClaimManifest("row", None)]
    found = settle(
        a_claim(control="product.yaml"), manifests, hardware="cpu", control=product, additional_runs=[product]
    )
    assert found.verdict == "not-measured-yet"


def test_a_question_of_our_own_keeps_an_answer_that_the_product_does_not_explain() -> None:
    ours = a_claim(control="product.yaml", kind="question")
    assert settled(ours, ("2.1", "2.3"), a_run("product", ("2.0", "2.2"))).verdict == "withheld"
    found = settled(ours, ("2.1", "2.3"), a_run("product", ("1.2", "1.4")))
    assert found.verdict == "measured"
    assert "a plain product" in found.controls[0]


def test_a_control_that_the_page_does_not_show_is_refused() -> None:
    with pytest.raises(ValueError, match=r"other\.yaml is not in beside"):
        a_claim(control="other.yaml")
