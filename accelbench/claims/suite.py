"""A claim about a whole suite: the geometric mean of a variant's speedups over another, with its interval. Pure.

A case's rounds make pairs, as they do within a result; cases share none, so the mean over them has Welch's interval.
Each case counts once. docs/adr/0016-a-suite-is-a-geometric-mean.md has the reasons.
"""

from collections.abc import Mapping, Sequence

from accelbench import figures
from accelbench.api.result import Result, VariantResult
from accelbench.claims.finding import ClaimFinding
from accelbench.claims.ledger import GeometricMean
from accelbench.stats.interval import log_speedups
from accelbench.stats.stopping import StoppingRule
from accelbench.stats.welch import interval_of_mean
from accelbench.verdict.expectations import held, within
from accelbench.verdict.rule import unclean


def evaluate(mean: GeometricMean, results: Sequence[Result], *, means: int) -> ClaimFinding:
    """The mean held against its bounds by its whole interval; `means` of a claim share its error (Bonferroni).

    `results` are of all cases, complete. Undecided where one is invalid, has failed, or has too few rounds.
    """
    subject = named(mean)
    samples = []
    for result in results:
        before, after = (_by_round(result, name) for name in (mean.over, mean.variant))
        rounds = sorted(before.keys() & after.keys())
        if why := _unusable(mean, result, len(rounds)):
            return ClaimFinding("undecided", f"{subject}: {result.case.workload}: {why}.")
        samples.append(log_speedups([before[number] for number in rounds], [after[number] for number in rounds]))
    alpha = min((_alpha(result, means) for result in results), default=0.0)
    interval = interval_of_mean(samples, alpha)
    if interval is None:
        return ClaimFinding("undecided", f"{subject}: the rounds say nothing.")
    reading = f"{figures.speedup(interval.estimate)} ({figures.interval(interval.lower, interval.upper)})"
    outcome = held(interval.lower, interval.upper, mean.at_least, mean.at_most)
    return ClaimFinding(outcome, f"{subject}: {outcome}, {reading} over {len(results)} cases.", sound=True)


def named(mean: GeometricMean) -> str:
    """What is asked, in words."""
    return f"geometric mean of {mean.variant} over {mean.over} {within(mean.at_least, mean.at_most)}"


def _unusable(mean: GeometricMean, result: Result, pairs: int) -> str:
    """Why a result cannot count, in which `pairs` rounds have both launches; empty where it can."""
    for name in (mean.variant, mean.over):
        variant = _find(result, name)
        if variant is None:
            return f"it has no {name}"
        if variant.failure:
            return f"{name} failed in round {variant.failure.round} ({variant.failure.reason})"
    if result.noisy:
        return "noisy (measured beside other load)"
    if names := unclean(result.certificate, mean.variant, mean.over):
        return f"invalid ({', '.join(names)})"
    least = result.case.measurement.rounds_min
    return f"it has {pairs} of at least {least} rounds" if pairs < least else ""


def _find(result: Result, name: str) -> VariantResult | None:
    return next((each for each in result.variants if each.name == name), None)


def _by_round(result: Result, name: str) -> Mapping[int, float]:
    variant = _find(result, name)
    return {launch.round: float(launch.seconds) for launch in variant.launches} if variant else {}


def _alpha(result: Result, means: int) -> float:
    """What looking early costs, the case has paid; the interval over cases pays the same."""
    asked = result.case.measurement
    return StoppingRule(
        rounds_min=asked.rounds_min,
        rounds_max=asked.rounds_max,
        target=float(asked.target_relative_error),
        confidence=float(asked.confidence),
        comparisons=means,
    ).nominal_alpha
