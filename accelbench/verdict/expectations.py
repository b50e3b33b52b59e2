"""Expectations: assertions on a result, met only where the interval's own end supports them."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from decimal import Decimal
from typing import Literal

from accelbench.api.result import Comparison, Executable, PaysBack, PhaseTime, Result, VariantResult
from accelbench.api.run import Expectation
from accelbench.document import DECIMAL_PATTERN
from accelbench.verdict.shown import step_seconds, with_times

Outcome = Literal["met", "not-met", "undecided"]
COMPARED = ("speedup", "paysBackSteps")
"""Metrics of a variant against the baseline; the others are of a variant alone."""
OVER_BASELINE = frozenset({"compileRatio", "peakMemoryRatio"})
"""Metrics that need the baseline's own number."""
DISTURBANCES = frozenset({"throttled", "shared-device"})
COMPILED = ("kernelsPerCall", "programSize", "aliasedBytes", "temporaryBytes")
"""Metrics of what was compiled for a call."""
BESIDE: Mapping[str, frozenset[str]] = {
    "parity": DISTURBANCES | {"parity"},
    "productsPerCall": DISTURBANCES | {"work-present"},
    **dict.fromkeys(COMPILED, DISTURBANCES),
}
"""Checks that a bound on a metric does not depend on: it is what the first asks, and no time."""


@dataclass(frozen=True)
class ExpectationOutcome:
    """What became of one expectation in one case; `sentence` says it with the numbers."""

    expectation: Expectation
    outcome: Outcome
    sentence: str
    sound: bool = False
    """A measurement that can be believed decided, and not the want of one."""


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


def evaluate(expectations: Iterable[Expectation], result: Result) -> tuple[ExpectationOutcome, ...]:
    """Each expectation held against the result, in order.

    What a comparison finds (the speedup, the steps until compiling pays back) meets a bound when its whole interval
    does, contradicts it when none of the interval does, and leaves it undecided in between. Times by themselves, and
    what is made of them, lie between the ends of what launches took, and all of that has to meet the bound likewise.
    An observation has to be what is expected in every launch; in some of them only, it leaves the expectation
    undecided. A variant that failed, or whose comparison is invalid, meets nothing.
    """
    known = with_times(result)
    return tuple(_evaluate(expectation, known) for expectation in expectations)


def _evaluate(expectation: Expectation, result: Result) -> ExpectationOutcome:
    variant = next((each for each in result.variants if each.name == expectation.variant), None)
    if variant is None:
        return ExpectationOutcome(expectation, "not-met", f"{_subject(expectation)}: this case has no such variant.")
    if variant.failure is not None:
        why = f"it failed in round {variant.failure.round} ({variant.failure.reason})"
        return ExpectationOutcome(expectation, "not-met", f"{_subject(expectation)}: {why}.")
    if expectation.metric in COMPARED:
        return _evaluate_comparison(expectation, result)
    beside = BESIDE.get(expectation.metric or "", frozenset())
    measured = {variant.name} | ({result.case.baseline} if expectation.metric in OVER_BASELINE else set())
    failed = [check for name in sorted(measured) for check in result.certificate.failed(name)]
    if broken := [check for check in failed if check.name not in beside]:
        names = ", ".join(dict.fromkeys(check.name for check in broken))
        noisy = result.noisy and {check.name for check in broken} <= DISTURBANCES
        why = f"measured beside other load ({names})" if noisy else f"its measurement is invalid ({names})"
        return ExpectationOutcome(expectation, "undecided" if noisy else "not-met", f"{_subject(expectation)}: {why}.")
    if expectation.observation:
        return _evaluate_observation(expectation, result)
    return _evaluate_number(expectation, variant, result)


def _too_few(expectation: Expectation, result: Result) -> ExpectationOutcome | None:
    """A time limit may have left fewer rounds than anything may rest on."""
    least = result.case.measurement.rounds_min
    if result.rounds >= least:
        return None
    why = f"{result.rounds} of at least {least} rounds were measured"
    return ExpectationOutcome(expectation, "undecided", f"{_subject(expectation)}: {why}.")


def _evaluate_number(expectation: Expectation, variant: VariantResult, result: Result) -> ExpectationOutcome:
    baseline = next((each for each in result.variants if each.name == result.case.baseline), None)
    if expectation.metric in OVER_BASELINE and baseline and baseline.failure:
        why = f"the baseline failed in round {baseline.failure.round} ({baseline.failure.reason})"
        return ExpectationOutcome(expectation, "not-met", f"{_subject(expectation)}: {why}.")
    if expectation.metric != "parity" and (too_few := _too_few(expectation, result)):
        return too_few
    found = _number(expectation, variant, baseline, result.rounds)
    if found is None:
        return ExpectationOutcome(expectation, "undecided", f"{_subject(expectation)}: not measured.")
    return _held(expectation, found.lower, found.upper, found.words)


def _evaluate_comparison(expectation: Expectation, result: Result) -> ExpectationOutcome:
    comparison = next((each for each in result.comparisons if each.variant == expectation.variant), None)
    if comparison is None:
        why = (
            f"it is the baseline, and has no {expectation.metric}"
            if expectation.variant == result.case.baseline
            else "not compared"
        )
        return ExpectationOutcome(expectation, "not-met", f"{_subject(expectation)}: {why}.")
    if comparison.invalid:
        why = f"the comparison is invalid ({', '.join(comparison.invalid)})"
        return ExpectationOutcome(expectation, "not-met", f"{_subject(expectation)}: {why}.")
    interval = _interval(comparison)
    if interval is None or comparison.verdict is None:
        failed = any(each.failure for each in result.variants if each.name == comparison.baseline)
        outcome: Outcome = "not-met" if failed else "undecided"
        return ExpectationOutcome(expectation, outcome, f"{_subject(expectation)}: {comparison.sentence}")
    if too_few := _too_few(expectation, result):
        return too_few
    if expectation.metric == "paysBackSteps":
        return _evaluate_payback(expectation, comparison.pays_back)
    reading = f"{comparison.speedup} ({comparison.lower} to {comparison.upper})"
    return _held(expectation, *interval, f"{reading}, {_time_saved(float(comparison.speedup or 1))}")


def _time_saved(speedup: float) -> str:
    """What a ratio of times is as a share of time: 1.44 times as fast is 30.6 % less time, and not 44 %."""
    share = 1 / speedup - 1
    return f"{abs(share):.1%} {'less' if share < 0 else 'more'} time".replace("%", " %")


def _evaluate_payback(expectation: Expectation, found: PaysBack | None) -> ExpectationOutcome:
    if found is None:
        return ExpectationOutcome(expectation, "undecided", f"{_subject(expectation)}: not known.")
    lower, upper = _steps(found)
    if found.answer == "until" and found.upper is not None:
        reading = f"it is ahead until {found.steps} steps, then behind for good"
        return ExpectationOutcome(expectation, "not-met", f"{_subject(expectation)}: not-met, {reading}.", sound=True)
    estimate = f"after {found.steps:,} steps" if found.answer == "after" and found.steps else found.answer
    possible = "" if lower == upper else f" ({lower:,.0f} {'or more' if upper == math.inf else f'to {upper:,.0f}'})"
    return _held(expectation, lower, upper, estimate + possible)


def _steps(found: PaysBack) -> tuple[float, float]:
    """The fewest and the most steps until a variant is ahead: 1 at once, infinite never.

    `PaysBack` gives the steps at which costs may be equal; whether the variant is ahead before or after is its answer.
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


def _number(  # noqa: PLR0911 - one line for each metric
    expectation: Expectation, variant: VariantResult, baseline: VariantResult | None, rounds: int
) -> Reading | None:
    """What was measured of the variant, some of it over the baseline's, and how to say it; None: it was not."""
    match expectation.metric:
        case "seconds":
            return _seconds(_steady(variant))
        case "compileSeconds":
            return _seconds(_phase(variant.phases, "compile"))
        case "warmCompileSeconds":
            return _seconds(_phase(variant.warm_phases, "compile"))
        case "compileRatio":
            return _compile_ratio(_compiling(variant), _compiling(baseline))
        case "firstCallRatio":
            return _first_call_ratio(variant)
        case "peakMemoryRatio":
            return _memory_ratio(variant.peak_memory_bytes, baseline.peak_memory_bytes if baseline else None)
        case "parity":
            ratio = variant.parity
            return None if ratio is None else _exactly(float(ratio), f"{ratio} of the tolerance")
        case "launchSpread":
            return _launch_spread(variant, rounds)
        case "productsPerCall":
            return _count(variant.products_per_call)
        case compiled:
            told = (variant.executable or Executable()).model_dump(by_alias=True)
            return _count(told[compiled or ""])


def _count(found: int | None) -> Reading | None:
    return None if found is None else _exactly(found, f"{found:,}")


def _exactly(value: float, words: str) -> Reading:
    return Reading(value, value, words)


def _seconds(found: Launches | None) -> Reading | None:
    if found is None:
        return None
    between = _between(found)
    return Reading(found.least, found.most, f"{found.typical:g} s" + (f" ({between})" if between else ""))


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


def _compiling(variant: VariantResult | None) -> Launches | None:
    """None where nothing was compiled: an eager variant's phase is there, and has no parts."""
    return _phase((phase for phase in variant.phases if phase.parts), "compile") if variant else None


def _compile_ratio(variant: Launches | None, baseline: Launches | None) -> Reading | None:
    if variant is None or baseline is None or not baseline.least:
        return None
    return _ratio(variant, baseline, f"{variant.typical:,.4g} over {baseline.typical:,.4g} s")


def _first_call_ratio(variant: VariantResult) -> Reading | None:
    compiling, first = (_phase(variant.phases, name) for name in ("compile", "first-step"))
    steady = _steady(variant)
    if compiling is None or first is None or steady is None or variant.units_per_call is None:
        return None
    later = Launches(*(variant.units_per_call * seconds for seconds in astuple(steady)))
    call = Launches(*(map(sum, zip(astuple(compiling), astuple(first), strict=True))))
    return _ratio(call, later, f"{call.typical:.4g} s, then {later.typical:.4g} s")


def _ratio(value: Launches, over: Launches, words: str) -> Reading:
    """Between the least over the most and the most over the least: no launch is paired with another here."""
    ratio = Launches(value.typical / over.typical, value.least / over.most, value.most / over.least)
    between = "; ".join(filter(None, (_between(ratio), words)))
    return Reading(ratio.least, ratio.most, f"{ratio.typical:.4g} ({between})")


def _between(found: Launches) -> str:
    return "" if found.least == found.most else f"{found.least:.4g} to {found.most:.4g}"


def _memory_ratio(value: int | None, baseline: int | None) -> Reading | None:
    if value is None or not baseline:
        return None
    return _exactly(value / baseline, f"{value / baseline:.4g} ({value:,.4g} over {baseline:,.4g} bytes)")


def _launch_spread(variant: VariantResult, rounds: int) -> Reading | None:
    found = variant.seconds
    if found is None:
        return None
    spread = (float(found.p95_seconds) - float(found.p5_seconds)) / float(found.median_seconds)
    return _exactly(spread, f"{spread:.3g} over {rounds} launches")


def _evaluate_observation(expectation: Expectation, result: Result) -> ExpectationOutcome:
    of_variant = next((each for each in result.observations if each.variant == expectation.variant), None)
    found = of_variant.named(expectation.subject) if of_variant else None
    if found is None:
        return ExpectationOutcome(expectation, "undecided", f"{_subject(expectation)}: not observed.")
    if expectation.equals is None and found.type != "number":
        why = f"it is no number, {found.text}"
        return ExpectationOutcome(expectation, "not-met", f"{_subject(expectation)}: {why}.", sound=True)
    if expectation.equals is not None:
        equal = [_equal(each.value, expectation.equals) for each in found.values]
        outcome: Outcome = "met" if all(each is True for each in equal) else "not-met"
        if outcome == "not-met" and any(each is not False for each in equal):
            outcome = "undecided"
        return ExpectationOutcome(
            expectation, outcome, f"{_subject(expectation)}: {outcome}, {found.text}.", sound=True
        )
    numbers = [float(each.value) for each in found.values]
    return _held(expectation, min(numbers), max(numbers), found.text)


def _equal(observed: str, expected: str) -> bool | None:
    """None where what was observed had to be cut, and begins as expected."""
    if observed.endswith("…") and expected.startswith(observed[:-1]):
        return None
    if re.fullmatch(DECIMAL_PATTERN, observed) and re.fullmatch(DECIMAL_PATTERN, expected):
        return Decimal(observed) == Decimal(expected)
    return observed == expected


def _held(expectation: Expectation, lower: float, upper: float, reading: str) -> ExpectationOutcome:
    outcome = held(lower, upper, expectation.at_least, expectation.at_most)
    return ExpectationOutcome(expectation, outcome, f"{_subject(expectation)}: {outcome}, {reading}.", sound=True)


def held(lower: float, upper: float, at_least: str | None, at_most: str | None) -> Outcome:
    """`lower` to `upper` against both bounds: met by all of it, by none, or by a part."""
    floor = float(at_least) if at_least is not None else float("-inf")
    ceiling = float(at_most) if at_most is not None else float("inf")
    if lower >= floor and upper <= ceiling:
        return "met"
    return "not-met" if upper < floor or lower > ceiling else "undecided"


def _interval(comparison: Comparison) -> tuple[float, float] | None:
    if comparison.lower is None or comparison.upper is None:
        return None
    return float(comparison.lower), float(comparison.upper)


def _subject(expectation: Expectation) -> str:
    bounds = within(expectation.at_least, expectation.at_most, expectation.equals)
    return f"{expectation.subject} of {expectation.variant} {bounds}".rstrip()


def within(at_least: str | None, at_most: str | None, equals: str | None = None) -> str:
    """The bounds in words: `at least 2 and at most 3`."""
    bounds = {"at least": at_least, "at most": at_most, "equal to": equals}
    return " and ".join(f"{words} {bound}" for words, bound in bounds.items() if bound is not None)
