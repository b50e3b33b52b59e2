"""Decide a verdict: from a clean certificate, an interval and a margin to `faster`, `slower` and so on.

Only `Clean` decides a verdict, and only a certificate without a failed check makes a `Clean`: a verdict on an invalid
measurement cannot be constructed.
"""

from dataclasses import dataclass

from accelbench import figures
from accelbench.api.result import Certificate, Verdict
from accelbench.stats.interval import Interval

INDISPENSABLE = ("parity", "non-finite")
"""Checks that must have passed for both sides; for others `untested` is enough."""


class UncleanError(ValueError):
    """Report a certificate that supports no verdict; `checks` names the failed or missing checks."""

    def __init__(self, variant: str, checks: tuple[str, ...]) -> None:
        super().__init__(f"{variant}: no verdict without a clean certificate ({', '.join(checks)})")
        self.checks = checks


@dataclass(frozen=True)
class Clean:
    """Hold a variant and a baseline whose certificate has no failed check.

    Raises:
        UncleanError: A check failed, or an indispensable one is untested.
    """

    certificate: Certificate
    variant: str
    baseline: str

    def __post_init__(self) -> None:
        """Raise UncleanError unless the certificate supports a verdict."""
        if names := unclean(self.certificate, self.variant, self.baseline):
            raise UncleanError(self.variant, names)

    def decide(self, interval: Interval, margin: float) -> Verdict:
        """Return the verdict on an interval; `margin` is the relative difference that does not matter.

        The variant is faster or slower if the whole interval is beyond the margin, equivalent if the whole interval is
        within it; everything else is inconclusive.
        """
        if interval.lower > 1 + margin:
            return "faster"
        if interval.upper < 1 / (1 + margin):
            return "slower"
        if interval.lower >= 1 / (1 + margin) and interval.upper <= 1 + margin:
            return "equivalent"
        return "inconclusive"


def unclean(certificate: Certificate, *variants: str) -> tuple[str, ...]:
    """Return the names of the checks that prevent a verdict on `variants`, without repetition.

    These are the failed checks or, if none failed, those of `INDISPENSABLE` that did not pass. Outputs that are not
    finite are not compared, so only `non-finite` fails for them.
    """
    failed = [check.name for check in certificate.failed(*variants)]
    passed = {(check.name, check.variant) for check in certificate.checks if check.outcome == "passed"}
    missing = [
        name
        for name in INDISPENSABLE
        for variant in variants
        if not passed.intersection({(name, variant), (name, None)})
    ]
    return tuple(dict.fromkeys(failed or missing))


def verdict_sentence(
    verdict: Verdict, interval: Interval, *, variant: str, baseline: str, margin: float, confidence: str
) -> str:
    """Describe the verdict: "jax/jit is 2.04 times as fast as pytorch/eager (1.99 to 2.09, 95 %)".

    `confidence` is the interval's confidence, as "95 %". A slower variant "takes 2 times as long", which is easier to
    understand than a fraction of a speed.
    """
    within = f"{100 * margin:.3g} %"
    between = f"{figures.between(interval.lower, interval.upper)} times as fast"
    match verdict:
        case "faster":
            times = figures.prose(interval.estimate)
            return f"{variant} is {times} times as fast as {baseline} {_bounds(interval, confidence)}."
        case "slower":
            times = figures.prose(interval.inverse.estimate)
            return f"{variant} takes {times} times as long as {baseline} {_bounds(interval.inverse, confidence)}."
        case "equivalent":
            return f"{variant} is as fast as {baseline}, within {within}: {between} ({confidence})."
        case "inconclusive" if interval.lower <= 1 <= interval.upper:
            return f"No verdict: {variant} is {between} as {baseline} ({confidence})."
        case "inconclusive":
            # Use the digits of tables: with those of prose both ends and the margin may round to the same number.
            times = f"{figures.interval(interval.lower, interval.upper)} times as fast"
            doubt = f"which may be less than the margin of {within}"
            return f"No verdict: {variant} is {times} as {baseline}, {doubt} ({confidence})."


def too_few_sentence(interval: Interval, *, variant: str, baseline: str, rounds: int, least: int) -> str:
    """Describe the interval if there are too few rounds for a verdict."""
    so_far = f"{variant} is {figures.between(interval.lower, interval.upper)} times as fast as {baseline}"
    return f"No verdict after {rounds} of at least {least} rounds: {so_far}."


def noisy_sentence(interval: Interval, *, variant: str, baseline: str, confidence: str) -> str:
    """Describe the interval if disturbed rounds count, so that there is no verdict."""
    finding = f"{figures.prose(interval.estimate)} times as fast as {baseline} {_bounds(interval, confidence)}"
    return f"Noisy, so no verdict: next to other load, {variant} was {finding}."


def _bounds(interval: Interval, confidence: str) -> str:
    """Format an interval after its estimate: `(1.99 to 2.09, 95 %)`."""
    return f"({figures.prose(interval.lower)} to {figures.prose(interval.upper)}, {confidence})"
