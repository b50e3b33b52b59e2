"""Any two variants of a stored result can be compared, with the numbers of a run that had this baseline."""

import math

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from accelbench.api.result import Comparison, Result
from accelbench.launch.record import ParityReading
from accelbench.verdict.rebase import NotComparableError, with_baseline
from accelbench_runner.judge.assessment import judge
from accelbench_runner.judge_protocol import JudgeRequest
from accelbench_runner.supervisor.assemble import CaseTiming, assemble
from judge.launches import BASELINE, OTHER, VARIANT, a_case, rounds_of

TIMING = CaseTiming(started="2026-01-01T00:00:00Z", finished="2026-01-01T00:01:00Z", total_seconds=60, judge_seconds=4)
TWICE = {BASELINE: [0.02, 0.0201, 0.0199, 0.02, 0.0202], VARIANT: [0.01] * 5, OTHER: [0.0101, 0.01, 0.01, 0.01, 0.01]}
seconds = st.floats(0.01, 0.1)
TIMES = st.lists(st.tuples(seconds, seconds, seconds), min_size=5, max_size=8)


def measured(times: dict[str, list[float]], *names: str) -> Result:
    """Return the result of a run whose variants are `names`, the first its baseline."""
    case, launches = a_case(*names, comparisons=2), rounds_of(times)
    assessment = judge(JudgeRequest(case=case, launches=launches, directory="/nowhere"))
    return assemble(case, launches, assessment, TIMING)


def width(comparison: Comparison) -> float:
    return math.log(float(comparison.upper or "nan") / float(comparison.lower or "nan"))


@settings(max_examples=20, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(times=TIMES)
def test_the_speedup_is_that_of_a_run_with_this_baseline_and_no_interval_is_narrower(
    times: list[tuple[float, ...]],
) -> None:
    by_variant = dict(zip((BASELINE, VARIANT, OTHER), map(list, zip(*times, strict=True)), strict=True))
    afterwards = with_baseline(measured(by_variant, BASELINE, VARIANT, OTHER), OTHER)
    before = {each.variant: each for each in measured(by_variant, OTHER, BASELINE, VARIANT).comparisons}
    assert afterwards.case.baseline == OTHER
    assert {each.variant for each in afterwards.comparisons} == before.keys()
    for found in afterwards.comparisons:
        direct = before[found.variant]
        assert (found.baseline, found.rounds) == (OTHER, direct.rounds)
        assert float(found.speedup or 0) == pytest.approx(float(direct.speedup or 0), rel=1e-4)
        if found.lower and direct.lower:
            assert width(found) >= width(direct) * (1 - 1e-4)


def test_two_variants_that_the_run_did_not_compare_get_a_verdict_and_a_note() -> None:
    result = with_baseline(measured(TWICE, BASELINE, VARIANT, OTHER), OTHER)
    verdicts = {each.variant: each.verdict for each in result.comparisons}
    assert verdicts == {BASELINE: "slower", VARIANT: "equivalent"}
    assert "for the run's 3 comparisons together" in result.comparisons[0].sentence
    assert "intervals are widened for all pairs" in result.notes[-1]


def test_the_runs_own_baseline_changes_nothing() -> None:
    result = measured(TWICE, BASELINE, VARIANT, OTHER)
    assert with_baseline(result, BASELINE) is result


def test_a_variant_that_a_check_rejects_is_invalid_and_hides_no_other() -> None:
    case, launches = a_case(BASELINE, VARIANT, OTHER, comparisons=2), rounds_of(TWICE)
    wrong = ParityReading(units=1, finite=True, worst_ratio=9e5, worst_array="x", detail="x[0] is off by 0.1")
    launches = tuple(
        each.model_copy(update={"parity": wrong}) if each.variant == VARIANT else each for each in launches
    )
    assessment = judge(JudgeRequest(case=case, launches=launches, directory="/nowhere"))
    found = with_baseline(assemble(case, launches, assessment, TIMING), OTHER).comparisons
    assert {each.variant: (each.verdict, each.invalid) for each in found} == {
        BASELINE: ("slower", ()),
        VARIANT: (None, ("parity",)),
    }


def test_variants_that_cannot_be_compared_have_a_reason() -> None:
    result = measured(TWICE, BASELINE, VARIANT, OTHER)
    with pytest.raises(NotComparableError, match="did you mean jax/jit"):
        with_baseline(result, "jax/jti")
