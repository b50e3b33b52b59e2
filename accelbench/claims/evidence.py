"""Decide whether an expectation's outcome is reliable enough to decide a claim, by the kind of its number. Pure.

A count of a program is exact, and a speedup has a confidence interval. The times of first calls and of compiling have
neither: their ranges are the smallest and the largest of a few launches. Such a range decides a claim only if chance
would place so many launches on one side of the bound in at most one case of twenty. A single number without a range,
such as a ratio of memory, decides nothing.
"""

import math
from dataclasses import replace

from accelbench.api.number_registry import NUMBERS
from accelbench.api.result import Comparison, Outcome, Result, VariantResult
from accelbench.api.run import Expectation
from accelbench.claims import suite
from accelbench.verdict.expectations import ExpectationOutcome, compare_with_bounds
from accelbench.verdict.readings import read

TOO_NARROW = "too narrow"
"""A comparison's sentence contains this if its interval may be too narrow."""
MINIMUM_LAUNCHES = {
    "seconds": 5,
    "compileSeconds": 5,
    "warmCompileSeconds": 5,
    "compileRatio": 3,
    "firstCallRatio": 3,
}
"""Numbers whose range is that of launches, with the launches that they need to decide.

A bound on a time splits its launches like a coin: five on one side happen in one of 32 cases (sign test). A bound on a
ratio compares two sets of launches: that three of one all lie beyond three of the other happens in one of 20 cases
(rank sum).
"""


def weigh(outcome: ExpectationOutcome, result: Result) -> ExpectationOutcome:
    """Return the outcome, or `undecided` with the reason if its number cannot decide a claim."""
    decides_nothing = outcome.outcome == "undecided" or not outcome.is_valid
    is_observation = outcome.expectation.metric is None  # exact, like a count
    if decides_nothing or is_observation:
        return outcome
    number = NUMBERS[outcome.expectation.subject]
    if number.undisturbed:  # other load on the machine does not change it, so every outcome is reliable
        return outcome
    weigh_number = _weigh_comparison if number.compared else _weigh_range
    return weigh_number(outcome, result)


def may_be_too_narrow(comparison: Comparison) -> bool:
    """Return True if the comparison's interval may be too narrow, because some launches were far from the others."""
    return TOO_NARROW in comparison.sentence


def _weigh_range(outcome: ExpectationOutcome, result: Result) -> ExpectationOutcome:
    """Return the outcome; undecided if the number has no range over launches, or if the range cannot decide.

    A range cannot decide if it is of too few launches, or if launches lie on both sides of the bound.
    """
    metric = outcome.expectation.subject  # its `metric`, which `weigh` has found to be set
    launch_count = result.rounds  # each variant has one launch in each round
    if metric not in MINIMUM_LAUNCHES:
        return _undecided(outcome, "one value for all launches has no interval")
    if launch_count < MINIMUM_LAUNCHES[metric]:
        return _undecided(outcome, f"{launch_count} launches are too few for a range to decide")
    if _outcome_of_all_launches(outcome.expectation, metric, result) != outcome.outcome:
        return _undecided(outcome, "launches lie on both sides of the bound")
    return outcome


def _weigh_comparison(outcome: ExpectationOutcome, result: Result) -> ExpectationOutcome:
    """Return the outcome; undecided if the interval may be too narrow, unless every round confirms the outcome.

    Rounds can confirm only an outcome on the metric `speedup`.
    """
    expectation = outcome.expectation
    comparison = next((item for item in result.comparisons if item.variant == expectation.variant), None)
    if comparison is None or not may_be_too_narrow(comparison):
        return outcome
    logarithms = suite.log_speedups_by_round(result, comparison.variant, comparison.baseline)
    speedups = [math.exp(logarithm) for logarithm in logarithms]
    outcome_of_rounds = compare_with_bounds(min(speedups), max(speedups), expectation.at_least, expectation.at_most)
    if expectation.metric == "speedup" and outcome_of_rounds == outcome.outcome:
        return outcome
    return _undecided(outcome, "its interval may be too narrow, and its rounds disagree")


def _outcome_of_all_launches(expectation: Expectation, metric: str, result: Result) -> Outcome:
    """Return the expectation's outcome for the range of all launches, from the fastest to the slowest.

    The range in the result leaves out extremes: of times, it is from the 5th to the 95th percentile.
    """
    variants = {variant.name: _with_extremes(variant) for variant in result.variants}
    result_with_extremes = result.model_copy(update={"variants": tuple(variants.values())})
    reading = read(metric, result_with_extremes, variants[expectation.variant])
    if reading is None:
        return "undecided"
    return compare_with_bounds(reading.lower, reading.upper, expectation.at_least, expectation.at_most)


def _with_extremes(variant: VariantResult) -> VariantResult:
    """Return the variant with its fastest and its slowest launch in place of the 5th and the 95th percentile.

    A variant without times is returned unchanged.
    """
    if variant.seconds is None or not variant.launches:
        return variant
    launch_times = [launch.seconds for launch in variant.launches]  # decimal strings
    extremes = {"p5_seconds": min(launch_times, key=float), "p95_seconds": max(launch_times, key=float)}
    return variant.model_copy(update={"seconds": variant.seconds.model_copy(update=extremes)})


def _undecided(outcome: ExpectationOutcome, why: str) -> ExpectationOutcome:
    """Return the outcome as undecided; its sentence keeps the measured value and gives the reason."""
    sentence = outcome.sentence.replace(f": {outcome.outcome}, ", ": undecided, ", 1).removesuffix(".")
    return replace(outcome, outcome="undecided", sentence=f"{sentence}; {why}.")
