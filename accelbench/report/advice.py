"""Advise what to do about disturbed rounds, launches that differ widely, and comparisons that are undecided. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from accelbench import figures
from accelbench.api.reasons import StopReason
from accelbench.api.result import Comparison, Disturbed, Result, VariantResult
from accelbench.stats.gap import MINIMUM_LAUNCHES, find_gap
from accelbench.validity import generator_late, shared_device, throttled

ADVICE_BY_CHECK = {check.name: check.advice for check in (generator_late.CHECK, shared_device.CHECK, throttled.CHECK)}
"""Advice of each check that detects disturbances, by the check's name."""
ACCEPT_NOISE = "accept noise: --accept-noise, or measurement.acceptNoise: true in the manifest"
MORE_TIME = "allow more time (measurement.timeLimitSeconds), in which to repeat rounds"
WIDE_SPREAD = 0.2
"""Maximum of half the distance from the 5th to the 95th percentile of launch times, divided by their geometric mean.

Launches with a larger spread are scattered.

Measured: 0.01 to 0.03 on a quiet machine, 0.36 to 0.56 next to other load.
"""


def disturbance_advice(reasons: Iterable[str], fingerprint: Mapping[str, str], *others: str) -> str:
    """Return a sentence that advises what to do against disturbances of rounds, such as other load.

    Args:
        reasons: What disturbed the rounds; each reason begins with the name of the check that detected it.
        fingerprint: The machine's properties, on which the advice depends.
        *others: More suggestions.
    """
    check_names = {reason.partition(" ")[0] for reason in reasons}
    suggestions = [advice(fingerprint) for name, advice in ADVICE_BY_CHECK.items() if name in check_names]
    return f"What to do: {'; '.join([*suggestions, *others, f'or {ACCEPT_NOISE}'])}."


def describe_disturbed_rounds(result: Result) -> tuple[str, ...]:
    """Return sentences that name the disturbed rounds, why they were disturbed, and what to do about that."""
    lines = []
    if result.noisy:
        lines.append(f"{_name_rounds(result.noisy)} disturbed and counted, as noise was accepted.")
    if result.quarantined:
        line = f"{_name_rounds(result.quarantined)} discarded for every variant."
        failed_names = {check.name for check in result.certificate.checks if check.outcome == "failed"}
        # If a check of disturbances failed, the report states the reason with that check.
        if failed_names.isdisjoint(ADVICE_BY_CHECK):
            line += f" {_first_reason(result.quarantined)}"
        lines.append(line)
        if disturbances_prevent_verdict(result):
            reasons = [reason for disturbed in result.quarantined for reason in disturbed.reasons]
            others = [MORE_TIME] if result.stopped == StopReason.TIME_LIMIT_REACHED else []
            lines.append(disturbance_advice(reasons, result.fingerprint, *others))
    return tuple(lines)


def disturbances_prevent_verdict(result: Result) -> bool:
    """Return True if discarded rounds are the likely reason for a missing verdict."""
    return bool(result.quarantined) and (result.stopped == StopReason.TIME_LIMIT_REACHED or not result.valid)


def _name_rounds(rounds: Sequence[Disturbed]) -> str:
    """Return the beginning of a sentence about disturbed rounds: `Rounds 3, 5 and 8 were` or `Round 3 was`."""
    *others, last = [str(disturbed.round) for disturbed in rounds]
    return f"Rounds {', '.join(others)} and {last} were" if others else f"Round {last} was"


def _first_reason(rounds: Sequence[Disturbed]) -> str:
    """Return a sentence with the reason why the first of these rounds was disturbed."""
    in_round = f" in round {rounds[0].round}" if len(rounds) > 1 else ""
    return f"The reason{in_round}: {rounds[0].reasons[0]}."


def advise_on_missing_verdicts(result: Result) -> tuple[str, ...]:
    """Return a sentence that advises how to get the verdicts that are missing; nothing without advice."""
    if disturbances_prevent_verdict(result) or result.noisy:
        return ()  # `describe_disturbed_rounds` already says why verdicts are missing, and what to do
    suggestions = [*_advice_on_scattered_launches(result), *_advice_on_undecided_comparisons(result)]
    return (f"What to do: {'; '.join(suggestions)}.",) if suggestions else ()


def _advice_on_scattered_launches(result: Result) -> Iterator[str]:
    """Yield advice if the times of a variant's launches differ widely or form two groups; nothing otherwise."""
    if any(check.outcome == "failed" for check in result.certificate.checks):
        return  # the report already gives advice with each failed check
    scattered_variants = [variant.name for variant in result.variants if has_scattered_launches(variant, result)]
    if scattered_variants:
        # Other work on the machine is a likely cause, although the check for it did not fail.
        advice = shared_device.CHECK.advice(result.fingerprint)
        yield f"launches of {figures.join_names(scattered_variants)} are not alike: {advice}"


def has_scattered_launches(variant: VariantResult, result: Result) -> bool:
    """Return True if the times of the variant's launches differ widely, or form two groups with a gap between them."""
    quantiles = variant.seconds
    seconds = [float(launch.seconds) for launch in variant.launches]
    if quantiles is None or len(seconds) < MINIMUM_LAUNCHES:
        return False
    half_range = (float(quantiles.p95_seconds) - float(quantiles.p5_seconds)) / 2
    if half_range > WIDE_SPREAD * float(quantiles.geometric_mean_seconds):
        return True
    return find_gap(seconds, float(result.case.measurement.target_relative_error)) is not None


def _advice_on_undecided_comparisons(result: Result) -> Iterator[str]:
    """Yield which setting to change so that more rounds decide comparisons.

    Yield nothing if every comparison is decided, or if no setting would give more rounds.
    """
    if not any(map(_is_undecided, result.comparisons)):
        return
    measurement = result.case.measurement
    match result.stopped:
        case StopReason.TIME_LIMIT_REACHED | StopReason.NO_TIME_FOR_ROUND:
            advice, setting = "allow time for more rounds", f"timeLimitSeconds: {measurement.time_limit_seconds}"
        case StopReason.MAXIMUM_ROUNDS_REACHED:
            advice, setting = "allow more rounds", f"rounds.max: {measurement.rounds_max}"
        case StopReason.TARGET_MET:
            target = figures.percent(float(measurement.target_relative_error))
            advice, setting = "ask for a narrower interval", f"targetRelativeError: {target}"
        case _:
            return  # interrupted, not finished, or too many failures
    yield f"{advice} (measurement.{setting} here)"  # the setting with its value in this run


def _is_undecided(comparison: Comparison) -> bool:
    """Return True if more rounds could give the comparison a verdict of `faster`, `slower` or `equivalent`."""
    if comparison.verdict is not None:
        return comparison.verdict == "inconclusive"
    # A speedup is estimated as soon as a round counts, even if the rounds are too few for an interval.
    has_rounds = comparison.speedup is not None
    return has_rounds and not comparison.noisy
