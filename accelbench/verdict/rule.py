"""Decide a verdict, such as `faster`, from a certificate, an interval and a margin.

A certificate holds the results of all checks. It supports a verdict if no check failed and the indispensable ones
passed. Only `ValidMeasurement` decides a verdict, and it cannot be created from any other certificate.
"""

from dataclasses import dataclass

from accelbench import figures
from accelbench.api.result import Certificate, Verdict
from accelbench.stats.interval import Interval

INDISPENSABLE = ("parity", "non-finite")
"""Checks that must have passed for both variants; other checks may be untested."""


class InvalidMeasurementError(ValueError):
    """Report a certificate that supports no verdict; `checks` names the failed or missing checks."""

    def __init__(self, variant: str, checks: tuple[str, ...]) -> None:
        super().__init__(f"{variant}: no verdict, because checks failed or are missing: {', '.join(checks)}")
        self.checks = checks


@dataclass(frozen=True)
class ValidMeasurement:
    """Hold a variant and a baseline with a certificate that supports a verdict on them.

    Raises:
        InvalidMeasurementError: A check failed, or an indispensable one is untested.
    """

    certificate: Certificate
    variant: str
    baseline: str

    def __post_init__(self) -> None:
        """Raise InvalidMeasurementError unless the certificate supports a verdict."""
        if checks := checks_against_verdict(self.certificate, self.variant, self.baseline):
            raise InvalidMeasurementError(self.variant, checks)

    def decide(self, interval: Interval, margin: float) -> Verdict:
        """Return the verdict on a speedup's interval.

        `margin` is the largest relative difference that does not matter, for the speedup and for its inverse alike.
        """
        if interval.lower > 1 + margin:
            return "faster"
        if interval.upper < 1 / (1 + margin):
            return "slower"
        if interval.lower >= 1 / (1 + margin) and interval.upper <= 1 + margin:
            return "equivalent"
        return "inconclusive"


def checks_against_verdict(certificate: Certificate, *variants: str) -> tuple[str, ...]:
    """Return the names of the checks that prevent a verdict on `variants`: those that failed.

    If none failed, these are the indispensable checks that are untested or missing.
    """
    failed = [check.name for check in certificate.failed_checks(*variants)]
    if failed:
        return tuple(dict.fromkeys(failed))
    passed = {(check.name, check.variant) for check in certificate.checks if check.outcome == "passed"}

    def has_passed(name: str, variant: str) -> bool:
        """Return True if the check passed, for the variant or for all variants at once, which None stands for."""
        return (name, variant) in passed or (name, None) in passed

    return tuple(name for name in INDISPENSABLE if not all(has_passed(name, variant) for variant in variants))


def verdict_sentence(
    verdict: Verdict, interval: Interval, *, variant: str, baseline: str, margin: float, confidence: str
) -> str:
    """Return the sentence of a verdict, "jax/jit is 2.04 times as fast as pytorch/eager (1.99 to 2.09, 95 %)".

    `margin` is the largest relative difference that does not matter; `confidence` is the interval's, as "95 %".
    """
    margin_text = f"{100 * margin:.3g} %"
    speed = f"{figures.between(interval.lower, interval.upper)} times as fast"
    match verdict:
        case "faster":
            times = figures.prose(interval.estimate)
            return f"{variant} is {times} times as fast as {baseline} {_format_bounds(interval, confidence)}."
        case "slower":
            inverse = interval.inverse  # "takes 2 times as long" is easier than a fraction of a speed
            times = figures.prose(inverse.estimate)
            return f"{variant} takes {times} times as long as {baseline} {_format_bounds(inverse, confidence)}."
        case "equivalent":
            return f"{variant} is as fast as {baseline}, within {margin_text}: {speed} ({confidence})."
        case "inconclusive" if interval.lower <= 1 <= interval.upper:  # the variant may be faster or slower
            return f"No verdict: {variant} is {speed} as {baseline} ({confidence})."
        case "inconclusive":
            # The variant is faster, or it is slower, but perhaps by less than the margin. Use more digits than
            # `figures.between`, with which the ends and the margin may round to the same number.
            speed = f"{figures.interval(interval.lower, interval.upper)} times as fast"
            doubt = f"which may be less than the margin of {margin_text}"
            return f"No verdict: {variant} is {speed} as {baseline}, {doubt} ({confidence})."


def too_few_sentence(interval: Interval, *, variant: str, baseline: str, rounds: int, rounds_min: int) -> str:
    """Return the sentence of a comparison that has no verdict because `rounds` is less than `rounds_min`."""
    speed = f"{figures.between(interval.lower, interval.upper)} times as fast"
    return f"No verdict after {rounds} of at least {rounds_min} rounds: {variant} is {speed} as {baseline}."


def noisy_sentence(interval: Interval, *, variant: str, baseline: str, confidence: str) -> str:
    """Return the sentence of a comparison without a verdict, because other load disturbed its rounds."""
    speedup = f"{figures.prose(interval.estimate)} times as fast as {baseline} {_format_bounds(interval, confidence)}"
    return f"Noisy, so no verdict: next to other load, {variant} was {speedup}."


def _format_bounds(interval: Interval, confidence: str) -> str:
    """Format an interval after its estimate: `(1.99 to 2.09, 95 %)`."""
    return f"({figures.prose(interval.lower)} to {figures.prose(interval.upper)}, {confidence})"
