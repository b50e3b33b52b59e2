"""What becomes of a claim, from results and expectations alone."""

from typing import Any

import pytest

from accelbench.api.numbers import Numbers
from accelbench.api.result import Certificate, Check, Comparison, Result
from accelbench.api.run import Expectation
from accelbench.claims.ledger import Claim
from accelbench.claims.settle import MeasuredRun, Settled, settle
from accelbench.verdict.expectations import evaluate
from report import sample

CLAIM = Claim(
    row=2,
    article="A0",
    words="three times as fast",
    hardware=("cpu", "gpu"),
    manifests=("02-jit.yaml",),
    confirms="where it is",
    refutes="where it is not",
)
TWICE = Expectation(metric="speedup", variant="jax/jit", at_least="2")
QUICK = Expectation(metric="seconds", variant="jax/jit", at_most="0.001")
USES = ("pytorch/eager", "jax/jit")


def a_result(lower: str, upper: str, **changes: Any) -> Result:
    comparison = sample.comparison("jax/jit", "faster", "2", lower, upper, USES[0])
    return sample.result(
        case=sample.case(USES),
        variants=(sample.variant(USES[0], "0.002"), sample.variant(USES[1], "0.0009")),
        comparisons=(comparison,),
        **changes,
    )


def invalid() -> Result:
    check = Check(name="parity", outcome="failed", reading="x is off", threshold="1e-5", variant="jax/jit")
    comparison: Comparison = sample.invalid("jax/jit", "parity")
    return a_result("2.1", "2.3").model_copy(
        update={"comparisons": (comparison,), "certificate": Certificate(checks=(check,))}
    )


def settled(*results: Result, expectations: tuple[Expectation, ...] = (TWICE,), cases: int | None = None) -> Settled:
    measured = tuple((result, evaluate(expectations, result)) for result in results)
    return settle(CLAIM, [MeasuredRun(measured, len(results) if cases is None else cases)], here="cpu")


@pytest.mark.parametrize(
    ("interval", "verdict"),
    [(("2.1", "2.3"), "confirmed"), (("1.2", "1.4"), "refuted"), (("1.9", "2.1"), "inconclusive")],
)
def test_the_whole_interval_decides(interval: tuple[str, str], verdict: str) -> None:
    assert settled(a_result(*interval)).verdict == verdict


def test_all_expectations_have_to_be_met_and_one_that_is_not_refutes() -> None:
    assert settled(a_result("2.1", "2.3"), expectations=(TWICE, QUICK)).verdict == "confirmed"
    assert settled(a_result("1.2", "1.4"), expectations=(TWICE, QUICK)).verdict == "refuted"


def test_all_cases_have_to_confirm_and_one_refutes() -> None:
    yes, no, perhaps = a_result("2.1", "2.3"), a_result("1.2", "1.4"), a_result("1.9", "2.1")
    assert settled(yes, yes).verdict == "confirmed"
    assert settled(yes, no).verdict == "refuted"
    assert settled(yes, perhaps).verdict == "inconclusive"
    assert settled(yes, cases=2).verdict == "inconclusive"


def test_what_is_invalid_failed_or_partial_settles_nothing() -> None:
    assert settled(invalid()).verdict == "inconclusive"
    failed = a_result("2.1", "2.3").model_copy(
        update={"variants": (sample.variant(USES[0], "1"), sample.failed(USES[1]))}
    )
    assert settled(failed).verdict == "inconclusive"
    assert settled(a_result("2.1", "2.3", complete=False, stopped="Interrupted")).verdict == "inconclusive"
    assert settled(a_result("1.2", "1.4", complete=False, stopped="Interrupted")).verdict == "inconclusive"
    assert settled(a_result("2.1", "2.3"), expectations=()).verdict == "inconclusive"


@pytest.mark.parametrize("interval", [("2.1", "2.3"), ("1.2", "1.4")])
def test_fewer_rounds_than_a_verdict_may_rest_on_settle_nothing(interval: tuple[str, str]) -> None:
    found = settled(a_result(*interval, rounds=2, stopped="TimeLimitReached"), expectations=(TWICE, QUICK))
    assert found.verdict == "inconclusive"
    assert all("2 of at least 5 rounds were measured" in sentence for sentence in found.found)


def test_a_parity_beyond_the_tolerance_refutes_what_rests_on_parity() -> None:
    same = Expectation(metric="parity", variant="jax/jit", at_most="1")
    off = Check(name="parity", outcome="failed", reading="x is off", threshold="1", variant="jax/jit")
    numbers = Numbers(parity="3.2")
    variants = tuple(each.model_copy(update={"numbers": numbers}) for each in a_result("2.1", "2.3").variants)
    result = invalid().model_copy(update={"variants": variants, "certificate": Certificate(checks=(off,))})
    assert settled(result, expectations=(same,)).verdict == "refuted"


def test_other_hardware_settles_nothing_whatever_was_measured() -> None:
    found = settle(CLAIM, [None], here="tpu")
    assert (found.verdict, found.found) == ("untestable-here", ())
    assert settle(CLAIM, [None], here="gpu").verdict == "not-run"


def test_what_was_found_is_said_with_its_numbers_and_its_machine() -> None:
    found = settled(a_result("2.1", "2.3"))
    [sentence] = found.found
    assert "2.10 to 2.30" in sentence
    assert "speedup of jax/jit at least 2" in sentence
    assert found.hardware
    assert "checks passed" in found.certificate


def test_what_several_workloads_found_is_said_of_each() -> None:
    one = a_result("2.1", "2.3")
    other = one.model_copy(update={"case": one.case.model_copy(update={"workload": "maxsim"})})
    assert [sentence.partition(": ")[0] for sentence in settled(one, other).found] == [one.case.workload, "maxsim"]
    assert settled(one, one).found[0].startswith("speedup of")
