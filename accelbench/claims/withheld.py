"""Find reasons to give a claim no verdict: unusual programs, and ratios that a plain matrix product has too. Pure.

A claim is a row of the ledger. A ratio is a speedup: the time of one variant divided by that of another.

A control is a run of plain matrix products in both frameworks, whose times depend on the libraries behind them and on
the processor. A row's ratio divided by the control's is the contribution of the row's own program.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from accelbench import frameworks
from accelbench.api.result import Comparison, Result
from accelbench.api.run import Expectation
from accelbench.claims import suite, words
from accelbench.claims.ledger import Claim
from accelbench.verdict.expectations import ExpectationOutcome

Cases = Sequence[tuple[Result, Sequence[ExpectationOutcome]]]
"""The result of each case, with the outcomes of the manifest's expectations."""
Interval = tuple[float, float]
DEVICE = "device.name"
"""The fingerprint's entry with the model of the device."""


@dataclass(frozen=True)
class Control:
    """Hold the comparison of one ratio of a row with that of a plain matrix product in the same two frameworks."""

    sentence: str
    explains: bool
    """True if the row's ratio does not differ significantly from that of a plain product, or if that is unknown."""


def reasons(claim: Claim, cases: Cases, controls: Sequence[Result]) -> tuple[str, ...]:
    """Return why the claim has no verdict; empty if nothing prevents one.

    Args:
        claim: The claim.
        cases: The results that decide it, each with the outcomes of its manifest's expectations.
        controls: The results of the claim's control, if it has one.
    """
    sentences = []
    if claim.sides_lack:
        sentences.append(f"The sides are not as their communities run them; missing: {claim.sides_lack}.")
    compared_ratios = list(compare_with_controls(claim, cases, controls))
    explained_ratios = [control.sentence for control in compared_ratios if control.explains]
    # A decidable claim has to meet all its conditions, so one explained ratio withholds its verdict. The answer to a
    # question of our own is withheld only if all its ratios are explained.
    all_are_explained = len(explained_ratios) == len(compared_ratios)
    if claim.is_decidable or all_are_explained:
        sentences += explained_ratios
    return tuple(sentences)


def compare_with_controls(claim: Claim, cases: Cases, controls: Sequence[Result]) -> Iterator[Control]:
    """Yield, for each ratio of times between two frameworks on a processor, whether the control explains it.

    A decidable claim is about the ratios that its conditions name, and any other row about all ratios of its results.
    Ratios whose interval contains 1 need no explanation. A claim without a control yields nothing.
    """
    if not claim.control:
        return
    for result, outcomes in cases:
        is_measured_on_cpu = result.case.accelerator.platform == "cpu" and not result.case.accelerator.target
        if not is_measured_on_cpu:
            continue  # on other devices, both frameworks use the libraries of the device's vendor
        device = result.fingerprint.get(DEVICE)
        controls_on_device = [control for control in controls if control.fingerprint.get(DEVICE) == device]
        # Expectations in the ledger replace those of the manifest.
        expectations = claim.expectations or [outcome.expectation for outcome in outcomes]
        shown_result = suite.with_baseline(result, claim.table_baseline) if claim.table_baseline else result
        for comparison in shown_result.comparisons:
            framework_pair = _frameworks(result, comparison)
            interval = _interval(comparison)
            if framework_pair is None or interval is None or not _is_asked(claim, expectations, comparison):
                continue
            lower, upper = interval
            if lower <= 1 <= upper:
                continue
            products = (_product(control, framework_pair) for control in controls_on_device)
            known_product = next((product for product in products if product is not None), None)
            yield _compare(f"{comparison.variant} over {comparison.baseline}", interval, known_product)


def _frameworks(result: Result, comparison: Comparison) -> tuple[str, str] | None:
    """Return the frameworks of the variant and of the baseline; None if they are the same."""
    uses = {variant.name: variant.use for variant in result.case.variants}
    variant, baseline = (frameworks.name_of(uses[name]) for name in (comparison.variant, comparison.baseline))
    return None if variant == baseline else (variant, baseline)


def _interval(comparison: Comparison) -> Interval | None:
    """Return the interval of the speedup; None without one."""
    return (float(comparison.lower), float(comparison.upper)) if comparison.lower and comparison.upper else None


def _is_asked(claim: Claim, expectations: Sequence[Expectation], comparison: Comparison) -> bool:
    """Return True if a condition of the claim is about this ratio or its inverse, or if the row is not decidable.

    `expectations` count only for a claim without majorities and trainings.
    """
    if not claim.is_decidable:
        return True
    pairs = [{majority.variant, majority.over} for majority in claim.majorities]
    pairs += [{training.variant, training.over} for training in claim.trainings]
    if pairs:
        return {comparison.variant, comparison.baseline} in pairs
    return any(each.metric == "speedup" and each.variant == comparison.variant for each in expectations)


def _product(control: Result, framework_pair: tuple[str, str]) -> Interval | None:
    """Return the interval of how many times as fast a plain product is in the first framework as in the second.

    None if the control has no interval for these frameworks.
    """
    first, second = framework_pair
    for comparison in control.comparisons:
        compared, interval = _frameworks(control, comparison), _interval(comparison)
        if interval is None:
            continue
        if compared == (first, second):
            return interval
        if compared == (second, first):
            return 1 / interval[1], 1 / interval[0]  # inverting swaps the ends
    return None


def _compare(subject: str, interval: Interval, product: Interval | None) -> Control:
    """Decide whether the ratio of a plain product explains the ratio in `interval`, and write a sentence on `subject`.

    `interval` does not contain 1. `product` is the interval of the plain product's ratio; None if it was not measured.
    """
    if product is None:
        # What is unknown counts as explained, so that it gives no verdict.
        return Control(
            f"{subject}: no plain product was measured on this processor, so nothing follows.", explains=True
        )
    # The program's own contribution is the ratio divided by that of a plain product: 1 if there is none.
    lowest_contribution, highest_contribution = interval[0] / product[1], interval[1] / product[0]
    is_faster = interval[0] > 1
    explains = lowest_contribution <= 1 if is_faster else highest_contribution >= 1
    end = "the libraries behind the products explain it" if explains else "the libraries behind it do not explain all"
    sentence = f"{subject}: {_times(interval)}; a plain product: {_times(product)}; {end}."
    return Control(sentence, explains=explains)


def _times(interval: Interval) -> str:
    """Format an interval of a ratio by its middle and its ends."""
    return words.times(math.sqrt(interval[0] * interval[1]), *interval)
