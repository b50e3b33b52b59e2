"""Expectations: assertions on a result, met only where the interval's own end supports them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from accelbench.api.result import Comparison, Result, VariantResult
from accelbench.api.run import Expectation
from accelbench.document import DECIMAL_PATTERN

Outcome = Literal["met", "not-met", "undecided"]


@dataclass(frozen=True)
class ExpectationOutcome:
    """What became of one expectation in one case; `sentence` says it with the numbers."""

    expectation: Expectation
    outcome: Outcome
    sentence: str


def evaluate(expectations: Iterable[Expectation], result: Result) -> tuple[ExpectationOutcome, ...]:
    """Each expectation held against the result, in order.

    A speedup meets a bound when its whole interval does, contradicts it when none of the interval does, and leaves it
    undecided in between. Times have no interval on this side of a comparison: their median decides. An observation
    has to be what is expected in every launch; in some of them only, it leaves the expectation undecided. A variant
    that failed, or whose comparison is invalid, meets nothing.
    """
    return tuple(_evaluate(expectation, result) for expectation in expectations)


def _evaluate(expectation: Expectation, result: Result) -> ExpectationOutcome:
    variant = next((each for each in result.variants if each.name == expectation.variant), None)
    if variant is None:
        return ExpectationOutcome(expectation, "not-met", f"{_subject(expectation)}: this case has no such variant.")
    if variant.failure is not None:
        why = f"it failed in round {variant.failure.round} ({variant.failure.reason})"
        return ExpectationOutcome(expectation, "not-met", f"{_subject(expectation)}: {why}.")
    if expectation.metric == "speedup":
        return _evaluate_speedup(expectation, result)
    if broken := result.certificate.failed(variant.name):
        names = ", ".join(dict.fromkeys(check.name for check in broken))
        return ExpectationOutcome(
            expectation, "not-met", f"{_subject(expectation)}: its measurement is invalid ({names})."
        )
    return _evaluate_seconds(expectation, variant) if expectation.metric else _evaluate_observation(expectation, result)


def _evaluate_speedup(expectation: Expectation, result: Result) -> ExpectationOutcome:
    comparison = next((each for each in result.comparisons if each.variant == expectation.variant), None)
    if comparison is None:
        why = (
            "it is the baseline, and has no speedup" if expectation.variant == result.case.baseline else "not compared"
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
    reading = f"{comparison.speedup} ({comparison.lower} to {comparison.upper})"
    return _held(expectation, *interval, reading)


def _evaluate_seconds(expectation: Expectation, variant: VariantResult) -> ExpectationOutcome:
    if expectation.metric == "seconds":
        seconds = variant.seconds.median_seconds if variant.seconds else None
    else:
        seconds = next((phase.median_seconds for phase in variant.phases if phase.phase == "compile"), None)
    if seconds is None:
        return ExpectationOutcome(expectation, "undecided", f"{_subject(expectation)}: not measured.")
    return _held(expectation, float(seconds), float(seconds), f"{seconds} s")


def _evaluate_observation(expectation: Expectation, result: Result) -> ExpectationOutcome:
    of_variant = next((each for each in result.observations if each.variant == expectation.variant), None)
    found = of_variant.named(expectation.subject) if of_variant else None
    if found is None:
        return ExpectationOutcome(expectation, "undecided", f"{_subject(expectation)}: not observed.")
    if expectation.equals is None and found.type != "number":
        why = f"it is no number, {found.text}"
        return ExpectationOutcome(expectation, "not-met", f"{_subject(expectation)}: {why}.")
    if expectation.equals is not None:
        equal = [_equal(each.value, expectation.equals) for each in found.values]
        outcome: Outcome = "met" if all(each is True for each in equal) else "not-met"
        if outcome == "not-met" and any(each is not False for each in equal):
            outcome = "undecided"
        return ExpectationOutcome(expectation, outcome, f"{_subject(expectation)}: {outcome}, {found.text}.")
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
    """`lower` to `upper` against both bounds: met by all of it, by none, or by a part."""
    floor = float(expectation.at_least) if expectation.at_least is not None else float("-inf")
    ceiling = float(expectation.at_most) if expectation.at_most is not None else float("inf")
    outcome: Outcome = "undecided"
    if lower >= floor and upper <= ceiling:
        outcome = "met"
    elif upper < floor or lower > ceiling:
        outcome = "not-met"
    return ExpectationOutcome(expectation, outcome, f"{_subject(expectation)}: {outcome}, {reading}.")


def _interval(comparison: Comparison) -> tuple[float, float] | None:
    if comparison.lower is None or comparison.upper is None:
        return None
    return float(comparison.lower), float(comparison.upper)


def _subject(expectation: Expectation) -> str:
    bounds = [
        f"{words} {bound}"
        for words, bound in (
            ("at least", expectation.at_least),
            ("at most", expectation.at_most),
            ("equal to", expectation.equals),
        )
        if bound is not None
    ]
    return f"{expectation.subject} of {expectation.variant} {' and '.join(bounds)}".rstrip()
