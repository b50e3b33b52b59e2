from typing import Any

import pytest

from accelbench.api.observation import Observation, Observations, ObservationType, ObservedValue
from accelbench.api.result import (
    Certificate,
    Check,
    Disturbed,
    Payback,
    Result,
)
from accelbench.api.run import Expectation
from accelbench.verdict.expectations import evaluate
from expectations.results import CLEAN, a_comparison, a_result, outcome_of
from judge.launches import BASELINE, VARIANT


@pytest.mark.parametrize(
    ("bounds", "outcome"),
    [
        ({"at_least": "1.99"}, "met"),
        ({"at_least": "2"}, "undecided"),
        ({"at_least": "2.1"}, "not-met"),
        ({"at_most": "2.09"}, "met"),
        ({"at_most": "2.04"}, "undecided"),
        ({"at_most": "1.9"}, "not-met"),
        ({"at_least": "1.5", "at_most": "2.5"}, "met"),
        ({"at_least": "2", "at_most": "2.05"}, "undecided"),
    ],
)
def test_the_ends_of_the_interval_decide_about_a_speedup(bounds: dict[str, str], outcome: str) -> None:
    found, sentence = outcome_of(a_result(a_comparison()), **bounds)
    assert found == outcome
    assert sentence.endswith(f"{outcome}, 2.04 (1.99 to 2.09), 51.0 % less time.")


@pytest.mark.parametrize(
    ("speedup", "expected_text"),
    [("1.44", "1.44 (0.500 to 9.00), 30.6 % less time."), ("0.5", "0.500 (0.500 to 9.00), 2.00 times as long.")],
)
def test_a_ratio_is_given_as_a_share_of_time_too(speedup: str, expected_text: str) -> None:
    _, sentence = outcome_of(a_result(a_comparison(speedup=speedup, lower="0.5", upper="9")), at_least="1")
    assert sentence.endswith(expected_text)


def test_the_sentence_names_what_was_expected() -> None:
    _, sentence = outcome_of(a_result(a_comparison()), at_least="2", at_most="3")
    assert sentence.startswith("speedup of jax/jit at least 2 and at most 3: ")


@pytest.mark.parametrize(
    ("result", "variant", "why"),
    [
        (a_result(failed=VARIANT), VARIANT, "it failed in round 3 (OutOfMemory)"),
        (
            a_result(
                a_comparison(verdict=None, speedup=None, lower=None, upper=None, invalid=("parity", "clock")),
                certificate=Certificate(),
            ),
            VARIANT,
            "the comparison is invalid (parity, clock)",
        ),
        (a_result(a_comparison()), BASELINE, "it is the baseline, and has no speedup"),
        (a_result(), "jax/scan", "this case has no such variant"),
        (
            a_result(a_comparison(verdict=None, speedup=None, lower=None, upper=None), failed=BASELINE),
            VARIANT,
            "No complete round yet",
        ),
    ],
)
def test_failed_or_invalid_variants_meet_nothing_and_the_reason_is_given(
    result: Result, variant: str, why: str
) -> None:
    outcome, sentence = outcome_of(result, variant=variant, at_least="0.1")
    assert outcome == "not-met"
    assert why in sentence


def test_without_an_interval_a_speedup_is_undecided() -> None:
    result = a_result(a_comparison(verdict=None, speedup="2", lower=None, upper=None))
    assert outcome_of(result, at_least="1") == ("undecided", "speedup of jax/jit at least 1: No complete round yet.")


@pytest.mark.parametrize(
    ("metric", "bounds", "outcome"),
    [
        ("seconds", {"at_most": "0.02"}, "met"),
        ("seconds", {"at_most": "0.005"}, "not-met"),
        ("seconds", {"at_least": "0.0098"}, "met"),
        ("seconds", {"at_least": "0.01"}, "undecided"),
        ("seconds", {"at_most": "0.01"}, "undecided"),
        ("compileSeconds", {"at_most": "1.6"}, "met"),
        ("compileSeconds", {"at_most": "1.5"}, "undecided"),
        ("compileSeconds", {"at_most": "1.3"}, "not-met"),
        ("warmCompileSeconds", {"at_most": "0.2"}, "met"),
        ("warmCompileSeconds", {"at_least": "1"}, "not-met"),
        ("compileRatio", {"at_most": "2.67"}, "met"),
        ("compileRatio", {"at_most": "2.5"}, "undecided"),
        ("compileRatio", {"at_least": "2.67"}, "not-met"),
        ("parity", {"at_most": "1"}, "met"),
        ("parity", {"at_most": "0.2"}, "not-met"),
    ],
)
def test_the_times_of_all_launches_decide_about_times(metric: str, bounds: dict[str, str], outcome: str) -> None:
    assert outcome_of(a_result(), metric, **bounds)[0] == outcome


def test_the_first_call_is_compared_with_a_later_call_and_not_a_step() -> None:
    outcome, sentence = outcome_of(a_result(), "firstCallRatio", at_least="46", at_most="54")
    assert sentence.endswith("met, 50.0 (46.1 to 53.6; 2.00 s, then 40.0 ms)."), sentence
    assert outcome == "met"
    assert outcome_of(a_result(), "firstCallRatio", at_least="50")[0] == "undecided"


def test_launches_differ_if_their_outer_percentiles_do() -> None:
    """Of all rounds, though a large result keeps three single launches."""
    outcome, sentence = outcome_of(a_result(), "launchSpread", at_most="0.051")
    assert (outcome, sentence.endswith("0.0500 over 8 launches.")) == ("met", True), sentence
    assert outcome_of(a_result(), "launchSpread", at_most="0.049")[0] == "not-met"


PAYBACK = {
    "after 40 steps (30 to 50)": {"answer": "after", "steps": 40, "lower": 30, "upper": 50},
    "after 40 steps (30 or more)": {"answer": "after", "steps": 40, "lower": 30},
    "at-once": {"answer": "at-once"},
    "at-once (1 to 7)": {"answer": "at-once", "lower": 1, "upper": 7},
    "never": {"answer": "never"},
    "never (90 or more)": {"answer": "never", "lower": 90},
}


@pytest.mark.parametrize(
    ("reading", "bounds", "outcome"),
    [
        ("after 40 steps (30 to 50)", {"at_most": "50"}, "met"),
        ("after 40 steps (30 to 50)", {"at_most": "45"}, "undecided"),
        ("after 40 steps (30 to 50)", {"at_most": "29"}, "not-met"),
        ("after 40 steps (30 to 50)", {"at_least": "30"}, "met"),
        ("after 40 steps (30 or more)", {"at_least": "30"}, "met"),
        ("after 40 steps (30 or more)", {"at_most": "1000"}, "undecided"),
        ("at-once", {"at_most": "1"}, "met"),
        ("at-once", {"at_least": "2"}, "not-met"),
        ("at-once (1 to 7)", {"at_least": "2"}, "undecided"),
        ("never", {"at_least": "1000000"}, "met"),
        ("never", {"at_most": "1000000"}, "not-met"),
        ("never (90 or more)", {"at_least": "90"}, "met"),
        ("never (90 or more)", {"at_most": "1000000"}, "undecided"),
    ],
)
def test_the_interval_of_steps_decides_about_paying_back(reading: str, bounds: dict[str, str], outcome: str) -> None:
    paid = Payback(first_call_seconds="1", extra_seconds="1", **PAYBACK[reading])
    found, sentence = outcome_of(a_result(a_comparison(pays_back=paid)), "paysBackSteps", **bounds)
    assert (found, sentence.rpartition(f"{outcome}, ")[2]) == (outcome, f"{reading}.")


def test_a_variant_that_is_only_ahead_at_first_pays_nothing_back() -> None:
    paid = Payback(first_call_seconds="1", extra_seconds="-1", answer="until", steps=40, lower=30, upper=50)
    outcome, sentence = outcome_of(a_result(a_comparison(pays_back=paid)), "paysBackSteps", at_most="100")
    assert outcome == "not-met"
    assert sentence.endswith("it is ahead until 40 steps, then behind for good.")


def test_steps_that_are_not_known_are_undecided() -> None:
    assert outcome_of(a_result(a_comparison()), "paysBackSteps", at_least="1")[0] == "undecided"


@pytest.mark.parametrize(
    "metric",
    [
        *("seconds", "compileSeconds", "warmCompileSeconds", "compileRatio", "firstCallRatio", "parity"),
        *("launchSpread", "peakMemoryRatio", "productsPerCall"),
        *("kernelsPerCall", "programSize", "aliasedBytes", "temporaryBytes", "accessedBytes"),
    ],
)
def test_a_time_that_was_not_measured_is_undecided(metric: str) -> None:
    assert outcome_of(a_result(measured=False), metric, at_most="1")[0] == "undecided"


@pytest.mark.parametrize(
    ("metric", "bound", "expected_text"),
    [
        ("peakMemoryRatio", "0.75", "0.750 (300 B over 400 B)"),
        ("productsPerCall", "100", "100"),
        ("kernelsPerCall", "7", "7"),
        ("programSize", "1234", "1,234"),
        ("aliasedBytes", "0", "0 B"),
        ("temporaryBytes", "4096", "4,096 B"),
        ("accessedBytes", "8192", "8,192 B"),
    ],
)
def test_other_costs_of_a_variant(metric: str, bound: str, expected_text: str) -> None:
    outcome, sentence = outcome_of(a_result(), metric, at_least=bound, at_most=bound)
    assert (outcome, sentence.partition(": met, ")[2]) == ("met", f"{expected_text}.")


@pytest.mark.parametrize("metric", ["compileRatio", "peakMemoryRatio"])
def test_a_ratio_to_a_baseline_that_failed_meets_nothing(metric: str) -> None:
    outcome, sentence = outcome_of(a_result(failed=BASELINE), metric, at_most="100")
    assert (outcome, "the baseline failed in round 3 (OutOfMemory)" in sentence) == ("not-met", True)


def test_a_ratio_to_a_baseline_that_compiles_nothing_is_undecided() -> None:
    result = a_result()
    eager = tuple(phase.model_copy(update={"parts": {}}) for phase in result.variants[0].phases)
    variants = (result.variants[0].model_copy(update={"phases": eager}), result.variants[1])
    assert outcome_of(result.model_copy(update={"variants": variants}), "compileRatio", at_most="5")[0] == "undecided"


def test_missing_products_are_counted() -> None:
    missed = Certificate(checks=(Check(name="work-present", outcome="failed", reading="1 of 100", variant=VARIANT),))
    assert outcome_of(a_result(certificate=missed), "productsPerCall", at_least="100")[0] == "met"
    assert outcome_of(a_result(certificate=missed), "kernelsPerCall", at_least="7")[0] == "not-met"


@pytest.mark.parametrize("metric", ["compileRatio", "peakMemoryRatio"])
def test_a_ratio_to_an_invalid_baseline_meets_nothing(metric: str) -> None:
    broken = Certificate(checks=(Check(name="recompiled", outcome="failed", reading="2", variant=BASELINE),))
    assert outcome_of(a_result(certificate=broken), metric, at_most="100")[0] == "not-met"


@pytest.mark.parametrize("metric", ["seconds", "compileSeconds"])
def test_a_time_of_an_invalid_measurement_meets_nothing(metric: str) -> None:
    broken = Certificate(checks=(Check(name="recompiled", outcome="failed", reading="2", variant=VARIANT),))
    outcome, sentence = outcome_of(a_result(certificate=broken), metric, at_most="100")
    assert outcome == "not-met"
    assert "its measurement is invalid (recompiled)" in sentence


def observed(*values: tuple[str, int], kind: ObservationType = "number", **changes: Any) -> Result:
    found = Observation(
        name="compilations",
        type=kind,
        values=tuple(ObservedValue(value=value, launches=launches) for value, launches in values),
    )
    of_variant = Observations(variant=VARIANT, launches=5, found=(found,))
    return a_result(**changes).model_copy(update={"observations": (of_variant,), "protocol": "observe"})


def outcome_observed(result: Result, observation: str = "compilations", **bounds: str) -> tuple[str, str]:
    expectation = Expectation.model_validate({"observation": observation, "variant": VARIANT, **bounds})
    (found,) = evaluate((expectation,), result)
    return found.outcome, found.sentence


@pytest.mark.parametrize(
    ("values", "bounds", "outcome"),
    [
        ([("3", 5)], {"equals": "3"}, "met"),
        ([("3", 5)], {"equals": "3.0"}, "met"),
        ([("3", 5)], {"equals": "2"}, "not-met"),
        ([("3", 4), ("2", 1)], {"equals": "3"}, "undecided"),
        ([("3", 4), ("2", 1)], {"equals": "4"}, "not-met"),
        ([("3", 5)], {"at_least": "2", "at_most": "3"}, "met"),
        ([("3", 4), ("2", 1)], {"at_least": "3"}, "undecided"),
        ([("3", 4), ("2", 1)], {"at_most": "3"}, "met"),
        ([("3", 4), ("2", 1)], {"at_most": "1"}, "not-met"),
    ],
)
def test_an_observation_has_to_be_as_expected_in_every_launch(
    values: list[tuple[str, int]], bounds: dict[str, str], outcome: str
) -> None:
    assert outcome_observed(observed(*values), **bounds)[0] == outcome


def test_the_sentence_gives_the_observation_and_the_differences_of_launches() -> None:
    assert outcome_observed(observed(("3", 4), ("2", 1)), equals="3")[1] == (
        f"compilations of {VARIANT} equal to 3: undecided, 3 in 4 launches, 2 in 1."
    )


def test_texts_are_compared_exactly() -> None:
    raised = observed(("KeyReuseError", 5), kind="text")
    assert outcome_observed(raised, equals="KeyReuseError")[0] == "met"
    assert outcome_observed(raised, equals="keyreuseerror")[0] == "not-met"


def test_a_text_never_meets_numeric_bounds() -> None:
    assert outcome_observed(observed(("nothing", 5), kind="text"), at_least="1") == (
        "not-met",
        f"compilations of {VARIANT} at least 1: it is not a number: nothing.",
    )


def test_a_truncated_text_is_undecided() -> None:
    cut = observed(("0, 1, 0…", 5), kind="text")
    assert outcome_observed(cut, equals="0, 1, 0, 1, 0")[0] == "undecided"
    assert outcome_observed(cut, equals="1, 1, 0, 1, 0")[0] == "not-met"


def test_a_missing_observation_is_undecided() -> None:
    assert outcome_observed(observed(("3", 5)), "raised", equals="nothing")[0] == "undecided"


def test_an_observation_with_a_failed_check_meets_nothing() -> None:
    broken = Certificate(checks=(Check(name="wrong-device", outcome="failed", reading="on cpu", variant=VARIANT),))
    assert outcome_observed(observed(("3", 5), certificate=broken), equals="3")[0] == "not-met"
    assert not observed(("3", 5), certificate=broken).valid


@pytest.mark.parametrize("check", ["shared-device", "unsteady"])
@pytest.mark.parametrize(("metric", "bound"), [("speedup", {"at_least": "2"}), ("seconds", {"at_most": "1"})])
def test_a_noisy_result_leaves_expectations_on_times_undecided(metric: Any, bound: dict[str, str], check: str) -> None:
    shared = Check(name=check, outcome="failed", reading="52 %", variant=VARIANT)
    found = a_result(
        a_comparison(verdict=None, noisy=True), certificate=Certificate(checks=(*CLEAN.checks, shared))
    ).model_copy(update={"noisy": (Disturbed(round=2, reasons=("shared-device of jax/jit: 52 %",)),)})
    (outcome,) = evaluate([Expectation(metric=metric, variant=VARIANT, **bound)], found)
    assert outcome.outcome == "undecided"
    wrong = Check(name="parity", outcome="failed", reading="9", variant=VARIANT)
    broken = found.model_copy(update={"certificate": Certificate(checks=(shared, wrong)), "comparisons": ()})
    assert evaluate([Expectation(metric=metric, variant=VARIANT, **bound)], broken)[0].outcome == "not-met"


@pytest.mark.parametrize(
    ("bound", "shown"),
    [("0.000082", "at least 82.0 µs"), ("0.0010049", "at least 0.0010049 s"), ("2", "at least 2.00 s")],
)
def test_a_bound_on_a_time_is_formatted_as_a_time_unless_that_changes_its_value(bound: str, shown: str) -> None:
    expectation = Expectation(metric="seconds", variant="jax/jit", at_least=bound)
    assert shown in evaluate([expectation], a_result())[0].sentence


def test_an_observation_may_have_the_name_of_a_metric() -> None:
    expectation = Expectation(observation="seconds", variant="jax/jit", equals="slow")
    assert "equal to slow" in evaluate([expectation], a_result())[0].sentence
