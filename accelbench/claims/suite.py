"""Settle a claim about a suite: count the cases whose speedup of one variant over another lies within bounds. Pure.

Each round of a case gives one pair of launches, and each case counts once. docs/method/claims-about-suites.md has the
reasons.
"""

from collections.abc import Iterator, Mapping, Sequence

from accelbench.api.case import CaseMeasurement
from accelbench.api.result import Comparison, Outcome, Result, VariantResult
from accelbench.claims.finding import ClaimFinding
from accelbench.claims.ledger import Majority
from accelbench.claims.words import times
from accelbench.document import decimal_string
from accelbench.stats.gap import find_gap
from accelbench.stats.interval import log_speedups, student_interval
from accelbench.stats.stopping import StoppingRule
from accelbench.verdict.expectations import compare_with_bounds, describe_bounds
from accelbench.verdict.rule import checks_against_verdict


def evaluate(majority: Majority, results: Sequence[Result], *, majority_count: int) -> ClaimFinding:
    """Decide if more than half of the results have a speedup whose whole interval lies within the bounds.

    Undecided if any result cannot count, such as a noisy one, or has no interval. The claim has `majority_count`
    majorities, which share one error probability (Bonferroni).
    """
    subject = condition(majority)
    outcomes, speedup_texts = [], []
    for result in results:
        logarithms = log_speedups_by_round(result, majority.variant, majority.over)
        if reason := _why_unusable(majority, result, len(logarithms)):
            return ClaimFinding("undecided", f"{subject}: {result.case.workload}: {reason}.")
        interval = student_interval(logarithms, _alpha(result.case.measurement, comparisons=majority_count))
        if interval is None:
            reason = "its rounds are too few or differ too much for an interval"
            return ClaimFinding("undecided", f"{subject}: {result.case.workload}: {reason}.")
        outcomes.append(compare_with_bounds(interval.lower, interval.upper, majority.at_least, majority.at_most))
        speedup_texts.append(f"{result.case.workload} {times(interval.estimate, interval.lower, interval.upper)}")
    inside_count, outside_count = outcomes.count("met"), outcomes.count("not-met")
    outcome: Outcome = "undecided"
    if 2 * inside_count > len(results):
        outcome = "met"
    elif 2 * outside_count >= len(results):  # then at most half can lie within the bounds
        outcome = "not-met"
    measured_text = f"{inside_count} of {len(results)} ({'; '.join(speedup_texts)})"
    # Valid, because `_why_unusable` found nothing against any result.
    return ClaimFinding(outcome, f"{subject}: {outcome}, {measured_text}.", is_valid=True)


def with_baseline(result: Result, baseline: str) -> Result:
    """Return the result with all variants compared with `baseline`.

    Unchanged if that is its baseline already, or if it has no variant of that name.
    """
    if result.case.baseline == baseline or _find_variant(result, baseline) is None:
        return result
    others = [variant.name for variant in result.variants if variant.name != baseline]
    case = result.case.model_copy(update={"baseline": baseline})
    comparisons = tuple(_compare(result, variant, baseline) for variant in others)
    return result.model_copy(update={"case": case, "comparisons": comparisons})


def _compare(result: Result, variant: str, baseline: str) -> Comparison:
    """Compare two variants over the rounds that both have, without a verdict.

    The comparison has no speedup if a failed check forbids it, or if the rounds are too few or differ too much for an
    interval. Its sentence only says why the interval may be too narrow; it is empty if there is no reason.
    """
    logarithms = log_speedups_by_round(result, variant, baseline)
    measurement = result.case.measurement
    blocking_checks = tuple(checks_against_verdict(result.certificate, variant, baseline))
    comparison = Comparison(
        variant=variant,
        baseline=baseline,
        rounds=len(logarithms),
        confidence=measurement.confidence,
        invalid=blocking_checks,
        sentence=" ".join(_describe_gaps(result, variant, baseline)),
    )
    if blocking_checks:
        return comparison
    interval = student_interval(logarithms, _alpha(measurement, comparisons=result.case.comparisons_in_run))
    if interval is None:
        return comparison
    return comparison.model_copy(
        update={
            "speedup": decimal_string(interval.estimate),
            "lower": decimal_string(interval.lower),
            "upper": decimal_string(interval.upper),
        }
    )


def _describe_gaps(result: Result, *variants: str) -> Iterator[str]:
    """Yield a sentence for each variant whose launches fall into two groups or have exceptions (`find_gap`).

    The interval of such a variant's speedup may be too narrow.
    """
    # A gap no wider than the precision that the case aims at does not matter.
    minimum_difference = float(result.case.measurement.target_relative_error)
    for variant in variants:
        if gap := find_gap(tuple(_seconds_by_round(result, variant).values()), minimum_difference):
            yield gap.sentence(variant)


def condition(majority: Majority) -> str:
    """Describe the condition: `most speedups of jax/jit over pytorch/eager at least 2`."""
    bounds = describe_bounds(majority.at_least, majority.at_most)
    return f"most speedups of {majority.variant} over {majority.over} {bounds}"


def log_speedups_by_round(result: Result, variant: str, baseline: str) -> list[float]:
    """Return the natural logarithm of the variant's speedup over the baseline, for each round that has both, in order.

    Empty if the result lacks one of the two.
    """
    variant_seconds = _seconds_by_round(result, variant)
    baseline_seconds = _seconds_by_round(result, baseline)
    rounds = sorted(baseline_seconds.keys() & variant_seconds.keys())
    return log_speedups([baseline_seconds[number] for number in rounds], [variant_seconds[number] for number in rounds])


def _why_unusable(majority: Majority, result: Result, paired_rounds: int) -> str:
    """Return why the result cannot count for the majority, such as a failed variant; an empty string if it can.

    `paired_rounds` is the number of rounds with both variants.
    """
    for name in (majority.variant, majority.over):
        variant = _find_variant(result, name)
        if variant is None:
            return f"it has no {name}"
        if variant.failure:
            return f"{name} failed in round {variant.failure.round} ({variant.failure.reason})"
    if result.noisy:
        return "noisy (measured next to other load)"
    blocking_checks = checks_against_verdict(result.certificate, majority.variant, majority.over)
    if blocking_checks:
        return f"invalid ({', '.join(blocking_checks)})"
    minimum_rounds = result.case.measurement.rounds_min
    if paired_rounds < minimum_rounds:
        return f"it has {paired_rounds} of at least {minimum_rounds} rounds"
    return ""


def _find_variant(result: Result, name: str) -> VariantResult | None:
    return next((variant for variant in result.variants if variant.name == name), None)


def _seconds_by_round(result: Result, name: str) -> Mapping[int, float]:
    """Return the variant's seconds per unit of work, by round; empty if the result has no such variant."""
    variant = _find_variant(result, name)
    if variant is None:
        return {}
    return {launch.round: float(launch.seconds) for launch in variant.launches}


def _alpha(measurement: CaseMeasurement, *, comparisons: int) -> float:
    """Return one interval's error probability, so that `comparisons` intervals together have the case's confidence.

    The numbers of rounds matter, because an interval is tested after each round. The target does not matter: the
    stopping rule only needs one.
    """
    return StoppingRule(
        rounds_min=measurement.rounds_min,
        rounds_max=measurement.rounds_max,
        target=float(measurement.target_relative_error),
        confidence=float(measurement.confidence),
        comparisons=comparisons,
    ).nominal_alpha
