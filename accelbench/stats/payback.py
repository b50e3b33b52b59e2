"""Estimate after how many steps a variant's more expensive first call has paid for itself.

A variant that compiles costs more before its first step and less in each step. Let d be the difference of first-call
costs, variant minus baseline, and g the seconds saved per step, baseline minus variant; the variant is ahead after N
steps if d < N g. The first-call cost is the time of the phases `compile` and `first-step` minus one call at steady
speed, which does work that the N steps include. Importing, device initialisation and setup are left out: a program pays
for them whatever it compiles. The warm-up is left out because its calls do work and their number depends on the
measurement. The launch is cold; the phases of the warm probe show what a warm cache saves.

The interval is Fieller's ("Some problems in interval estimation", Journal of the Royal Statistical Society B, 1954): it
contains each N for which Student's t does not reject that the mean over rounds of d - N g is 0. It needs no ratio of
noisy numbers, and has no upper end if the step times do not differ significantly.
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
    """Hold the costs of one launch in seconds."""

    first_call: float
    """Cost beyond one call at steady speed; negative if the first call was faster than that."""
    step: float
    """Seconds per step in the steady state."""


@dataclass(frozen=True)
class PaybackEstimate:
    """Hold when a variant is ahead of its baseline in total time."""

    answer: Answer
    """`at-once`: from the first step; `after` a number of steps; `never`; `until` a number of steps, then behind."""
    steps: float | None
    """Estimated steps, for `after` and `until`."""
    lower: float | None
    """Lower end of the interval in steps; None if the interval is empty."""
    upper: float | None
    """Upper end; None if the step times do not differ significantly, so that there is none, or if `lower` is None."""
    extra_seconds: float
    """First-call cost of the variant minus the baseline's, as the mean over rounds."""


def estimate_payback(
    baseline: Sequence[LaunchCost], variant: Sequence[LaunchCost], alpha: float
) -> PaybackEstimate | None:
    """Estimate after how many steps, or until which step, a variant is ahead of its baseline in total time.

    Item i of `baseline` and of `variant` is from the same round. The interval misses the true number of steps with
    probability `alpha`. Returns None with too few rounds.
    """
    pairs = list(zip(baseline, variant, strict=True))
    extra_seconds = [variant_cost.first_call - baseline_cost.first_call for baseline_cost, variant_cost in pairs]
    saved_seconds = [baseline_cost.step - variant_cost.step for baseline_cost, variant_cost in pairs]
    if len(extra_seconds) < MINIMUM_PAIRS:
        return None
    mean_extra = math.fsum(extra_seconds) / len(extra_seconds)
    mean_saved = math.fsum(saved_seconds) / len(saved_seconds)
    # A variant's first call takes extra seconds, and each later step saves seconds; either number may be negative.
    answer: Answer
    steps = None
    if mean_extra > 0 and mean_saved > 0:  # a slow start, then faster steps
        answer, steps = "after", mean_extra / mean_saved
    elif mean_extra < 0 and mean_saved < 0:  # a quick start, then slower steps
        answer, steps = "until", mean_extra / mean_saved
    elif mean_extra < 0 or mean_saved > 0:  # quicker in one of the two, and slower in none
        answer = "at-once"
    else:
        answer = "never"
    lower, upper = _fieller_interval(extra_seconds, saved_seconds, alpha)
    return PaybackEstimate(answer=answer, steps=steps, lower=lower, upper=upper, extra_seconds=mean_extra)


def _fieller_interval(
    extra_seconds: Sequence[float], saved_seconds: Sequence[float], alpha: float
) -> tuple[float | None, float | None]:
    """Return both ends of Fieller's confidence interval of the number of steps after which a variant is ahead.

    The upper end is None if there is no largest number of steps; both are None if the interval is empty. Item i of each
    argument is from round i: the extra seconds of the first call, and the seconds that each later step saves.
    """
    # Scale by the largest values, because the square of a very small number would be 0. If all are 0, divide by 1.
    largest_extra = max(map(abs, extra_seconds)) or 1.0
    largest_saved = max(map(abs, saved_seconds)) or 1.0
    lower, upper = _scaled_interval(
        [value / largest_extra for value in extra_seconds], [value / largest_saved for value in saved_seconds], alpha
    )
    scale = largest_extra / largest_saved
    return None if lower is None else lower * scale, None if upper is None else upper * scale


def _scaled_interval(
    extra_seconds: Sequence[float], saved_seconds: Sequence[float], alpha: float
) -> tuple[float | None, float | None]:
    """Return both ends of Fieller's interval; the arguments are seconds that the caller has scaled to -1 ... 1."""
    count = len(extra_seconds)
    mean_extra = math.fsum(extra_seconds) / count
    mean_saved = math.fsum(saved_seconds) / count
    # The interval has each number of steps N that Student's t does not reject: (mean extra - N mean saved)² <= t² times
    # the variance of this mean. Sorted by powers of N, that is a N² - 2 b N + c <= 0. Each coefficient is a product of
    # two means, minus t² times their covariance, which is `factor` times a sum of products of deviations.
    factor = student_quantile(1 - alpha / 2, count - 1) ** 2 / (count - 1) / count
    a = mean_saved**2 - factor * math.fsum((value - mean_saved) ** 2 for value in saved_seconds)
    products = [(x - mean_extra) * (y - mean_saved) for x, y in zip(extra_seconds, saved_seconds, strict=True)]
    b = mean_saved * mean_extra - factor * math.fsum(products)
    c = mean_extra**2 - factor * math.fsum((value - mean_extra) ** 2 for value in extra_seconds)
    discriminant = b**2 - a * c
    if a > 0:
        if discriminant < 0:
            discriminant = 0.0  # a rounding error: with a > 0 the interval contains the estimate, so roots exist
        square_root = math.sqrt(discriminant)
        low, high = (b - square_root) / a, (b + square_root) / a
        return (max(0.0, low), high) if high >= 0 else (None, None)  # a number of steps is not negative
    # The step times do not differ significantly. The interval is all numbers except those between the roots.
    if c <= 0:
        return 0.0, None  # the inequality holds for N = 0, so the interval begins there
    if a == 0:  # the inequality is c <= 2 b N, with c > 0
        return (c / (2 * b), None) if b > 0 else (None, None)
    # a < 0 < c: one root is negative, so the interval begins at the larger root.
    larger_root = max((b - math.sqrt(discriminant)) / a, (b + math.sqrt(discriminant)) / a)
    return max(0.0, larger_root), None


def payback_sentence(payback: PaybackEstimate, variant: str, unit: str) -> str:
    """Describe the estimate in a sentence; empty if the first calls of variant and baseline take about as long.

    `variant` is the name of the variant, and `unit` the name of a unit of work, such as `step`.
    """
    if abs(payback.extra_seconds) < NEGLIGIBLE_SECONDS:
        return ""
    compared = "longer" if payback.extra_seconds > 0 else "less"
    first_call = f"The first call of {variant} takes {_format_seconds(abs(payback.extra_seconds))} {compared}"
    # `or 0` below is only for the type checker: where `lower` or `steps` is used, it is not None.
    if may_never_pay_back(payback.answer, payback.lower, payback.upper):
        return f"{first_call} and pays back after {_format_steps(payback.lower or 0, unit)} at the earliest, if ever."
    match payback.answer:
        case "never":
            return f"{first_call} and never pays back: later calls are slower too."
        case "at-once":
            return f"{first_call}: it is ahead from the first {unit}."
        case "until":
            return f"{first_call}: it is ahead until {_format_steps(payback.steps or 0, unit)}{_format_range(payback)}."
        case "after":
            return (
                f"{first_call} and pays back after {_format_steps(payback.steps or 0, unit)}{_format_range(payback)}."
            )


def may_never_pay_back(answer: Answer, lower: float | None, upper: float | None) -> bool:
    """Return True if a variant with a slower first call may pay back late or never: its interval has no upper end.

    The ends are in steps; both are None if the interval is empty.
    """
    return answer in {"after", "never"} and lower is not None and upper is None


NEGLIGIBLE_SECONDS = 0.001
"""Minimum difference of first calls that is reported: the phases of an eager one are a few clock readings."""

MAXIMUM_STEPS = 10**15
"""Maximum number of steps in a result: an estimate that divides by almost nothing is larger, and useless."""


def whole_steps(steps: float) -> int:
    """Round up to a whole step, at least 1 and at most `MAXIMUM_STEPS`."""
    # The subtraction removes rounding errors: 3.0000000001 is 3 steps.
    return min(MAXIMUM_STEPS, max(1, math.ceil(steps - 1e-9)))


def _format_seconds(seconds: float) -> str:
    """Format seconds with two or three significant digits."""
    if seconds < 10:  # noqa: PLR2004
        return f"{seconds:.2g} s"
    if seconds < 1000:  # noqa: PLR2004
        return f"{seconds:.3g} s"
    return f"{seconds:.0f} s"


def _round_steps(steps: float) -> int:
    """Round up to a whole step, then to three significant digits."""
    whole = whole_steps(steps)
    dropped_digits = max(0, len(str(whole)) - 3)
    return round(whole, -dropped_digits)


def _format_steps(steps: float, unit: str) -> str:
    """Format a number of steps, rounded to three digits: `1,240 steps`."""
    return figures.count(_round_steps(steps), unit)


def _format_range(payback: PaybackEstimate) -> str:
    """Format the interval of steps as text after the estimate: ` (1,180 to 1,310)`, or ` or later` without an end.

    Empty if both ends are equal.
    """
    if payback.upper is None:
        return " or later"
    if payback.lower is None:  # not reached: an interval with an upper end has a lower one
        return ""
    low, high = _round_steps(payback.lower), _round_steps(payback.upper)
    return "" if low == high else f" ({low:,} to {high:,})"
