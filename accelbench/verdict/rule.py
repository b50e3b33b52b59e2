"""The verdict: from a clean certificate, an interval and a margin to `faster`, `slower`, `equivalent`, `inconclusive`.

Only `Clean` can be asked for a verdict, and only a certificate without a failed check can be made `Clean`: a verdict
beside a contaminated measurement cannot be constructed.
"""

from dataclasses import dataclass

from accelbench import figures
from accelbench.api.result import Certificate, Verdict
from accelbench.stats.interval import Interval

INDISPENSABLE = ("parity", "non-finite")
"""Checks that must have passed for both sides; for others `untested` is enough."""


class UncleanError(ValueError):
    """A certificate that no verdict can rest on; `checks` names what failed or is missing."""

    def __init__(self, variant: str, checks: tuple[str, ...]) -> None:
        super().__init__(f"{variant}: no verdict without a clean certificate ({', '.join(checks)})")
        self.checks = checks


@dataclass(frozen=True)
class Clean:
    """A variant and a baseline whose certificate has no failed check; raises UncleanError for any other."""

    certificate: Certificate
    variant: str
    baseline: str

    def __post_init__(self) -> None:
        if names := unclean(self.certificate, self.variant, self.baseline):
            raise UncleanError(self.variant, names)

    def decide(self, interval: Interval, margin: float) -> Verdict:
        """The verdict; `margin` is the relative difference that does not matter."""
        if interval.lower > 1 + margin:
            return "faster"
        if interval.upper < 1 / (1 + margin):
            return "slower"
        if interval.lower >= 1 / (1 + margin) and interval.upper <= 1 + margin:
            return "equivalent"
        return "inconclusive"


def unclean(certificate: Certificate, *variants: str) -> tuple[str, ...]:
    """Names of the checks that stand between `variants` and a verdict, each once.

    Those that failed; where none did, those that could not be tested and must be. Outputs that are not finite cannot be
    compared: it is that check's to say so.
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
    verdict: Verdict, interval: Interval, *, variant: str, baseline: str, margin: float, sure: str
) -> str:
    """The verdict in plain words: "jax/jit is 2.04 times as fast as pytorch/eager (1.99 to 2.09, 95 %)".

    `sure` says how sure the interval is: "95 %". What is slower takes so many times as long: that is easier to grasp
    than a fraction of a speed.
    """
    within = f"{100 * margin:.3g} %"
    between = f"{figures.between(interval.lower, interval.upper)} times as fast"
    match verdict:
        case "faster":
            times = figures.prose(interval.estimate)
            return f"{variant} is {times} times as fast as {baseline} {_bounds(interval, sure)}."
        case "slower":
            times = figures.prose(interval.inverse.estimate)
            return f"{variant} takes {times} times as long as {baseline} {_bounds(interval.inverse, sure)}."
        case "equivalent":
            return f"{variant} is as fast as {baseline}, within {within}: {between} ({sure})."
        case "inconclusive" if interval.lower <= 1 <= interval.upper:
            return f"No verdict: {variant} is {between} as {baseline} ({sure})."
        case "inconclusive":
            # With the digits of tables: in prose both ends and the margin may round to the same number.
            times = f"{figures.interval(interval.lower, interval.upper)} times as fast"
            doubt = f"which may be less than the margin of {within}"
            return f"No verdict: {variant} is {times} as {baseline}, {doubt} ({sure})."


def too_few_sentence(interval: Interval, *, variant: str, baseline: str, rounds: int, least: int) -> str:
    """What is known where there are not enough rounds for a verdict."""
    so_far = f"{variant} is {figures.between(interval.lower, interval.upper)} times as fast as {baseline}"
    return f"No verdict after {rounds} of at least {least} rounds: {so_far}."


def noisy_sentence(interval: Interval, *, variant: str, baseline: str, sure: str) -> str:
    """What is said in the place of a verdict where disturbed rounds count."""
    finding = f"{figures.prose(interval.estimate)} times as fast as {baseline} {_bounds(interval, sure)}"
    return f"Noisy, so no verdict: next to other load, {variant} was {finding}."


def _bounds(interval: Interval, sure: str) -> str:
    return f"({figures.prose(interval.lower)} to {figures.prose(interval.upper)}, {sure})"
