import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accelbench.api.case import CaseMeasurement
from accelbench.api.result import Check, Disturbed, LaunchSummary
from accelbench.history.runs import RunComparison, VariantChange, compare
from accelbench.history.sample import Side
from history.runs import CLEAN, run, scaled
from report import sample

INVERSE = {"faster": "slower", "slower": "faster"}
launches = st.lists(st.floats(1e-4, 1e-2), min_size=2, max_size=8)


def compared(before: object, after: object, *allowed: str) -> RunComparison:
    sides = [
        Side(name, tuple(each if isinstance(each, list) else [each])) for name, each in (("A", before), ("B", after))
    ]
    return compare(sides[0], sides[1], allowed)


def of(found: RunComparison, variant: str = "jax/jit", quantity: str = "median") -> VariantChange:
    return next(each for each in found.changes if (each.variant, each.quantity) == (variant, quantity))


@given(its=launches)
@settings(max_examples=30)
def test_a_run_is_neither_faster_nor_slower_than_itself(its: list[float]) -> None:
    found = compared(run({"jax/jit": its}), run({"jax/jit": its}))
    assert {each.verdict for each in found.changes} <= {"equivalent", "inconclusive", None}
    assert all(each.interval is None or each.interval.estimate == pytest.approx(1) for each in found.changes)


@given(its=launches, others=launches)
@settings(max_examples=30)
def test_swapping_the_sides_inverts_the_finding(its: list[float], others: list[float]) -> None:
    there = of(compared(run({"jax/jit": its}), run({"jax/jit": others})))
    back = of(compared(run({"jax/jit": others}), run({"jax/jit": its})))
    assert back.verdict == INVERSE.get(there.verdict or "", there.verdict)
    if there.interval and back.interval:
        assert there.interval.lower == pytest.approx(1 / back.interval.upper)
        assert there.interval.estimate == pytest.approx(1 / back.interval.estimate)


def test_half_the_time_is_faster_and_the_sentence_names_the_case() -> None:
    found = of(compared(run(), run({"jax/jit": scaled(0.5)})))
    assert found.verdict == "faster"
    assert found.sentence.startswith("jax/jit in B is 2.00 times as fast as in A (1.99")
    assert "95 % for 3 comparisons together" in found.sentence


def test_the_margin_and_the_confidence_are_those_of_the_runs() -> None:
    wide = CaseMeasurement(rounds_min=5, rounds_max=5, equivalence_margin="0.5", confidence="0.9")
    found = of(compared(run(measurement=wide), run({"jax/jit": scaled(0.8)}, measurement=wide)))
    assert found.verdict == "equivalent"
    assert "as fast as in A, within 50 %" in found.sentence
    assert "90 %" in found.sentence


def test_early_looks_are_corrected_for_in_comparisons_of_runs_too() -> None:
    looked = CaseMeasurement(rounds_min=5, rounds_max=20)
    fixed, early = (
        of(compared(run(measurement=each), run(measurement=each))).interval
        for each in (CaseMeasurement(rounds_min=5, rounds_max=5), looked)
    )
    assert fixed
    assert early
    assert early.log_half_width > 1.1 * fixed.log_half_width


def test_with_a_failed_check_there_is_no_verdict_and_the_check_is_named() -> None:
    off = Check(name="throttled", outcome="failed", reading="9 s", variant="jax/jit")
    found = compared(
        run(), run(checks=(*(each for each in CLEAN if each.variant != "jax/jit" or each.name != "throttled"), off))
    )
    assert (of(found).verdict, of(found).invalid) == (None, ("throttled",))
    assert "No result of jax/jit in B counts (invalid: throttled)." in of(found).sentence
    assert of(found, "pytorch/eager").verdict is not None


def test_without_parity_there_is_no_verdict_either() -> None:
    found = compared(run(), run(checks=[each for each in CLEAN if each.name != "parity"]))
    assert {each.verdict for each in found.changes} == {None}
    assert of(found).invalid == ("parity",)


def test_a_variant_that_failed_on_one_side_is_reported() -> None:
    broken = run(variants=(run().variants[0], sample.failed("jax/jit")))
    found = of(compared(run(), broken))
    assert found.verdict is None
    assert "No result of jax/jit in B counts (failed: OutOfMemory)." in found.sentence


def test_one_launch_on_each_side_is_too_few() -> None:
    found = of(compared(run({"jax/jit": [0.001]}), run({"jax/jit": [0.002]})))
    assert found.verdict is None
    assert "1 and 1 launches are too few for an interval" in found.sentence


def test_the_tail_of_a_latency_is_compared_in_addition_to_its_median() -> None:
    def latency(p99: float) -> object:
        its = tuple(
            LaunchSummary(
                round=n, seconds="0.001", p99_seconds=f"{p99 * (1 + n / 1000):.9f}", blocks=9, units_per_block=1
            )
            for n in range(1, 6)
        )
        variants = tuple(each.model_copy(update={"launches": its}) for each in run().variants)
        return run(variants=variants, protocol="latency")

    found = compared(latency(0.004), latency(0.008))
    assert of(found, quantity="p50").verdict == "equivalent"
    assert of(found, quantity="p99").verdict == "slower"
    assert "for 5 comparisons together" in of(found, quantity="p50").sentence


def test_cases_are_matched_by_swept_parameters_and_others_are_listed() -> None:
    before = [run(swept={"size": size}, parameters={"size": size}) for size in (256, 512)]
    after = [run(swept={"size": size}, parameters={"size": size}) for size in (512, 1024)]
    found = compared(before, after)
    assert {each.case for each in found.changes} == {("matmul-chain", (("size", "512"),))}
    assert found.unmatched == ("matmul-chain (size 256) is only in A", "matmul-chain (size 1024) is only in B")


def test_a_case_that_was_swept_is_the_same_as_one_that_was_not() -> None:
    swept = [run(swept={"size": size}, parameters={"size": size, "length": 100}) for size in (256, 512)]
    explicit = run(parameters={"size": 512, "length": 100})
    by_default = run(parameters={"length": 100}, fingerprint={"parameter.size": "512"})
    for other in (explicit, by_default):
        for found in (compared(swept, other), compared(other, swept)):
            assert {each.case for each in found.changes} == {("matmul-chain", (("size", "512"),))}
            assert found.refused == ()
            assert [words.partition(" is only")[0] for words in found.unmatched] == ["matmul-chain (size 256)"]


def test_a_case_with_a_value_that_was_not_swept_is_another_case() -> None:
    found = compared([run(swept={"size": 512}, parameters={"size": 512})], run(parameters={"size": 1024}))
    assert found.changes == ()
    assert found.unmatched == ("matmul-chain (size 512) is only in A", "matmul-chain (size 1024) is only in B")


def test_a_machine_that_was_slow_for_a_whole_run_changes_nothing_relative_to_the_baseline() -> None:
    slow = {"pytorch/eager": scaled(1.3), "jax/jit": scaled(1.3)}
    found = compared(run(), run(slow))
    assert of(found).verdict == "slower"
    assert of(found, quantity="relative").verdict == "equivalent"
    assert of(found, quantity="relative").sentence.startswith(
        "jax/jit in B, relative to pytorch/eager, is as fast as in A, within 2 %"
    )
    assert not any(each.variant == "pytorch/eager" and each.quantity == "relative" for each in found.changes)


def test_relative_to_the_baseline_rounds_make_pairs() -> None:
    """The machine wanders from round to round: seconds are noisy, their ratio is not."""
    wander = (1.0, 1.4, 0.8, 1.2, 0.9)
    its = {
        use: [0.001 * mood * wobble for mood, wobble in zip(wander, (1, 1.001, 0.999, 1.002, 0.998), strict=True)]
        for use in ("pytorch/eager", "jax/jit")
    }
    faster = {**its, "jax/jit": [value / 1.1 for value in its["jax/jit"]]}
    found = compared(run(its), run(faster))
    assert (of(found).verdict, of(found, quantity="relative").verdict) == ("inconclusive", "faster")


def test_variation_between_runs_of_a_series_gives_no_verdict() -> None:
    """Launches agree within each run and runs do not: by launches it would be `slower`, and it is chance."""
    moods = (1.00, 1.20, 0.90, 1.10)
    before = [run({"jax/jit": scaled(mood)}, day=day) for day, mood in enumerate(moods, 1)]
    after = [run({"jax/jit": scaled(1.05 * mood)}, day=day) for day, mood in enumerate(reversed(moods), 11)]
    assert of(compared(before[0], after[0])).verdict == "slower"
    found = of(compared(before, after))
    assert found.verdict == "inconclusive"
    assert found.interval is not None
    assert found.interval.estimate == pytest.approx(1 / 1.05)


def test_invalid_results_of_a_series_are_ignored_and_their_number_is_given() -> None:
    off = Check(name="shared-device", outcome="failed", reading="70 %")
    before = [run(day=day) for day in (1, 2, 3)]
    after = [run(day=day) for day in (11, 12)] + [run({"jax/jit": scaled(9)}, day=13, checks=(*CLEAN, off))]
    found = of(compared(before, after))
    assert found.verdict == "equivalent"
    assert found.after.seconds == pytest.approx(math.exp(sum(map(math.log, scaled(1))) / 5))
    assert "1 of 3 results of jax/jit in B was excluded (invalid: shared-device)." in found.sentence


def test_one_new_result_can_be_compared_with_a_series() -> None:
    before = [run({"jax/jit": scaled(mood)}, day=day) for day, mood in enumerate((1.00, 1.01, 0.99, 1.02, 0.98), 1)]
    assert of(compared(before, run({"jax/jit": scaled(1.5)}, day=11))).verdict == "slower"
    assert of(compared(before, run({"jax/jit": scaled(1.0)}, day=11))).verdict == "inconclusive"


def test_a_noisy_result_cannot_be_compared() -> None:
    noisy = run(noisy=(Disturbed(round=1, reasons=("shared-device of jax/jit: 52 %",)),))
    found = of(compared(run(), noisy))
    assert (found.verdict, found.interval) == (None, None)
    assert found.sentence == (
        "jax/jit: not compared. "
        "No result of jax/jit in B counts (noisy: other load disturbed it, and noise was accepted)."
    )


def test_a_case_without_times_is_mentioned_once() -> None:
    noisy = run(noisy=(Disturbed(round=1, reasons=("shared-device of jax/jit: 52 %",)),))
    assert [(each.variant, each.quantity) for each in compared(noisy, noisy).changes] == [
        ("pytorch/eager", "median"),
        ("jax/jit", "median"),
    ]
