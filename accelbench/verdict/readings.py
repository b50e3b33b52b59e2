"""What a result says of a number that an expectation asks for: the least and the most that launches leave possible."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, dataclass

from accelbench import figures
from accelbench.api.numbers import MEASURED, NUMBERS
from accelbench.api.result import Payback, PhaseTime, Result, VariantResult
from accelbench.verdict.redaction import step_seconds


@dataclass(frozen=True)
class Launches:
    """A number of a variant by itself: its time or the median over launches, and the ends between which they lie."""

    typical: float
    least: float
    most: float


@dataclass(frozen=True)
class Reading:
    """What launches leave possible, and how to say it."""

    lower: float
    upper: float
    words: str


def read(name: str, result: Result, variant: VariantResult) -> Reading | None:
    """The number of that name, of `variant`; None: it was not measured. Those of a comparison are not read here."""
    if name in READERS:
        return READERS[name](result, variant)
    field = next(field for field, number in MEASURED.items() if number.name == name)
    value = variant.numbers.value(field)
    unit = NUMBERS[name].unit
    if value is None:
        return None
    return _exactly(value, f"{value:,} {unit}".rstrip() if isinstance(value, int) else f"{figures.prose(value)} {unit}")


def _exactly(value: float, words: str) -> Reading:
    return Reading(value, value, words)


def _seconds(found: Launches | None) -> Reading | None:
    if found is None:
        return None
    between = "" if found.least == found.most else f" ({figures.seconds(found.least)} to {figures.seconds(found.most)})"
    return Reading(found.least, found.most, f"{figures.seconds(found.typical)}{between}")


def _steady(variant: VariantResult) -> Launches | None:
    """Seconds per unit; the ends are quantiles, as single launches may be left out of a result that is too large."""
    found, time = variant.seconds, step_seconds(variant)
    if found is None or time is None:
        return None
    return Launches(time, float(found.p5_seconds), float(found.p95_seconds))


def _phase(phases: Iterable[PhaseTime], name: str) -> Launches | None:
    found = next((phase for phase in phases if phase.phase == name), None)
    if found is None:
        return None
    return Launches(*map(float, (found.median_seconds, found.min_seconds, found.max_seconds)))


def _baseline(result: Result) -> VariantResult | None:
    return next((each for each in result.variants if each.name == result.case.baseline), None)


def _compiling(variant: VariantResult | None) -> Launches | None:
    """None where nothing was compiled: an eager variant's phase is there, and has no parts."""
    return _phase((phase for phase in variant.phases if phase.parts), "compile") if variant else None


def _compile_ratio(result: Result, variant: VariantResult) -> Reading | None:
    own, baseline = _compiling(variant), _compiling(_baseline(result))
    if own is None or baseline is None or not baseline.least:
        return None
    return _ratio(own, baseline, f"{figures.seconds(own.typical)} over {figures.seconds(baseline.typical)}")


def _first_call_ratio(_: Result, variant: VariantResult) -> Reading | None:
    compiling, first = (_phase(variant.phases, name) for name in ("compile", "first-step"))
    steady, units = _steady(variant), variant.numbers.units_per_call
    if compiling is None or first is None or steady is None or units is None:
        return None
    later = Launches(*(units * seconds for seconds in astuple(steady)))
    call = Launches(*(map(sum, zip(astuple(compiling), astuple(first), strict=True))))
    return _ratio(call, later, f"{figures.seconds(call.typical)}, then {figures.seconds(later.typical)}")


def _ratio(value: Launches, over: Launches, words: str) -> Reading:
    """Between the least over the most and the most over the least: no launch is paired with another here."""
    ratio = Launches(value.typical / over.typical, value.least / over.most, value.most / over.least)
    between = "; ".join(filter(None, (_between(ratio), words)))
    return Reading(ratio.least, ratio.most, f"{figures.prose(ratio.typical)} ({between})")


def _between(found: Launches) -> str:
    return "" if found.least == found.most else f"{figures.prose(found.least)} to {figures.prose(found.most)}"


def _memory_ratio(result: Result, variant: VariantResult) -> Reading | None:
    baseline = _baseline(result)
    value, over = variant.numbers.peak_memory_bytes, baseline.numbers.peak_memory_bytes if baseline else None
    if value is None or not over:
        return None
    return _exactly(
        value / over,
        f"{figures.prose(value / over)} ({figures.quantity(value, 'B')} over {figures.quantity(over, 'B')})",
    )


def _launch_spread(result: Result, variant: VariantResult) -> Reading | None:
    found = variant.seconds
    if found is None:
        return None
    spread = (float(found.p95_seconds) - float(found.p5_seconds)) / float(found.median_seconds)
    return _exactly(spread, f"{figures.prose(spread)} over {result.rounds} launches")


READERS: Mapping[str, Callable[[Result, VariantResult], Reading | None]] = {
    "seconds": lambda _, variant: _seconds(_steady(variant)),
    "compileSeconds": lambda _, variant: _seconds(_phase(variant.phases, "compile")),
    "warmCompileSeconds": lambda _, variant: _seconds(_phase(variant.warm_phases, "compile")),
    "compileRatio": _compile_ratio,
    "firstCallRatio": _first_call_ratio,
    "peakMemoryRatio": _memory_ratio,
    "launchSpread": _launch_spread,
}
"""Of the numbers that are read off the rest of a result, those that are no comparison's."""


def steps(found: Payback) -> tuple[float, float]:
    """The fewest and the most steps until a variant is ahead: 1 at once, infinite never.

    `Payback` gives the steps at which costs may be equal; whether the variant is ahead before or after is its answer.
    """
    lower, upper = found.lower or 1, math.inf if found.upper is None else found.upper
    match found.answer:
        case "at-once":
            # Equal no sooner than this: it begins ahead for certain.
            return (1, 1) if found.lower is None or found.lower > 1 else (1, upper)
        case "never":
            # Costs that are equal once and never again are the first step's, where the variant may begin ahead.
            return (math.inf, math.inf) if found.lower is None or found.upper is not None else (lower, math.inf)
        case "until":
            return 1, math.inf
        case "after":
            return lower, upper
