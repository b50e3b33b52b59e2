"""What to do where measuring ended before a comparison was decided, or launches are not alike. Pure."""

from collections.abc import Iterator

from accelbench import figures
from accelbench.api.reasons import StopReason
from accelbench.api.result import Comparison, Result, VariantResult
from accelbench.figures import percent
from accelbench.report import noise
from accelbench.stats.gap import FEWEST, find_gap
from accelbench.validity import shared_device

RESTLESS = 0.2
"""Half of what launches span, over their mean: seen at 0.01 to 0.03 on a quiet machine, at 0.36 to 0.56 beside load."""


def what_to_do(result: Result) -> tuple[str, ...]:
    """A line with what would help; nothing where all is decided and calm, or where others say what to do already.

    Those are the remarks on disturbed rounds, and the checks that failed.
    """
    if noise.advises(result) or result.noisy:
        return ()
    parts = [*_calm_down(result), *_decide(result)]
    return (f"What to do: {'; '.join(parts)}.",) if parts else ()


def _calm_down(result: Result) -> Iterator[str]:
    """Advice where a variant's launches spread more than on a machine at rest, or fall apart into groups."""
    if any(check.outcome == "failed" for check in result.certificate.checks):
        return
    if restless := [variant.name for variant in result.variants if is_restless(variant, result)]:
        also = shared_device.CHECK.advice(result.fingerprint)
        yield f"launches of {figures.listed(restless)} are not alike: {also}"


def is_restless(variant: VariantResult, result: Result) -> bool:
    """Whether its launches spread widely, or some are far from the others."""
    found, seconds = variant.seconds, [float(launch.seconds) for launch in variant.launches]
    if found is None or len(seconds) < FEWEST:
        return False
    half_range = (float(found.p95_seconds) - float(found.p5_seconds)) / 2
    wide = half_range > RESTLESS * float(found.geometric_mean_seconds)
    return wide or find_gap(seconds, float(result.case.measurement.target_relative_error)) is not None


def _decide(result: Result) -> Iterator[str]:
    """What would decide a comparison that is not."""
    if not any(_is_undecided(each) for each in result.comparisons):
        return
    measurement = result.case.measurement
    match result.stopped:
        case StopReason.TIME_LIMIT_REACHED | StopReason.NO_TIME_FOR_ROUND:
            what, field = "allow time for more rounds", f"timeLimitSeconds: {measurement.time_limit_seconds}"
        case StopReason.MAXIMUM_ROUNDS_REACHED:
            what, field = "allow more rounds", f"rounds.max: {measurement.rounds_max}"
        case StopReason.TARGET_MET:
            target = percent(float(measurement.target_relative_error))
            what, field = "ask for a narrower interval", f"targetRelativeError: {target}"
        case _:
            return
    yield f"{what} (measurement.{field} here)"


def _is_undecided(comparison: Comparison) -> bool:
    measured = comparison.speedup is not None and not comparison.noisy
    return comparison.verdict == "inconclusive" or (measured and comparison.verdict is None)
