"""Read the numbers that expectations test from a result, each with the range of its launches."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from accelbench import figures
from accelbench.api.number_registry import NUMBERS
from accelbench.api.numbers import MEASURED
from accelbench.api.result import Payback, PhaseTime, Result, VariantResult
from accelbench.verdict.redaction import step_seconds


@dataclass(frozen=True)
class LaunchRange:
    """Hold a typical value (the variant's time, or a median over launches) and the range over launches."""

    typical: float
    minimum: float
    maximum: float

    def plus(self, other: "LaunchRange") -> "LaunchRange":
        """Return the range of the sum of two times: one with the range `self`, one with the range `other`."""
        return LaunchRange(self.typical + other.typical, self.minimum + other.minimum, self.maximum + other.maximum)

    def times(self, factor: float) -> "LaunchRange":
        """Return the range of `factor` times the time."""
        return LaunchRange(factor * self.typical, factor * self.minimum, factor * self.maximum)


@dataclass(frozen=True)
class Reading:
    """Hold the range of a number over launches, and a text that describes the number."""

    lower: float
    upper: float
    text: str


def read(name: str, result: Result, variant: VariantResult) -> Reading | None:
    """Return the variant's number `name`, with its range over launches if it has one; None if it was not measured."""
    if name in READERS:
        return READERS[name](result, variant)
    field = next(field for field, number in MEASURED.items() if number.name == name)
    value = variant.numbers.value(field)
    unit = NUMBERS[name].unit
    if value is None:
        return None
    number_text = f"{value:,}" if isinstance(value, int) else figures.prose(value)
    return _without_range(value, f"{number_text} {unit}".rstrip())


def _without_range(value: float, text: str) -> Reading:
    """Return the reading of a number that has a single value for all launches."""
    return Reading(value, value, text)


def _read_seconds(seconds: LaunchRange | None) -> Reading | None:
    """Return a time as a reading, with a text such as `117 ms (115 ms to 121 ms)`; None if there is no time."""
    if seconds is None:
        return None
    text = figures.seconds(seconds.typical)
    if seconds.minimum != seconds.maximum:
        text += f" ({figures.seconds(seconds.minimum)} to {figures.seconds(seconds.maximum)})"
    return Reading(seconds.minimum, seconds.maximum, text)


def _steady_seconds(variant: VariantResult) -> LaunchRange | None:
    """Return the seconds per unit: the geometric mean over launches, with the 5th to 95th percentile as the range.

    Returns None without times.
    """
    quantiles, typical = variant.seconds, step_seconds(variant)
    if quantiles is None or typical is None:
        return None
    return LaunchRange(typical, float(quantiles.p5_seconds), float(quantiles.p95_seconds))


def _phase_seconds(phases: Iterable[PhaseTime], name: str) -> LaunchRange | None:
    """Return the median, minimum and maximum seconds of the phase `name`; None if no launch reached the phase."""
    phase = next((phase for phase in phases if phase.phase == name), None)
    if phase is None:
        return None
    return LaunchRange(float(phase.median_seconds), float(phase.min_seconds), float(phase.max_seconds))


def _baseline(result: Result) -> VariantResult | None:
    """Return the baseline's result; None if the result has no such variant."""
    return next((variant for variant in result.variants if variant.name == result.case.baseline), None)


def _compile_seconds(variant: VariantResult | None) -> LaunchRange | None:
    """Return the seconds of the compile phase; None if nothing was compiled."""
    if variant is None:
        return None
    # The compile phase of an eager variant compiles nothing, and so has no parts.
    return _phase_seconds((phase for phase in variant.phases if phase.parts), "compile")


def _compile_ratio(result: Result, variant: VariantResult) -> Reading | None:
    """Return the variant's compile time divided by the baseline's; None if either of them compiles nothing."""
    seconds, baseline_seconds = _compile_seconds(variant), _compile_seconds(_baseline(result))
    if seconds is None or baseline_seconds is None or not baseline_seconds.minimum:  # the minimum is a divisor
        return None
    times_text = f"{figures.seconds(seconds.typical)} over {figures.seconds(baseline_seconds.typical)}"
    return _read_ratio(seconds, baseline_seconds, times_text)


def _first_call_ratio(_: Result, variant: VariantResult) -> Reading | None:
    """Return the time of the variant's first call divided by that of a later call; None if either is unknown."""
    compile_seconds = _phase_seconds(variant.phases, "compile")
    first_step_seconds = _phase_seconds(variant.phases, "first-step")
    steady_seconds = _steady_seconds(variant)
    units = variant.numbers.units_per_call
    if compile_seconds is None or first_step_seconds is None or steady_seconds is None or units is None:
        return None
    first_call = compile_seconds.plus(first_step_seconds)
    later_call = steady_seconds.times(units)
    times_text = f"{figures.seconds(first_call.typical)}, then {figures.seconds(later_call.typical)}"
    return _read_ratio(first_call, later_call, times_text)


def _read_ratio(dividend: LaunchRange, divisor: LaunchRange, times_text: str) -> Reading:
    """Return `dividend / divisor` with its range; `times_text` describes the two times.

    The two ranges are over different launches, so that of the ratio is the widest possible one: from the smallest
    dividend over the largest divisor to the largest over the smallest.
    """
    ratio = LaunchRange(
        dividend.typical / divisor.typical, dividend.minimum / divisor.maximum, dividend.maximum / divisor.minimum
    )
    details = "; ".join(filter(None, (_format_range(ratio), times_text)))
    return Reading(ratio.minimum, ratio.maximum, f"{figures.prose(ratio.typical)} ({details})")


def _format_range(ratio: LaunchRange) -> str:
    """Format the range, as `1.99 to 2.09`; empty if its ends are equal."""
    if ratio.minimum == ratio.maximum:
        return ""
    return f"{figures.prose(ratio.minimum)} to {figures.prose(ratio.maximum)}"


def _memory_ratio(result: Result, variant: VariantResult) -> Reading | None:
    """Return the variant's peak memory divided by the baseline's; None if either is unknown."""
    baseline = _baseline(result)
    peak = variant.numbers.peak_memory_bytes
    baseline_peak = baseline.numbers.peak_memory_bytes if baseline else None
    if peak is None or not baseline_peak:
        return None
    peaks = f"{figures.quantity(peak, 'B')} over {figures.quantity(baseline_peak, 'B')}"
    return _without_range(peak / baseline_peak, f"{figures.prose(peak / baseline_peak)} ({peaks})")


def _launch_spread(result: Result, variant: VariantResult) -> Reading | None:
    """Return the relative spread of launches, (95th - 5th percentile) / median; None without times."""
    quantiles = variant.seconds
    if quantiles is None:
        return None
    spread = (float(quantiles.p95_seconds) - float(quantiles.p5_seconds)) / float(quantiles.median_seconds)
    # A variant has one launch in each round.
    return _without_range(spread, f"{figures.prose(spread)} over {result.rounds} launches")


READERS: Mapping[str, Callable[[Result, VariantResult], Reading | None]] = {
    "seconds": lambda _, variant: _read_seconds(_steady_seconds(variant)),
    "compileSeconds": lambda _, variant: _read_seconds(_phase_seconds(variant.phases, "compile")),
    "warmCompileSeconds": lambda _, variant: _read_seconds(_phase_seconds(variant.warm_phases, "compile")),
    "compileRatio": _compile_ratio,
    "firstCallRatio": _first_call_ratio,
    "peakMemoryRatio": _memory_ratio,
    "launchSpread": _launch_spread,
}
"""Readers of the numbers that are derived from other parts of a result, except those of a comparison."""


def possible_steps(payback: Payback) -> tuple[float, float]:
    """Return the minimum and the maximum number of steps after which the variant may be ahead of the baseline.

    Infinity means never. `payback.lower` and `payback.upper` are the ends of the confidence interval of the number of
    steps after which the total times are equal.
    """
    lower = payback.lower or 1
    upper = math.inf if payback.upper is None else payback.upper
    match payback.answer:
        case "at-once":
            # It is certainly ahead after one step if total times are equal only later, or never (None).
            certainly_ahead = payback.lower is None or payback.lower > 1
            return (1, 1) if certainly_ahead else (1, upper)
        case "never":
            # It may be ahead later only if the interval has no upper end: then its steps may be faster after all.
            may_pay_back = payback.lower is not None and payback.upper is None
            return (lower, math.inf) if may_pay_back else (math.inf, math.inf)
        case "until":
            return 1, math.inf  # it is ahead at first, and behind later
        case "after":
            return lower, upper
