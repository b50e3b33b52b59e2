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
from accelbench.validity.quarantine import disturbance_check_names, noise_check_names
from accelbench.verdict.readings import possible_steps, read


@dataclass(frozen=True)
class ExpectationOutcome:
    """Hold the outcome of one expectation in one case, with a sentence that gives the numbers."""

    expectation: Expectation
    outcome: Outcome
    sentence: str
    is_valid: bool = False
    """True if a valid measurement decided the outcome; False if the measurement is missing or invalid."""


def evaluate(expectations: Iterable[Expectation], result: Result) -> tuple[ExpectationOutcome, ...]:
    """Evaluate each expectation against the result; leave out those that name another target than the result's."""
    targets = {None, result.case.accelerator.target}  # None: the expectation names no target, and holds for all
    return tuple(_evaluate(expectation, result) for expectation in expectations if expectation.target in targets)


def _evaluate(expectation: Expectation, result: Result) -> ExpectationOutcome:
    """Decide whether the result meets an expectation on a variant.

    A variant that is missing, failed or has an invalid measurement does not meet it. If only accepted other load makes
    the measurement invalid, the outcome is undecided.
    """
    variant = next((variant for variant in result.variants if variant.name == expectation.variant), None)
    if variant is None:
        return ExpectationOutcome(expectation, "not-met", f"{describe(expectation)}: this case has no such variant.")
    if variant.failure is not None:
        why = f"it failed {variant.failure.when} ({variant.failure.reason})"
        return ExpectationOutcome(expectation, "not-met", f"{describe(expectation)}: {why}.")
    # None: the expectation is on an observation of the program, not on a number that accelbench measures.
    number = NUMBERS[expectation.metric] if expectation.metric else None
    # The speedup and `paysBackSteps` are numbers of a comparison, which names its own failed checks: read none here.
    if number and number.compared:
        return _evaluate_comparison(expectation, result)
    failed_checks = _checks_against_number(number, variant.name, result)
    if failed_checks:
        names = ", ".join(failed_checks)
        # If noise was accepted, other load leaves the expectation undecided. Any other failed check makes it not met.
        only_noise = result.noisy and noise_check_names().issuperset(failed_checks)
        outcome: Outcome = "undecided" if only_noise else "not-met"
        why = "measured next to other load" if only_noise else "its measurement is invalid"
        return ExpectationOutcome(expectation, outcome, f"{describe(expectation)}: {why} ({names}).")
    if number is None:
        return _evaluate_observation(expectation, result)
    return _evaluate_number(expectation, number, variant, result)


def _checks_against_number(number: Number | None, variant: str, result: Result) -> list[str]:
    """Return the names of the failed checks that make the variant's number invalid.

    `number` is None if an observation is tested.
    """
    concerned_variants = {variant}
    if number and number.over_baseline:  # the baseline's measurement is a part of the number
        concerned_variants.add(result.case.baseline)
    failed_checks: list[str] = []
    for name in sorted(concerned_variants):
        failed_checks += [check.name for check in result.certificate.failed_checks(name)]
    ignorable_checks = _ignorable_checks(number)
    return [name for name in dict.fromkeys(failed_checks) if name not in ignorable_checks]


def _ignorable_checks(number: Number | None) -> AbstractSet[str]:
    """Return the names of the checks whose failure leaves the number valid; none if `number` is None, an observation.

    If other load does not change the number (`undisturbed`), these are the checks that detect such load, and the check
    that tests the same number as the expectation. For any other number there are none.
    """
    if number is None or not number.undisturbed:
        return frozenset()
    return disturbance_check_names() | {number.checked_by}


def _undecided_if_too_few_rounds(expectation: Expectation, result: Result) -> ExpectationOutcome | None:
    """Return the outcome `undecided` if fewer rounds than the case's minimum were measured; else None."""
    minimum_rounds = result.case.measurement.rounds_min
    if result.rounds >= minimum_rounds:
        return None
    why = f"{result.rounds} of at least {minimum_rounds} rounds were measured"
    return ExpectationOutcome(expectation, "undecided", f"{describe(expectation)}: {why}.")


def _evaluate_number(
    expectation: Expectation, number: Number, variant: VariantResult, result: Result
) -> ExpectationOutcome:
    """Evaluate an expectation on a variant's number by the number's range over launches.

    A ratio to a baseline that failed is not met.
    """
    baseline = next((variant for variant in result.variants if variant.name == result.case.baseline), None)
    if number.over_baseline and baseline and baseline.failure:
        why = f"the baseline failed {baseline.failure.when} ({baseline.failure.reason})"
        return ExpectationOutcome(expectation, "not-met", f"{describe(expectation)}: {why}.")
    # Other load does not change an `undisturbed` number, so one round is enough for it.
    if not number.undisturbed and (too_few := _undecided_if_too_few_rounds(expectation, result)):
        return too_few
    reading = read(number.name, result, variant)
    if reading is None:
        return ExpectationOutcome(expectation, "undecided", f"{describe(expectation)}: not measured.")
    return _evaluate_range(expectation, reading.lower, reading.upper, reading.text)


def _evaluate_comparison(expectation: Expectation, result: Result) -> ExpectationOutcome:
    """Evaluate an expectation on the speedup, or on the number of steps until compiling pays back."""
    comparison = next((item for item in result.comparisons if item.variant == expectation.variant), None)
    if comparison is None:
        why = "not compared"
        if expectation.variant == result.case.baseline:
            why = f"it is the baseline, and has no {expectation.metric}"
        return ExpectationOutcome(expectation, "not-met", f"{describe(expectation)}: {why}.")
    if comparison.invalid:
        why = f"the comparison is invalid ({', '.join(comparison.invalid)})"
        return ExpectationOutcome(expectation, "not-met", f"{describe(expectation)}: {why}.")
    interval = _interval(comparison)
    if interval is None or comparison.verdict is None:
        # More rounds could decide the comparison, but not with a failed baseline, which is not launched again.
        baseline_failed = any(variant.failure for variant in result.variants if variant.name == comparison.baseline)
        outcome: Outcome = "not-met" if baseline_failed else "undecided"
        return ExpectationOutcome(expectation, outcome, f"{describe(expectation)}: {comparison.sentence}")
    if too_few := _undecided_if_too_few_rounds(expectation, result):
        return too_few
    if expectation.metric == "paysBackSteps":
        return _evaluate_payback(expectation, comparison.pays_back, result.unit)
    speedup = float(comparison.speedup or 1)  # never None if there is an interval
    lower, upper = interval
    text = f"{figures.prose(speedup)} ({figures.prose(lower)} to {figures.prose(upper)}), {_time_change(speedup)}"
    return _evaluate_range(expectation, lower, upper, text)


def _time_change(speedup: float) -> str:
    """Express a speedup as a change of the time, such as `30.6 % less time` for 1.44, `2 times as long` for 0.5."""
    # The change of the time relative to the baseline's; below 0 the variant takes less time.
    change = 1 / speedup - 1
    if change >= 1:
        return f"{figures.prose(1 / speedup)} times as long"
    return f"{figures.prose(100 * abs(change))} % {'less' if change < 0 else 'more'} time"


def _evaluate_payback(expectation: Expectation, payback: Payback | None, unit: str) -> ExpectationOutcome:
    """Evaluate the number of steps after which a variant is ahead of the baseline; `payback` is None if unknown."""
    if payback is None:
        return ExpectationOutcome(expectation, "undecided", f"{describe(expectation)}: not known.")
    # If the interval has an upper end, later steps are significantly slower: in the end the variant stays behind, so no
    # bound is met.
    if payback.answer == "until" and payback.upper is not None:
        why = f"it is ahead until {figures.count(payback.steps or 0, unit)}, then behind for good"
        return ExpectationOutcome(expectation, "not-met", f"{describe(expectation)}: not-met, {why}.", is_valid=True)
    # A text such as `after 1,240 steps (1,180 to 1,310)`, `never` or `at-once (1 or more)`.
    text: str = payback.answer
    if payback.answer == "after" and payback.steps:
        text = f"after {figures.count(payback.steps, unit)}"
    lower, upper = possible_steps(payback)
    if lower != upper:
        upper_text = "or more" if upper == math.inf else f"to {figures.count(round(upper))}"
        text += f" ({figures.count(round(lower))} {upper_text})"
    return _evaluate_range(expectation, lower, upper, text)


def _evaluate_observation(expectation: Expectation, result: Result) -> ExpectationOutcome:
    """Evaluate an expectation on an observation by all values that launches reported."""
    observations = next((item for item in result.observations if item.variant == expectation.variant), None)
    observation = observations.find(expectation.subject) if observations else None
    if observation is None:
        return ExpectationOutcome(expectation, "undecided", f"{describe(expectation)}: not observed.")
    if expectation.equals is not None:
        # Launches can report different values, and a truncated value gives None.
        equalities = {_is_equal(value.value, expectation.equals) for value in observation.values}
        outcome: Outcome = "undecided"
        if equalities == {True}:
            outcome = "met"
        elif equalities == {False}:
            outcome = "not-met"
        return ExpectationOutcome(
            expectation, outcome, f"{describe(expectation)}: {outcome}, {observation.text}.", is_valid=True
        )
    if observation.type != "number":
        why = f"it is not a number: {observation.text}"
        return ExpectationOutcome(expectation, "not-met", f"{describe(expectation)}: {why}.", is_valid=True)
    numbers = [float(value.value) for value in observation.values]
    return _evaluate_range(expectation, min(numbers), max(numbers), observation.text)


def _is_equal(observed: str, expected: str) -> bool | None:
    """Return True if both are the same number or text; None if `observed` is truncated, so that this is unknown."""
    if observed.endswith("…") and expected.startswith(observed[:-1]):  # `…` marks truncated text
        return None
    if re.fullmatch(DECIMAL_PATTERN, observed) and re.fullmatch(DECIMAL_PATTERN, expected):
        return Decimal(observed) == Decimal(expected)
    return observed == expected


def _evaluate_range(expectation: Expectation, lower: float, upper: float, text: str) -> ExpectationOutcome:
    """Compare the range of a valid measurement with the expectation's bounds; `text` describes the range."""
    outcome = compare_with_bounds(lower, upper, expectation.at_least, expectation.at_most)
    return ExpectationOutcome(expectation, outcome, f"{describe(expectation)}: {outcome}, {text}.", is_valid=True)


def compare_with_bounds(lower: float, upper: float, at_least: str | None, at_most: str | None) -> Outcome:
    """Return `met` if the whole interval is within the bounds, `not-met` if all of it is outside, else `undecided`.

    The bounds are decimal strings, as a manifest has them; None means that there is no such bound.
    """
    minimum = float(at_least) if at_least is not None else -math.inf
    maximum = float(at_most) if at_most is not None else math.inf
    if lower >= minimum and upper <= maximum:
        return "met"
    if upper < minimum or lower > maximum:
        return "not-met"
    return "undecided"


def _interval(comparison: Comparison) -> tuple[float, float] | None:
    """Return the ends of the speedup's interval; None if there is no interval."""
    if comparison.lower is None or comparison.upper is None:
        return None
    return float(comparison.lower), float(comparison.upper)


def describe(expectation: Expectation) -> str:
    """Describe what is expected: `compileSeconds of jax/jit on h100x8 at most 3.00 s`."""
    number = NUMBERS[expectation.metric] if expectation.metric else None
    format_bound = _format_seconds if number and number.unit == "s" else str
    bounds = describe_bounds(expectation.at_least, expectation.at_most, expectation.equals, format_bound)
    target = f" on {expectation.target}" if expectation.target else ""
    return f"{expectation.subject} of {expectation.variant}{target} {bounds}".rstrip()


def _format_seconds(bound: str) -> str:
    """Format a bound in seconds as `3.00 s` or `2.00 ms`, or with all its digits if three would round it."""
    text = figures.seconds(float(bound), 3)
    return text if math.isclose(figures.parse(text), float(bound), rel_tol=1e-9) else f"{bound} s"


def describe_bounds(
    at_least: str | None, at_most: str | None, equals: str | None = None, format_bound: Callable[[str], str] = str
) -> str:
    """Describe the bounds that are not None, as `at least 2 and at most 3`; `format_bound` formats each of them."""
    bounds = {"at least": at_least, "at most": at_most, "equal to": equals}
    return " and ".join(f"{relation} {format_bound(bound)}" for relation, bound in bounds.items() if bound is not None)
