"""The verdict: from a clean certificate, an interval and a margin to `faster`, `slower`, `equivalent`, `inconclusive`.

Only `Clean` can be asked for a verdict, and only a certificate without a failed check can be made `Clean`: a verdict
beside a contaminated measurement cannot be constructed.
"""

import math
from dataclasses import dataclass

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

    `sure` says how sure the interval is: "95 %".
    """
    finding = _finding(interval, baseline, sure)
    match verdict:
        case "faster":
            return f"{variant} is {finding}."
        case "slower":
            return f"{variant} is slower: {finding}."
        case "equivalent":
            return f"{variant} is equivalent within {100 * margin:.4g} %: {finding}."
        case "inconclusive":
            return f"{variant} is, inconclusively, {finding}{_direction(interval)}."


def noisy_sentence(interval: Interval, *, variant: str, baseline: str, sure: str) -> str:
    """What is said in the place of a verdict where disturbed rounds count."""
    finding = _finding(interval, baseline, sure)
    return f"Noisy: measured beside other load; an interval, not a certified verdict: {variant} was {finding}."


def _finding(interval: Interval, baseline: str, sure: str) -> str:
    decimals = _decimals(interval)
    estimate, lower, upper = (f"{value:.{decimals}f}" for value in (interval.estimate, interval.lower, interval.upper))
    return f"{estimate} times as fast as {baseline} ({lower} to {upper}, {sure})"


def _direction(interval: Interval) -> str:
    if interval.lower > 1:
        return "; direction established: it is faster, by how much is open"
    if interval.upper < 1:
        return "; direction established: it is slower, by how much is open"
    return ""


def _decimals(interval: Interval) -> int:
    """As many as show the interval's half-width with one digit, and its estimate with three."""
    half_width = interval.estimate * interval.relative_half_width
    wanted = -math.floor(math.log10(half_width)) if half_width > 0 else 6
    least = 2 - math.floor(math.log10(interval.estimate))
    return min(12, max(0, wanted, least))
