"""A claim about a whole suite: where most speedups lie in the cases of several runs."""

import math
from typing import Any

import numpy as np
import pytest

from accelbench.api.result import Certificate, Check, Disturbed, LaunchSummary, Result
from accelbench.claims import suite
from accelbench.claims.answers import describe_speedup
from accelbench.claims.ledger import Claim, Majority
from accelbench.claims.settle import ClaimManifest, MeasuredRun, SettledClaim, settle
from report import sample

EAGER, COMPILE, JIT = "pytorch/eager", "pytorch/compile", "jax/jit"
ROUNDS = 8
SOUND = Certificate(
    checks=tuple(sample.passed(name, use) for name in ("parity", "non-finite") for use in (EAGER, COMPILE, JIT))
)


def a_result(*, jit: float, compiled: float = 1.0, seed: int = 1, rounds: int = ROUNDS) -> Result:
    """Return speedups of `jit` and `compiled` over eager, with noise shared by a round and 1 % of each launch."""
    noise = np.random.default_rng(seed)
    moods = [noise.normal(0, 0.2) for _ in range(rounds)]

    def variant(use: str, speedup: float) -> Any:
        seconds = [math.exp(mood + noise.normal(0, 0.01)) / speedup for mood in moods]
        launches = tuple(
            LaunchSummary(round=number, seconds=f"{each:.9f}", blocks=20, units_per_block=1)
            for number, each in enumerate(seconds, start=1)
        )
        return sample.variant(use, "1").model_copy(update={"launches": launches})

    variants = (variant(COMPILE, compiled), variant(JIT, jit), variant(EAGER, 1.0))
    case = sample.case((COMPILE, JIT, EAGER))
    return sample.result(case=case, variants=variants, comparisons=(), rounds=rounds, certificate=SOUND)


def settled(*runs: tuple[Result, ...] | None, **bounds: str) -> SettledClaim:
    claim = Claim(
        row=5,
        article="A0",
        quote="two to three times as fast",
        asks="is it?",
        hardware=("cpu",),
        manifests=tuple(f"{number}.yaml" for number in range(len(runs))),
        majorities=(Majority(variant=JIT, over=EAGER, **bounds),),
    )
    measured = [None if run is None else MeasuredRun([(result, ()) for result in run], len(run)) for run in runs]
    return settle(claim, [ClaimManifest(str(number), run) for number, run in enumerate(measured)], hardware="cpu")


def test_every_case_is_decided_by_itself() -> None:
    """Neither 1.0 nor 4.0 is near their geometric mean."""
    runs = ((a_result(jit=1.0, seed=1),), (a_result(jit=4.0, seed=2),))
    found = settled(*runs, at_least="1.9", at_most="2.1")
    assert found.verdict == "refuted"
    [sentence] = found.sentences
    assert sentence.startswith(
        "most speedups of jax/jit over pytorch/eager at least 1.9 and at most 2.1: not-met, 0 of 2"
    )
    assert settled(*runs, at_least="0.9").verdict == "confirmed"


def test_a_speedup_that_may_be_on_either_side_decides_nothing() -> None:
    runs = ((a_result(jit=2.0, seed=3),), (a_result(jit=2.0, seed=4),))
    assert settled(*runs, at_least="2").verdict == "inconclusive"


def test_neither_side_has_to_be_the_baseline_and_common_noise_cancels() -> None:
    """Rounds differ by a fifth, but the ratio is known to a hundredth because launches of a round are compared."""
    slower, quicker = (a_result(jit=factor, compiled=3.0, seed=5) for factor in (1.05, 1.25))
    assert settled((slower,), at_least="1.01", at_most="1.09").verdict == "confirmed"
    assert settled((quicker,), at_least="1.01", at_most="1.09").verdict == "refuted"


@pytest.mark.parametrize(
    ("changes", "expected_text"),
    [
        ({"complete": False, "stopped": "Interrupted"}, "a case is missing or was interrupted"),
        ({"variants": a_result(jit=4.0, rounds=2).variants, "rounds": 2}, "it has 2 of at least 5 rounds"),
        (
            {"variants": (sample.variant(EAGER, "1"), sample.failed(JIT))},
            "jax/jit failed in round",
        ),
        ({"variants": (sample.variant(EAGER, "1"),)}, "it has no jax/jit"),
        (
            {
                "certificate": Certificate(
                    checks=(Check(name="parity", outcome="failed", reading="off", threshold="1", variant=EAGER),)
                )
            },
            "invalid (parity)",
        ),
        ({"certificate": Certificate()}, "invalid (parity, non-finite)"),
        (
            {"noisy": (Disturbed(round=2, reasons=("shared-device of pytorch/eager: 52 %",)),)},
            "noisy (measured next to",
        ),
    ],
)
def test_one_case_that_does_not_count_leaves_the_claim_undecided(changes: dict[str, Any], expected_text: str) -> None:
    """A suite without its worst case is another suite."""
    sound = a_result(jit=4.0)
    broken = a_result(jit=4.0).model_copy(update=changes)
    for bounds in ({"at_least": "2"}, {"at_most": "2"}):
        found = settled((sound,), (broken,), **bounds)
        assert found.verdict == ("measured-not-decided" if "complete" in changes else "inconclusive")
        assert expected_text in found.sentences[0]


def test_a_suite_of_which_a_part_was_not_run_has_not_been_run() -> None:
    assert settled((a_result(jit=4.0),), None, at_least="2").verdict == "measured-not-decided"


@pytest.mark.parametrize(
    ("speedups", "outcome", "expected_text"),
    [
        ((2.5, 2.5, 9.0), "met", "2 of 3 ("),
        ((2.5, 2.5, 9.0, 9.0), "not-met", "2 of 4 ("),
        ((2.5, 9.0, 2.0), "undecided", "1 of 3 ("),
    ],
)
def test_a_majority_is_more_than_half_each_by_its_whole_interval(
    speedups: tuple[float, ...], outcome: str, expected_text: str
) -> None:
    results = [a_result(jit=speedup, seed=seed) for seed, speedup in enumerate(speedups)]
    found = suite.evaluate(Majority(variant=JIT, over=EAGER, at_least="2", at_most="3"), results, majority_count=1)
    assert found.outcome == outcome
    assert found.sentence.startswith(f"most speedups of jax/jit over pytorch/eager at least 2 and at most 3: {outcome}")
    assert expected_text in found.sentence


def test_a_majority_without_one_of_its_cases_is_undecided() -> None:
    majority = Majority(variant=JIT, over=EAGER, at_least="2", at_most="3")
    found = suite.evaluate(majority, [a_result(jit=2.5), a_result(jit=2.5, rounds=2)], majority_count=1)
    assert (found.outcome, found.is_valid) == ("undecided", False)
    assert "it has 2 of at least 5 rounds" in found.sentence


def test_a_result_can_be_compared_with_another_baseline() -> None:
    result = a_result(jit=4.0, compiled=2.0)
    assert result.case.baseline == COMPILE
    again = suite.with_baseline(result, EAGER)
    assert again.case.baseline == EAGER
    found = {each.variant: float(each.speedup or 0) for each in again.comparisons}
    assert found == pytest.approx({COMPILE: 2.0, JIT: 4.0}, rel=0.02)
    assert suite.with_baseline(result, "numpy/eager") is result
    broken = result.model_copy(update={"certificate": Certificate()})
    assert {each.speedup for each in suite.with_baseline(broken, EAGER).comparisons} == {None}


def test_another_baseline_keeps_the_warning_about_launches_in_two_groups() -> None:
    result = a_result(jit=2.0)
    compiled, jit, eager = result.variants
    launches = tuple(each.model_copy(update={"seconds": "0.5" if each.round % 2 else "0.8"}) for each in jit.launches)
    grouped = result.model_copy(update={"variants": (compiled, jit.model_copy(update={"launches": launches}), eager)})
    of_jit = {each.variant: each for each in suite.with_baseline(grouped, EAGER).comparisons}[JIT]
    assert describe_speedup(of_jit).endswith(", or wider)")
