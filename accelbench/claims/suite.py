"""Settle a claim about a suite: count the speedups of a variant over another that lie within bounds. Pure.

The rounds of a case make pairs, as within a result, and each case counts once. docs/method/claims-about-suites.md has
the reasons.
"""

from collections.abc import Mapping, Sequence

from accelbench.api.result import Comparison, Outcome, Result, VariantResult
from accelbench.claims.finding import ClaimFinding
from accelbench.claims.ledger import Majority
from accelbench.claims.words import times
from accelbench.document import decimal_string
from accelbench.stats.interval import log_speedups, student_interval
from accelbench.stats.stopping import StoppingRule
from accelbench.verdict.expectations import compare_with_bounds, describe_bounds
from accelbench.verdict.rule import checks_against_verdict


def count(majority: Majority, results: Sequence[Result], *, suites: int) -> ClaimFinding:
    """Count the speedups within the bounds: met by more than half, not met if half or more lie outside.

    `results` are of all cases, complete; `suites` of a claim share its error (Bonferroni). Undecided if one result is
    invalid, has failed, or has too few rounds.
    """
    subject = condition(majority)
    outcomes, readings = [], []
    for result in results:
        logs, why = _logs(majority, result)
        interval = None if why else student_interval(logs, _alpha(result, suites))
        if interval is None:
            return ClaimFinding("undecided", f"{subject}: {result.case.workload}: {why or 'the rounds say nothing'}.")
        outcomes.append(compare_with_bounds(interval.lower, interval.upper, majority.at_least, majority.at_most))
        readings.append(f"{result.case.workload} {times(interval.estimate, interval.lower, interval.upper)}")
    inside, outside = outcomes.count("met"), outcomes.count("not-met")
    outcome: Outcome = "undecided"
    if 2 * inside > len(results):
        outcome = "met"
    elif 2 * outside >= len(results):
        outcome = "not-met"
    reading = f"{inside} of {len(results)} ({'; '.join(readings)})"
    return ClaimFinding(outcome, f"{subject}: {outcome}, {reading}.", sound=True)


def with_baseline(result: Result, over: str) -> Result:
    """Return the result with `over` as its baseline, from the rounds in the result; unchanged without that variant."""
    if result.case.baseline == over or _find(result, over) is None:
        return result
    comparisons = tuple(
        _compared_with(result, over, variant.name) for variant in result.variants if variant.name != over
    )
    return result.model_copy(
        update={"case": result.case.model_copy(update={"baseline": over}), "comparisons": comparisons}
    )


def _compared_with(result: Result, over: str, name: str) -> Comparison:
    """Compare the variant `name` with the baseline `over` over the rounds that both have."""
    logs, invalid = _pairs(result, over, name), tuple(checks_against_verdict(result.certificate, name, over))
    comparison = Comparison(
        variant=name,
        baseline=over,
        rounds=len(logs),
        confidence=result.case.measurement.confidence,
        invalid=invalid,
        sentence="",
    )
    interval = None if invalid else student_interval(logs, _alpha(result, result.case.comparisons_in_run))
    if interval is None:
        return comparison
    ends = {"speedup": interval.estimate, "lower": interval.lower, "upper": interval.upper}
    return comparison.model_copy(update={name: decimal_string(value) for name, value in ends.items()})


def condition(suite: Majority) -> str:
    """Return the condition in words."""
    return f"most speedups of {suite.variant} over {suite.over} {describe_bounds(suite.at_least, suite.at_most)}"


def _logs(suite: Majority, result: Result) -> tuple[list[float], str]:
    """Return the log-speedups of the rounds, and why they cannot count; empty if they can."""
    logs = _pairs(result, suite.over, suite.variant)
    return logs, _why_unusable(suite, result, len(logs))


def _pairs(result: Result, over: str, name: str) -> list[float]:
    """Return the log-speedup of `name` over `over` for each round that both have."""
    before, after = (_by_round(result, variant) for variant in (over, name))
    rounds = sorted(before.keys() & after.keys())
    return log_speedups([before[number] for number in rounds], [after[number] for number in rounds])


def _why_unusable(suite: Majority, result: Result, pairs: int) -> str:
    """Return why a result cannot count, given its complete `pairs` of launches; empty if it can."""
    for name in (suite.variant, suite.over):
        variant = _find(result, name)
        if variant is None:
            return f"it has no {name}"
        if variant.failure:
            return f"{name} failed in round {variant.failure.round} ({variant.failure.reason})"
    if result.noisy:
        return "noisy (measured next to other load)"
    if names := checks_against_verdict(result.certificate, suite.variant, suite.over):
        return f"invalid ({', '.join(names)})"
    least = result.case.measurement.rounds_min
    return f"it has {pairs} of at least {least} rounds" if pairs < least else ""


def _find(result: Result, name: str) -> VariantResult | None:
    return next((variant for variant in result.variants if variant.name == name), None)


def _by_round(result: Result, name: str) -> Mapping[int, float]:
    """Return the variant's seconds per unit by round; empty without the variant."""
    variant = _find(result, name)
    return {launch.round: float(launch.seconds) for launch in variant.launches} if variant else {}


def _alpha(result: Result, comparisons: int) -> float:
    """Return the nominal alpha of an interval over rounds: `comparisons` share the error, early looks are corrected."""
    measurement = result.case.measurement
    return StoppingRule(
        rounds_min=measurement.rounds_min,
        rounds_max=measurement.rounds_max,
        target=float(measurement.target_relative_error),
        confidence=float(measurement.confidence),
        comparisons=comparisons,
    ).nominal_alpha
