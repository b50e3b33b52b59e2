"""Which numbers decide a claim: counts and intervals do, ranges of enough launches do, single values do not."""

import pytest

from accelbench.api.numbers import Numbers
from accelbench.api.result import Comparison, LaunchSummary, PhaseTime, Result, VariantResult
from accelbench.api.run import Expectation
from accelbench.claims import evidence
from accelbench.verdict.expectations import ExpectationOutcome, evaluate
from report import sample

EAGER, JIT = "pytorch/eager", "jax/jit"


def weighed(expectation: Expectation, result: Result) -> ExpectationOutcome:
    [outcome] = evaluate([expectation], result)
    return evidence.weigh(outcome, result)


def a_result(*variants: VariantResult, rounds: int = 8, comparisons: tuple[Comparison, ...] = ()) -> Result:
    """Eager PyTorch and jit, in so many rounds, of which at least two are required."""
    case = sample.case((EAGER, JIT))
    case = case.model_copy(update={"measurement": case.measurement.model_copy(update={"rounds_min": 2})})
    return sample.result(case=case, variants=variants, comparisons=comparisons, rounds=rounds)


def compiled_in(name: str, shortest: str, longest: str) -> VariantResult:
    phase = PhaseTime(
        phase="compile",
        median_seconds=shortest,
        min_seconds=shortest,
        max_seconds=longest,
        parts={"backend": shortest},
    )
    return sample.variant(name, "0.001").model_copy(update={"phases": (phase,)})


def launched_in(name: str, *seconds: str) -> VariantResult:
    launches = tuple(
        LaunchSummary(round=number, seconds=each, blocks=20, units_per_block=1)
        for number, each in enumerate(seconds, start=1)
    )
    return sample.variant(name, seconds[0]).model_copy(update={"launches": launches})


COMPILED = (compiled_in(EAGER, "10", "11"), compiled_in(JIT, "0.1", "0.2"))


@pytest.mark.parametrize(("rounds", "outcome"), [(2, "undecided"), (3, "met")])
def test_a_ratio_of_ranges_decides_from_three_launches_of_each(rounds: int, outcome: str) -> None:
    found = weighed(Expectation(metric="compileRatio", variant=JIT, at_most="0.1"), a_result(*COMPILED, rounds=rounds))
    assert found.outcome == outcome
    assert ("launches are too few" in found.sentence) is (outcome == "undecided")


@pytest.mark.parametrize(("rounds", "outcome"), [(4, "undecided"), (5, "not-met")])
def test_a_range_of_one_variant_decides_from_five_launches(rounds: int, outcome: str) -> None:
    short = Expectation(metric="compileSeconds", variant=JIT, at_most="0.05")
    assert weighed(short, a_result(*COMPILED, rounds=rounds)).outcome == outcome


def test_a_range_of_percentiles_does_not_hide_the_slowest_launch() -> None:
    result = a_result(sample.variant(EAGER, "0.002"), launched_in(JIT, *["0.001"] * 7, "0.9"))
    quick = Expectation(metric="seconds", variant=JIT, at_most="0.1")
    [unweighed] = evaluate([quick], result)
    assert unweighed.outcome == "met"
    assert weighed(quick, result).outcome == "undecided"


def test_a_single_value_without_a_range_decides_nothing() -> None:
    def with_memory(name: str, peak: int) -> VariantResult:
        return sample.variant(name, "0.001").model_copy(update={"numbers": Numbers(peak_memory_bytes=peak)})

    expected = Expectation(metric="peakMemoryRatio", variant=JIT, at_most="0.5")
    found = weighed(expected, a_result(with_memory(EAGER, 1000), with_memory(JIT, 10)))
    assert found.outcome == "undecided"
    assert "one value for all launches has no interval" in found.sentence


@pytest.mark.parametrize(("slowest", "outcome"), [("0.0012", "met"), ("0.004", "undecided")])
def test_an_interval_that_may_be_too_narrow_decides_only_if_every_round_agrees(slowest: str, outcome: str) -> None:
    comparison = sample.comparison(JIT, "faster", "2", "1.9", "2.1", EAGER)
    sentence = f"{comparison.sentence} 1 of 8 launches was slow: the interval may be too narrow."
    variants = (launched_in(EAGER, *["0.002"] * 8), launched_in(JIT, *["0.001"] * 7, slowest))
    result = a_result(*variants, comparisons=(comparison.model_copy(update={"sentence": sentence}),))
    assert weighed(Expectation(metric="speedup", variant=JIT, at_least="1.5"), result).outcome == outcome
