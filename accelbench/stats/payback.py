"""After how many steps a variant's dearer first call has paid for itself.

A variant that compiles costs more before its first step and less in each one. With d the difference of the first-call
costs, variant less baseline, and g what a step saves, baseline seconds less variant seconds, the variant is ahead after
N steps where d < N g. Its first-call cost is what its phases `compile` and `first-step` take together, less one call at
its steady speed, which does work that the N steps count. Importing, initialising the device and setting up are left
out: a program pays them whatever it compiles, and they depend on what else it imports. So is the warm-up: its calls do
work, and how many a measurement makes says nothing about a program. The launch is cold; what a warm cache saves is told
by the warm probe's phases.

The interval is Fieller's ("Some problems in interval estimation", Journal of the Royal Statistical Society B, 1954): N
is in it where the mean over rounds of d - N g is not told from 0 by Student's t. It needs no ratio of noisy numbers and
is open above where the steps are not told apart, which is the honest answer then.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from accelbench import figures
from accelbench.stats.interval import MINIMUM_PAIRS, student_quantile

Answer = Literal["at-once", "after", "never", "until"]


@dataclass(frozen=True)
class LaunchCost:
    """What one launch costs, in seconds."""

    first_call: float
    """Beyond one call at the steady speed; below zero where the first call was no slower."""
    step: float
    """Each step, steady."""


@dataclass(frozen=True)
class PaybackEstimate:
    """When a variant is ahead of its baseline in total time."""

    answer: Answer
    """`at-once`: from the first step on; `after` so many steps; `never`; `until` so many steps, then behind."""
    steps: float | None
    """The estimate, for `after` and `until`."""
    lower: float | None
    """The fewest steps that the launches leave possible; None: no number of steps is."""
    upper: float | None
    """The most; None: there is no such number, the steps are not told apart."""
    extra_seconds: float
    """What the variant's first call costs beyond the baseline's, in the mean over rounds."""


def estimate_payback(
    baseline: Sequence[LaunchCost], variant: Sequence[LaunchCost], alpha: float
) -> PaybackEstimate | None:
    """From the costs of paired launches, round by round; None with fewer than two pairs.

    The interval misses the number of steps with probability `alpha`, where it is shown at all.
    """
    extra = [after.first_call - before.first_call for before, after in zip(baseline, variant, strict=True)]
    saved = [before.step - after.step for before, after in zip(baseline, variant, strict=True)]
    if len(extra) < MINIMUM_PAIRS:
        return None
    cost, gain = math.fsum(extra) / len(extra), math.fsum(saved) / len(saved)
    if cost <= 0 or gain <= 0:
        same_sign = cost < 0 and gain < 0
        answer: Answer = "until" if same_sign else "at-once" if cost <= 0 and gain >= 0 and (cost or gain) else "never"
        steps = cost / gain if same_sign else None
    else:
        answer, steps = "after", cost / gain
    lower, upper = _crossings(extra, saved, alpha)
    return PaybackEstimate(answer=answer, steps=steps, lower=lower, upper=upper, extra_seconds=cost)


def _crossings(extra: Sequence[float], saved: Sequence[float], alpha: float) -> tuple[float | None, float | None]:
    """The least and the largest N of at least 0 at which the mean of extra - N saved is not told from 0."""
    # In shares of the largest: squared, a very small number is 0.
    largest_extra, largest_saved = max(map(abs, extra)) or 1.0, max(map(abs, saved)) or 1.0
    lower, upper = _crossings_of_shares(
        [each / largest_extra for each in extra], [each / largest_saved for each in saved], alpha
    )
    scale = largest_extra / largest_saved
    return None if lower is None else lower * scale, None if upper is None else upper * scale


def _crossings_of_shares(
    extra: Sequence[float], saved: Sequence[float], alpha: float
) -> tuple[float | None, float | None]:
    count = len(extra)
    cost, gain = math.fsum(extra) / count, math.fsum(saved) / count
    # t² times the variances and the covariance of the two means: the roots of a N² - 2 b N + c bound the interval.
    factor = student_quantile(1 - alpha / 2, count - 1) ** 2 / (count - 1) / count
    a = gain**2 - factor * math.fsum((value - gain) ** 2 for value in saved)
    b = gain * cost - factor * math.fsum((x - cost) * (y - gain) for x, y in zip(extra, saved, strict=True))
    c = cost**2 - factor * math.fsum((value - cost) ** 2 for value in extra)
    discriminant = b**2 - a * c
    if a > 0:
        if discriminant < 0:
            discriminant = 0.0  # rounding: with a > 0 the estimate itself is in the interval
        root = math.sqrt(discriminant)
        low, high = (b - root) / a, (b + root) / a
        return (max(0.0, low), high) if high >= 0 else (None, None)
    # The steps are not told apart: everything is possible, but for what lies between the roots, if there are any.
    if c <= 0:
        return 0.0, None
    if a == 0:
        return (c / (2 * b), None) if b > 0 else (None, None)
    roots = sorted(((b - math.sqrt(discriminant)) / a, (b + math.sqrt(discriminant)) / a))
    return (max(0.0, roots[1]), None)


def payback_sentence(found: PaybackEstimate, variant: str, unit: str) -> str:
    """The finding in plain words, as "The first call of jax/jit takes 0.06 s longer and pays back after 1 step".

    `unit` is what a step is called. Empty where the first calls take the same within a millisecond.
    """
    if abs(found.extra_seconds) < NOTHING_SECONDS:
        return ""
    compared = "longer" if found.extra_seconds > 0 else "less"
    begins = f"The first call of {variant} takes {_seconds(abs(found.extra_seconds))} {compared}"
    if maybe_never(found.answer, found.lower, found.upper):
        return f"{begins} and pays back after {_steps(found.lower or 0, unit)} at the earliest, if ever."
    match found.answer:
        case "never":
            return f"{begins} and never pays back: later calls are slower too."
        case "at-once":
            return f"{begins}: it is ahead from the first {unit}."
        case "until":
            return f"{begins}: it is ahead until {_steps(found.steps or 0, unit)}{_range(found)}."
        case "after":
            return f"{begins} and pays back after {_steps(found.steps or 0, unit)}{_range(found)}."


def maybe_never(answer: Answer, lower: float | None, upper: float | None) -> bool:
    """Whether a dearer first call may or may not pay back: later calls are told neither faster nor slower.

    Then the launches leave `lower` steps possible and all beyond, whichever side the estimate is on.
    """
    return answer in {"after", "never"} and lower is not None and upper is None


NOTHING_SECONDS = 0.001
"""First calls that differ by less are not told apart: an eager one's phases are a few readings of the clock."""

MOST_STEPS = 10**15


def whole_steps(steps: float) -> int:
    """The first whole step at which it is so, at least 1; at most `MOST_STEPS`, which nobody makes."""
    return min(MOST_STEPS, max(1, math.ceil(steps - 1e-9)))


def _seconds(seconds: float) -> str:
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.3g} s" if seconds < 1000 else f"{seconds:.0f} s"  # noqa: PLR2004


def _rounded(steps: float) -> int:
    """Three digits of a number of steps: no more are known."""
    whole = whole_steps(steps)
    digits = max(0, len(str(whole)) - 3)
    return round(whole, -digits)


def _steps(steps: float, unit: str) -> str:
    return figures.count(_rounded(steps), unit)


def _range(found: PaybackEstimate) -> str:
    if found.lower is None or found.upper is None:
        return " or later" if found.upper is None else ""
    low, high = _rounded(found.lower), _rounded(found.upper)
    return "" if low == high else f" ({low:,} to {high:,})"
