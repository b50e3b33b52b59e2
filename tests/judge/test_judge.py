# ruff: noqa: S311 - samples, no secrets
import math
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import scipy.stats

from accelbench.api.case import Case
from accelbench.api.result import Comparison
from accelbench.launch.record import LaunchRecord, PhaseRecord
from accelbench_runner.judge.assessment import judge
from accelbench_runner.judge_protocol import Assessment, JudgeRequest
from judge.launches import (
    BASELINE,
    GOOD_PARITY,
    OTHER,
    VARIANT,
    a_case,
    a_failure,
    a_launch,
    rounds_of,
    with_facts,
)

WRONG = GOOD_PARITY.model_copy(update={"worst_ratio": 1e6})


def assess(launches: Sequence[LaunchRecord], case: Case | None = None, **more: Any) -> Assessment:
    return judge(JudgeRequest(case=case or a_case(), launches=tuple(launches), directory="/nowhere", **more))


def noisy(seconds: float, count: int, sigma: float = 0.001, seed: int = 0) -> list[float]:
    rng = random.Random(f"{seed}/{seconds}")
    return [seconds * (1 + rng.gauss(0, sigma)) for _ in range(count)]


def comparison_of(assessment: Assessment, variant: str = VARIANT) -> Comparison:
    return next(each for each in assessment.comparisons if each.variant == variant)


def test_a_variant_that_takes_half_the_time_is_faster_and_measuring_stops() -> None:
    found = assess(rounds_of({BASELINE: noisy(0.02, 5), VARIANT: noisy(0.01, 5)}))
    comparison = comparison_of(found)
    assert (comparison.verdict, found.stop, found.rounds) == ("faster", "TargetMet", 5)
    assert float(comparison.lower) < 2 < float(comparison.upper)
    assert comparison.sentence.startswith("jax/jit is 2.00")


def test_noise_above_the_target_causes_another_round() -> None:
    times = {BASELINE: noisy(0.02, 6, sigma=0.03), VARIANT: noisy(0.01, 6, sigma=0.03)}
    assert assess(rounds_of(times)).stop is None


def test_early_looks_are_corrected_for_before_the_target_is_met() -> None:
    # Half-width of six rounds at a plain alpha of 0.05: 0.91 %; at the alpha that every look is taken with: 1.08 %.
    times = {BASELINE: [0.02] * 6, VARIANT: [0.01 * math.exp(sign * 0.0079) for sign in (1, -1) * 3]}
    assert assess(rounds_of(times), a_case(rounds_min=5)).stop is None
    assert assess(rounds_of(times), a_case(rounds_min=6, rounds_max=6)).stop == "TargetMet"


def test_measuring_ends_with_the_last_round_at_any_width() -> None:
    times = {BASELINE: noisy(0.02, 6, sigma=0.03), VARIANT: noisy(0.01, 6, sigma=0.03)}
    assert assess(rounds_of(times), a_case(rounds_max=6)).stop == "MaximumRoundsReached"


def test_one_round_has_a_speedup_and_no_interval() -> None:
    found = assess(rounds_of({BASELINE: [0.02], VARIANT: [0.01]}))
    comparison = comparison_of(found)
    assert (comparison.speedup, comparison.lower, comparison.verdict) == ("2", None, None)


def test_rounds_that_differ_a_thousandfold_have_no_interval() -> None:
    comparison = comparison_of(assess(rounds_of(THOUSANDFOLD)))
    assert (comparison.lower, comparison.verdict) == (None, None)


def test_fewer_rounds_than_requested_are_inconclusive_even_if_the_interval_is_narrow() -> None:
    comparison = comparison_of(assess(rounds_of({BASELINE: noisy(0.02, 4), VARIANT: noisy(0.01, 4)})))
    assert comparison.verdict == "inconclusive"


def test_a_wrong_result_is_invalid_and_shows_no_speedup() -> None:
    launches = [*rounds_of({BASELINE: [0.02], OTHER: [0.015]}), a_launch(VARIANT, 1, parity=WRONG)]
    found = assess(tuple(launches), a_case(BASELINE, VARIANT, OTHER))
    comparison = comparison_of(found)
    assert (comparison.invalid, comparison.speedup, comparison.verdict) == (("parity",), None, None)
    assert comparison_of(found, OTHER).speedup is not None


def test_a_wrong_baseline_makes_every_comparison_invalid() -> None:
    launches = tuple(
        launch.model_copy(update={"parity": WRONG}) if launch.variant == BASELINE else launch
        for launch in rounds_of({BASELINE: [0.02], VARIANT: [0.01], OTHER: [0.015]})
    )
    found = assess(launches, a_case(BASELINE, VARIANT, OTHER))
    assert [comparison.invalid for comparison in found.comparisons] == [("parity",), ("parity",)]


def test_a_failed_variant_keeps_the_others_comparisons() -> None:
    times = {BASELINE: noisy(0.02, 5), OTHER: noisy(0.01, 5)}
    found = assess((*rounds_of(times), a_failure(VARIANT, 1)), a_case(BASELINE, VARIANT, OTHER, comparisons=2))
    failed, other = comparison_of(found), comparison_of(found, OTHER)
    assert (failed.verdict, failed.invalid, other.verdict) == (None, (), "faster")


def test_a_round_in_which_a_variant_was_not_launched_is_not_complete() -> None:
    launches = rounds_of({BASELINE: noisy(0.02, 6), VARIANT: noisy(0.01, 5)})
    found = assess(launches)
    assert (found.rounds, comparison_of(found).rounds) == (5, 5)


def test_an_incomplete_round_counts_for_every_variant_with_a_pair() -> None:
    times = {BASELINE: noisy(0.02, 6), VARIANT: noisy(0.01, 6), OTHER: noisy(0.015, 5)}
    found = assess(rounds_of(times), a_case(BASELINE, VARIANT, OTHER))
    assert [comparison.rounds for comparison in found.comparisons] == [6, 5]
    assert found.rounds == 5


def test_a_round_without_a_variant_that_failed_before_is_complete() -> None:
    times = {BASELINE: noisy(0.02, 5), OTHER: noisy(0.01, 5)}
    found = assess((*rounds_of(times), a_failure(VARIANT, 1)), a_case(BASELINE, VARIANT, OTHER))
    assert found.rounds == 5


def test_without_the_baseline_times_are_measured_and_nothing_is_compared() -> None:
    case = a_case(BASELINE, VARIANT, OTHER)
    times = {VARIANT: noisy(0.01, 3), OTHER: noisy(0.02, 3)}
    found = assess((a_failure(BASELINE, 1, "Raised"), *rounds_of(times)), case)
    assert {comparison.verdict for comparison in found.comparisons} == {None}
    assert found.stop is None
    times = {VARIANT: noisy(0.01, 6), OTHER: noisy(0.02, 6)}
    assert assess((a_failure(BASELINE, 1), *rounds_of(times)), case).stop == "TargetMet"


@pytest.mark.parametrize(
    "other", [a_failure(VARIANT, 1), a_launch(VARIANT, 1, parity=WRONG), a_launch(VARIANT, facts={"recompilations": 3})]
)
def test_nothing_can_be_compared_if_one_valid_variant_is_left(other: LaunchRecord) -> None:
    assert assess((a_launch(BASELINE, 1), other)).stop == "NothingToCompare"


def test_a_failure_of_every_variant_ends_the_case() -> None:
    found = assess((a_failure(BASELINE, 1), a_failure(VARIANT, 1)))
    assert (found.stop, found.rounds) == ("NothingToCompare", 1)


def test_a_single_variant_is_measured_until_its_times_are_known() -> None:
    case = a_case(BASELINE)
    assert assess(rounds_of({BASELINE: noisy(0.02, 4)}), case).stop is None
    found = assess(rounds_of({BASELINE: noisy(0.02, 5)}), case)
    assert (found.stop, found.comparisons) == ("TargetMet", ())


def test_every_comparison_must_meet_the_target() -> None:
    times = {BASELINE: noisy(0.02, 6), VARIANT: noisy(0.01, 6), OTHER: noisy(0.015, 6, sigma=0.05)}
    assert assess(rounds_of(times), a_case(BASELINE, VARIANT, OTHER, comparisons=2)).stop is None


def test_more_comparisons_in_the_run_widen_the_interval() -> None:
    launches = rounds_of({BASELINE: noisy(0.02, 8), VARIANT: noisy(0.01, 8)})
    alone = comparison_of(assess(launches, a_case()))
    among = comparison_of(assess(launches, a_case(comparisons=10)))
    assert float(among.upper) - float(among.lower) > float(alone.upper) - float(alone.lower)
    assert (alone.confidence, among.confidence) == ("0.95", "0.995")


THOUSANDFOLD = {BASELINE: [0.02, 0.2, 20.0], VARIANT: [0.01] * 3}
TWO_GROUPS = [0.010, 0.0101, 0.0100, 0.0140, 0.0141, 0.0139]


def test_the_sentences_of_comparisons(golden: Callable[[str, str], None]) -> None:
    wrong = (a_launch(BASELINE, 1, seconds=0.02), a_launch(VARIANT, 1, parity=WRONG))
    twice = rounds_of({BASELINE: noisy(0.02, 8), VARIANT: noisy(0.01, 8)})
    assessments = {
        "one round": assess(rounds_of({BASELINE: [0.02], VARIANT: [0.01]})),
        "rounds that differ a thousandfold": assess(rounds_of(THOUSANDFOLD)),
        "four rounds": assess(rounds_of({BASELINE: noisy(0.02, 4), VARIANT: noisy(0.01, 4)})),
        "eight rounds": assess(twice),
        "one of ten comparisons": assess(twice, a_case(comparisons=10)),
        "launches in two groups": assess(rounds_of({BASELINE: noisy(0.02, 6), VARIANT: TWO_GROUPS})),
        "a wrong result": assess(wrong),
        "a failed variant": assess((*rounds_of({BASELINE: noisy(0.02, 5)}), a_failure(VARIANT, 1))),
        "a failed baseline": assess((a_failure(BASELINE, 1, "Raised"), *rounds_of({VARIANT: noisy(0.01, 3)}))),
        "a first call that pays back": assess(compiling(twice, VARIANT, 1.5)),
    }
    sentences = [f"{name}: {comparison_of(found).sentence}\n" for name, found in assessments.items()]
    golden("sentences.txt", "".join(sentences))


def test_the_certificate_holds_every_check() -> None:
    found = assess(rounds_of({BASELINE: [0.02], VARIANT: [0.01]}))
    assert {"parity", "clock", "same-inputs", "autocorrelated"} <= {check.name for check in found.certificate.checks}


def test_it_loads_no_framework_and_not_all_of_scipy() -> None:
    judge = "accelbench_runner.judge.assessment, accelbench_runner.judge.parity"
    program = f"import {judge}, scipy.special, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {"jax", "torch", "scipy.stats", "pandas"} & set(done.stdout.split())


def compiling(launches: Sequence[LaunchRecord], variant: str, seconds: float) -> list[LaunchRecord]:
    """Return the launches with this compile time for `variant`, and almost none for the others."""
    return [
        with_facts(launch, unitsPerCall=1).model_copy(
            update={
                "phases": (
                    PhaseRecord(phase="compile", seconds=seconds if launch.variant == variant else 1e-6),
                    PhaseRecord(phase="first-step", seconds=0.02 if launch.variant == BASELINE else 0.01),
                )
            }
        )
        for launch in launches
    ]


def test_the_number_of_steps_after_which_compiling_pays_back() -> None:
    launches = rounds_of({BASELINE: noisy(0.02, 5), VARIANT: noisy(0.01, 5)})
    comparison = comparison_of(assess(compiling(launches, VARIANT, 1.5)))
    assert comparison.pays_back.answer == "after"
    # 1.5 s and a first step of 10 ms, less one call of 10 ms.
    assert float(comparison.pays_back.first_call_seconds) == pytest.approx(1.5, rel=1e-3)
    assert comparison.pays_back.lower <= 150 <= comparison.pays_back.upper


def test_a_comparison_without_phases_does_not_mention_compiling() -> None:
    comparison = comparison_of(assess(rounds_of({BASELINE: noisy(0.02, 5), VARIANT: noisy(0.01, 5)})))
    assert comparison.pays_back is None


def test_an_invalid_comparison_never_pays_back() -> None:
    launches = compiling(rounds_of({BASELINE: noisy(0.02, 5), VARIANT: noisy(0.01, 5)}), VARIANT, 1.5)
    spoilt = [with_facts(launch, recompilations=1) for launch in launches]
    assert comparison_of(assess(spoilt)).pays_back is None


@pytest.mark.parametrize("units", [None, -3, "many", 1.5])
def test_a_launch_that_counts_no_units_has_one(units: Any) -> None:
    launches = compiling(rounds_of({BASELINE: noisy(0.02, 5), VARIANT: noisy(0.01, 5)}), VARIANT, 1.5)
    odd = [with_facts(launch, unitsPerCall=units) for launch in launches]
    assert comparison_of(assess(odd)).pays_back.steps == comparison_of(assess(launches)).pays_back.steps


def test_outliers_are_counted_and_kept() -> None:
    launches = list(rounds_of({BASELINE: noisy(0.02, 6), VARIANT: noisy(0.01, 6)}))
    slow = launches[0].blocks[0].model_copy(update={"seconds": 1.0})
    quick = [
        block.model_copy(update={"seconds": 0.02 + 1e-5 * index}) for index, block in enumerate(launches[0].blocks)
    ]
    launches[0] = launches[0].model_copy(update={"blocks": (slow, *quick[1:])})
    spread = assess(launches).spread[launches[0].variant]
    assert (spread.block_outliers.of, spread.block_outliers.high_severe) == (60, 1)
    assert spread.launch_outliers.of == 6
    assert 0 <= float(spread.between_launches) <= 1
    times = [launch.seconds() for launch in launches if launch.variant == launches[0].variant]
    known = scipy.stats.t.interval(0.95, len(times) - 1, np.mean(np.log(times)), scipy.stats.sem(np.log(times)))
    assert [float(spread.lower_seconds), float(spread.upper_seconds)] == pytest.approx(np.exp(known), rel=1e-5)
