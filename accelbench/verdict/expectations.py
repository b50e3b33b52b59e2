"""Check expectations: assertions on a result that hold only if the whole interval supports them."""

import math
import re
from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from decimal import Decimal

from accelbench import figures
from accelbench.api.number import Number
from accelbench.api.number_registry import NUMBERS
from accelbench.api.result import Comparison, Outcome, Payback, Result, VariantResult
from accelbench.api.run import Expectation
from accelbench.document import DECIMAL_PATTERN
from accelbench.validity.quarantine import disturbance_names
from accelbench.verdict.readings import read, steps


@dataclass(frozen=True)
class ExpectationOutcome:
    """Hold the outcome of one expectation in one case, with a sentence that gives the numbers."""

    expectation: Expectation
    outcome: Outcome
    sentence: str
    sound: bool = False
    """True if a valid measurement decided the outcome, rather than a missing one."""


def evaluate(expectations: Iterable[Expectation], result: Result) -> tuple[ExpectationOutcome, ...]:
    """Evaluate each expectation against the result, in order.

    A comparison (speedup, steps until compiling pays back) meets a bound if its whole interval does, fails it if none
    of the interval does, and is undecided in between. For times, and numbers derived from them, the interval is the
    range of the launches. An observation must be as expected in every launch; if only some launches agree, the
    expectation is undecided. A variant that failed, or whose comparison is invalid, meets no expectation.
    """
    targets = {None, result.case.accelerator.target}
    return tuple(_evaluate(expectation, result) for expectation in expectations if expectation.target in targets)


def _evaluate(expectation: Expectation, result: Result) -> ExpectationOutcome:
    """Evaluate one expectation: a comparison, another number, or an observation.

    Not met if the variant is missing, failed, or fails a check that affects the number; undecided if only other load
    failed the checks, in a noisy result.
    """
    variant = next((variant for variant in result.variants if variant.name == expectation.variant), None)
    if variant is None:
        return ExpectationOutcome(expectation, "not-met", f"{_subject(expectation)}: this case has no such variant.")
    if variant.failure is not None:
        why = f"it failed in round {variant.failure.round} ({variant.failure.reason})"
        return ExpectationOutcome(expectation, "not-met", f"{_subject(expectation)}: {why}.")
    number = NUMBERS[expectation.metric] if expectation.metric else None
    if number and number.compared:
        return _evaluate_comparison(expectation, result)
    measured = {variant.name} | ({result.case.baseline} if number and number.over_baseline else set())
    failed = [check for name in sorted(measured) for check in result.certificate.failed(name)]
    if broken := [check for check in failed if check.name not in _ignorable_checks(number)]:
        names = ", ".join(dict.fromkeys(check.name for check in broken))
        noisy = result.noisy and {check.name for check in broken} <= disturbance_names()
        why = f"measured next to other load ({names})" if noisy else f"its measurement is invalid ({names})"
        return ExpectationOutcome(expectation, "undecided" if noisy else "not-met", f"{_subject(expectation)}: {why}.")
    return (
        _evaluate_number(expectation, number, variant, result) if number else _evaluate_observation(expectation, result)
    )


def _ignorable_checks(number: Number | None) -> AbstractSet[str]:
    """Return the names of checks that do not affect the number; none for observations and what load can change."""
    if number is None or not number.undisturbed:
        return frozenset()
    return disturbance_names() | {number.checked_by}


def _too_few(expectation: Expectation, result: Result) -> ExpectationOutcome | None:
    """Return an undecided outcome if fewer rounds than the minimum were measured, else None."""
    least = result.case.measurement.rounds_min
    if result.rounds >= least:
        return None
    why = f"{result.rounds} of at least {least} rounds were measured"
    return ExpectationOutcome(expectation, "undecided", f"{_subject(expectation)}: {why}.")


def _evaluate_number(
    expectation: Expectation, number: Number, variant: VariantResult, result: Result
) -> ExpectationOutcome:
    """Evaluate a number that is not a comparison's, on the range of its launches.

    Undecided if it was not measured, or if it depends on times and there are too few rounds.
    """
    baseline = next((variant for variant in result.variants if variant.name == result.case.baseline), None)
    if number.over_baseline and baseline and baseline.failure:
        why = f"the baseline failed in round {baseline.failure.round} ({baseline.failure.reason})"
        return ExpectationOutcome(expectation, "not-met", f"{_subject(expectation)}: {why}.")
    if not number.undisturbed and (too_few := _too_few(expectation, result)):
        return too_few
    reading = read(number.name, result, variant)
    if reading is None:
        return ExpectationOutcome(expectation, "undecided", f"{_subject(expectation)}: not measured.")
    return _evaluate_range(expectation, reading.lower, reading.upper, reading.words)


def _evaluate_comparison(expectation: Expectation, result: Result) -> ExpectationOutcome:
    """Evaluate the speedup, or the steps until compiling pays back.

    Not met if the variant is the baseline, was not compared, its comparison is invalid, or the baseline failed.
    Undecided without a verdict, or with fewer rounds than the minimum.
    """
    comparison = next((compared for compared in result.comparisons if compared.variant == expectation.variant), None)
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
        failed = any(variant.failure for variant in result.variants if variant.name == comparison.baseline)
        outcome: Outcome = "not-met" if failed else "undecided"
        return ExpectationOutcome(expectation, outcome, f"{_subject(expectation)}: {comparison.sentence}")
    if too_few := _too_few(expectation, result):
        return too_few
    if expectation.metric == "paysBackSteps":
        return _evaluate_payback(expectation, comparison.pays_back, result.unit)
    speedup, lower, upper = (figures.prose(float(ratio or 1)) for ratio in (comparison.speedup, *interval))
    reading = f"{speedup} ({lower} to {upper}), {_time_saved(float(comparison.speedup or 1))}"
    return _evaluate_range(expectation, *interval, reading)


def _time_saved(speedup: float) -> str:
    """Express a speedup as time: `30.6 % less time` for 1.44, `2 times as long` for 0.5."""
    share = 1 / speedup - 1
    if share >= 1:
        return f"{figures.prose(1 / speedup)} times as long"
    return f"{figures.prose(100 * abs(share))} % {'less' if share < 0 else 'more'} time"


def _evaluate_payback(expectation: Expectation, payback: Payback | None, unit: str) -> ExpectationOutcome:
    """Evaluate the steps after which a variant is ahead; not met if it certainly falls behind later."""
    if payback is None:
        return ExpectationOutcome(expectation, "undecided", f"{_subject(expectation)}: not known.")
    lower, upper = steps(payback)
    if payback.answer == "until" and payback.upper is not None:
        reading = f"it is ahead until {figures.count(payback.steps or 0, unit)}, then behind for good"
        return ExpectationOutcome(expectation, "not-met", f"{_subject(expectation)}: not-met, {reading}.", sound=True)
    known = payback.answer == "after" and payback.steps
    estimate = f"after {figures.count(known, unit)}" if known else payback.answer
    most = "or more" if upper == math.inf else f"to {figures.count(round(upper))}"
    possible = "" if lower == upper else f" ({figures.count(round(lower))} {most})"
    return _evaluate_range(expectation, lower, upper, estimate + possible)


def _evaluate_observation(expectation: Expectation, result: Result) -> ExpectationOutcome:
    """Evaluate an observation's value, or the range of its values over launches."""
    of_variant = next((observed for observed in result.observations if observed.variant == expectation.variant), None)
    observation = of_variant.named(expectation.subject) if of_variant else None
    if observation is None:
        return ExpectationOutcome(expectation, "undecided", f"{_subject(expectation)}: not observed.")
    if expectation.equals is None and observation.type != "number":
        why = f"it is not a number: {observation.text}"
        return ExpectationOutcome(expectation, "not-met", f"{_subject(expectation)}: {why}.", sound=True)
    if expectation.equals is not None:
        equal = {_equal(value.value, expectation.equals) for value in observation.values}
        outcome: Outcome = "met" if equal == {True} else "not-met" if equal == {False} else "undecided"
        return ExpectationOutcome(
            expectation, outcome, f"{_subject(expectation)}: {outcome}, {observation.text}.", sound=True
        )
    numbers = [float(value.value) for value in observation.values]
    return _evaluate_range(expectation, min(numbers), max(numbers), observation.text)


def _equal(observed: str, expected: str) -> bool | None:
    """Compare two texts or numbers; None if the observed text was truncated and starts as expected."""
    if observed.endswith("…") and expected.startswith(observed[:-1]):
        return None
    if re.fullmatch(DECIMAL_PATTERN, observed) and re.fullmatch(DECIMAL_PATTERN, expected):
        return Decimal(observed) == Decimal(expected)
    return observed == expected


def _evaluate_range(expectation: Expectation, lower: float, upper: float, reading: str) -> ExpectationOutcome:
    """Evaluate the bounds on a range that a valid measurement gave."""
    outcome = compare_with_bounds(lower, upper, expectation.at_least, expectation.at_most)
    return ExpectationOutcome(expectation, outcome, f"{_subject(expectation)}: {outcome}, {reading}.", sound=True)


def compare_with_bounds(lower: float, upper: float, at_least: str | None, at_most: str | None) -> Outcome:
    """Return `met` if all of the interval is within the bounds, `not-met` if none is, else `undecided`."""
    floor = float(at_least) if at_least is not None else float("-inf")
    ceiling = float(at_most) if at_most is not None else float("inf")
    if lower >= floor and upper <= ceiling:
        return "met"
    return "not-met" if upper < floor or lower > ceiling else "undecided"


def _interval(comparison: Comparison) -> tuple[float, float] | None:
    """Return the ends of the speedup's interval; None without one."""
    if comparison.lower is None or comparison.upper is None:
        return None
    return float(comparison.lower), float(comparison.upper)


def _subject(expectation: Expectation) -> str:
    """Describe what is expected: `compileSeconds of jax/jit on h100x8 at most 3.00 s`."""
    number = NUMBERS[expectation.metric] if expectation.metric else None
    as_reading = _seconds if number and number.unit == "s" else None
    bounds = describe_bounds(expectation.at_least, expectation.at_most, expectation.equals, as_reading)
    where = f" on {expectation.target}" if expectation.target else ""
    return f"{expectation.subject} of {expectation.variant}{where} {bounds}".rstrip()


def _seconds(bound: str) -> str:
    """Format a bound as times are shown, unless rounding would change it."""
    text = figures.seconds(float(bound), 3)
    return text if math.isclose(figures.read(text), float(bound), rel_tol=1e-9) else f"{bound} s"


def describe_bounds(
    at_least: str | None, at_most: str | None, equals: str | None = None, shown: Callable[[str], str] | None = None
) -> str:
    """Describe the bounds, as `at least 2 and at most 3`; `shown` formats a bound."""
    bounds = {"at least": at_least, "at most": at_most, "equal to": equals}
    return " and ".join(
        f"{words} {shown(bound) if shown else bound}" for words, bound in bounds.items() if bound is not None
    )
