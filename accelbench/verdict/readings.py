"""Read the numbers that expectations test from a result, each with the range of its launches."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, dataclass

from accelbench import figures
from accelbench.api.number_registry import NUMBERS
from accelbench.api.numbers import MEASURED
from accelbench.api.result import Payback, PhaseTime, Result, VariantResult
from accelbench.verdict.redaction import step_seconds


@dataclass(frozen=True)
class Launches:
    """Hold a typical value (the variant's time, or a median over launches) and the range of the launches."""

    typical: float
    minimum: float
    maximum: float


@dataclass(frozen=True)
class Reading:
    """Hold the range of a number over launches, and its description."""

    lower: float
    upper: float
    words: str


def read(name: str, result: Result, variant: VariantResult) -> Reading | None:
    """Read the named number of `variant`; None if it was not measured.

    Numbers of a comparison are not read here.
    """
    if name in READERS:
        return READERS[name](result, variant)
    field = next(field for field, number in MEASURED.items() if number.name == name)
    value = variant.numbers.value(field)
    unit = NUMBERS[name].unit
    if value is None:
        return None
    number = f"{value:,}" if isinstance(value, int) else figures.prose(value)
    return _without_range(value, f"{number} {unit}".rstrip())


def _without_range(value: float, words: str) -> Reading:
    """Return the reading of a number that launches do not measure separately."""
    return Reading(value, value, words)


def _seconds(time: Launches | None) -> Reading | None:
    """Return the reading of a time, as `117 ms (115 ms to 121 ms)`."""
    if time is None:
        return None
    bounds = f" ({figures.seconds(time.minimum)} to {figures.seconds(time.maximum)})"
    between = "" if time.minimum == time.maximum else bounds
    return Reading(time.minimum, time.maximum, f"{figures.seconds(time.typical)}{between}")


def _steady(variant: VariantResult) -> Launches | None:
    """Return seconds per unit, between the 5th and 95th percentile of launches."""
    seconds, time = variant.seconds, step_seconds(variant)
    if seconds is None or time is None:
        return None
    return Launches(time, float(seconds.p5_seconds), float(seconds.p95_seconds))


def _phase(phases: Iterable[PhaseTime], name: str) -> Launches | None:
    """Return a phase's seconds, with the minimum and maximum over launches; None if it was not measured."""
    phase = next((phase for phase in phases if phase.phase == name), None)
    if phase is None:
        return None
    return Launches(*map(float, (phase.median_seconds, phase.min_seconds, phase.max_seconds)))


def _baseline(result: Result) -> VariantResult | None:
    """Return the baseline's result, or None."""
    return next((variant for variant in result.variants if variant.name == result.case.baseline), None)


def _compiling(variant: VariantResult | None) -> Launches | None:
    """Return the compile phase; None if nothing was compiled: an eager variant's phase has no parts."""
    return _phase((phase for phase in variant.phases if phase.parts), "compile") if variant else None


def _compile_ratio(result: Result, variant: VariantResult) -> Reading | None:
    """Return the compile time over the baseline's; None if either compiled nothing."""
    own, baseline = _compiling(variant), _compiling(_baseline(result))
    if own is None or baseline is None or not baseline.minimum:
        return None
    return _ratio(own, baseline, f"{figures.seconds(own.typical)} over {figures.seconds(baseline.typical)}")


def _first_call_ratio(_: Result, variant: VariantResult) -> Reading | None:
    """Return the time of the first call, with compiling, over that of a later one."""
    compiling, first = (_phase(variant.phases, name) for name in ("compile", "first-step"))
    steady, units = _steady(variant), variant.numbers.units_per_call
    if compiling is None or first is None or steady is None or units is None:
        return None
    later = Launches(*(units * seconds for seconds in astuple(steady)))
    call = Launches(*(map(sum, zip(astuple(compiling), astuple(first), strict=True))))
    return _ratio(call, later, f"{figures.seconds(call.typical)}, then {figures.seconds(later.typical)}")


def _ratio(value: Launches, over: Launches, words: str) -> Reading:
    """Return the ratio with its widest range, as launches are not paired here."""
    ratio = Launches(value.typical / over.typical, value.minimum / over.maximum, value.maximum / over.minimum)
    between = "; ".join(filter(None, (_format_range(ratio), words)))
    return Reading(ratio.minimum, ratio.maximum, f"{figures.prose(ratio.typical)} ({between})")


def _format_range(ratio: Launches) -> str:
    """Format the range; empty if its ends are equal."""
    if ratio.minimum == ratio.maximum:
        return ""
    return f"{figures.prose(ratio.minimum)} to {figures.prose(ratio.maximum)}"


def _memory_ratio(result: Result, variant: VariantResult) -> Reading | None:
    """Return the peak memory over the baseline's; None if either is unknown."""
    baseline = _baseline(result)
    value, over = variant.numbers.peak_memory_bytes, baseline.numbers.peak_memory_bytes if baseline else None
    if value is None or not over:
        return None
    return _without_range(
        value / over,
        f"{figures.prose(value / over)} ({figures.quantity(value, 'B')} over {figures.quantity(over, 'B')})",
    )


def _launch_spread(result: Result, variant: VariantResult) -> Reading | None:
    """Return the distance from the 5th to the 95th percentile of launches, over their median."""
    seconds = variant.seconds
    if seconds is None:
        return None
    spread = (float(seconds.p95_seconds) - float(seconds.p5_seconds)) / float(seconds.median_seconds)
    return _without_range(spread, f"{figures.prose(spread)} over {result.rounds} launches")


READERS: Mapping[str, Callable[[Result, VariantResult], Reading | None]] = {
    "seconds": lambda _, variant: _seconds(_steady(variant)),
    "compileSeconds": lambda _, variant: _seconds(_phase(variant.phases, "compile")),
    "warmCompileSeconds": lambda _, variant: _seconds(_phase(variant.warm_phases, "compile")),
    "compileRatio": _compile_ratio,
    "firstCallRatio": _first_call_ratio,
    "peakMemoryRatio": _memory_ratio,
    "launchSpread": _launch_spread,
}
"""Readers of the numbers that are derived from other parts of a result, except those of a comparison."""


def steps(payback: Payback) -> tuple[float, float]:
    """Return the fewest and the most steps until a variant is ahead: 1 means at once, infinite means never.

    `Payback` has the interval in which total costs may be equal, and the side of it on which the variant is ahead.
    """
    lower, upper = payback.lower or 1, math.inf if payback.upper is None else payback.upper
    match payback.answer:
        case "at-once":
            # If costs are equal after the first step at the earliest, the variant is certainly ahead at first.
            return (1, 1) if payback.lower is None or payback.lower > 1 else (1, upper)
        case "never":
            # With a closed interval, costs may be equal only at the start, where the variant may be ahead.
            return (math.inf, math.inf) if payback.lower is None or payback.upper is not None else (lower, math.inf)
        case "until":
            return 1, math.inf
        case "after":
            return lower, upper
