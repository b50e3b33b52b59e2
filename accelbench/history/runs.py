"""Compare results of different runs: each variant before and after. Pure.

Within a run, rounds make pairs. Two runs share no rounds, so each side's launches are a sample of their own and the
interval is Welch's. That interval does not include what slows a whole run. Therefore, if each side is one run, the
variant is also compared relative to its baseline, where such effects cancel; and if a side holds several results (a
series), its unit of randomness is the result. Margin and confidence are those of the first side.
docs/adr/0012-what-must-match-to-compare-runs.md gives the reasons.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from accelbench.api.result import Certificate, Result, Verdict
from accelbench.history.comparability import Difference, differences, sort_differences
from accelbench.history.sample import CaseKey, ComparedQuantity, Sample, Side, label, sample, short_label
from accelbench.stats.gap import find_gap
from accelbench.stats.interval import MINIMUM_PAIRS, Interval, welch_interval
from accelbench.stats.stopping import StoppingRule
from accelbench.verdict.rule import ValidMeasurement, verdict_sentence


@dataclass(frozen=True)
class _CommonCase:
    """Hold the results of a case that both sides have."""

    key: CaseKey
    before: Sequence[Result]
    after: Sequence[Result]

    @property
    def results(self) -> tuple[Result, ...]:
        """Return the results of both sides."""
        return (*self.before, *self.after)

    @property
    def is_series(self) -> bool:
        """Return True if a side has several results."""
        return len(self.before) > 1 or len(self.after) > 1


@dataclass(frozen=True)
class VariantChange:
    """Compare one variant of one case before and after; a speedup above 1 means that it became faster."""

    case: CaseKey
    variant: str
    quantity: ComparedQuantity
    before: Sample
    after: Sample
    sentence: str
    interval: Interval | None = None
    verdict: Verdict | None = None

    @property
    def invalid(self) -> tuple[str, ...]:
        """Return the names of the failed checks that excluded results, if there is no verdict for this reason."""
        if self.verdict is not None:
            return ()
        return tuple(dict.fromkeys((*self.before.invalid, *self.after.invalid)))


@dataclass(frozen=True)
class RunComparison:
    """Hold the comparison of two sides."""

    before: Side
    after: Side
    differences: tuple[Difference, ...]
    refused: tuple[Difference, ...]
    """Differences that matter and were not allowed; with any, nothing is compared."""
    changes: tuple[VariantChange, ...] = ()
    unmatched: tuple[str, ...] = ()
    """Cases and variants that only one side has, a phrase each."""

    @property
    def allowed_differences(self) -> tuple[Difference, ...]:
        """Return the differences that matter and are allowed."""
        return tuple(
            difference for difference in self.differences if difference.matters and difference not in self.refused
        )


def compare(before: Side, after: Side, allowed: Sequence[str] = ()) -> RunComparison:
    """Compare the times of every variant of every case that both sides have.

    Nothing is compared if a setting or a machine differs in a way that matters, unless `allowed` names the entry or its
    group.
    """
    before_cases, after_cases = before.cases(after), after.cases(before)
    cases = [_CommonCase(key, before_cases[key], after_cases[key]) for key in before_cases if key in after_cases]
    all_differences = sort_differences(
        difference for case in cases for difference in differences(case.before, case.after)
    )
    refused = tuple(
        difference for difference in all_differences if difference.matters and not difference.is_allowed_by(allowed)
    )
    only_before = _describe_unmatched(before.name, before_cases, after_cases)
    only_after = _describe_unmatched(after.name, after_cases, before_cases)
    unmatched = tuple(dict.fromkeys([*only_before, *only_after]))
    if refused:
        return RunComparison(before, after, all_differences, refused, unmatched=unmatched)
    comparisons = [
        (case, variant, quantity)
        for case in cases
        for variant in _common_variants(case)
        for quantity in _choose_quantities(before, after, case, variant)
    ]
    keys = [case.key for case in cases]
    allowed_names = tuple(difference.name for difference in all_differences if difference.matters)
    changes = tuple(
        _compare(
            case.key,
            variant,
            quantity,
            sample(before, case.before, variant, quantity),
            sample(after, case.after, variant, quantity),
            rules=_rules(case, comparisons=len(comparisons)),
            case_label=short_label(case.key, keys),
            allowed_names=allowed_names,
        )
        for case, variant, quantity in comparisons
    )
    return RunComparison(before, after, all_differences, (), changes, unmatched)


def _common_variants(case: _CommonCase) -> tuple[str, ...]:
    """Return the names of the variants that both sides have."""
    after_names = _variant_names(case.after)
    return tuple(name for name in _variant_names(case.before) if name in after_names)


def _variant_names(results: Iterable[Result]) -> tuple[str, ...]:
    """Return the names of the results' variants, each once."""
    return tuple(dict.fromkeys(variant.name for result in results for variant in result.variants))


def _choose_quantities(before: Side, after: Side, case: _CommonCase, variant: str) -> tuple[ComparedQuantity, ...]:
    """Return which quantities of the variant to compare.

    `relative` is one of them if each side has one result with the same baseline, and times of this and of the variant.
    """
    quantities: tuple[ComparedQuantity, ...] = ("median",)
    if all(result.protocol == "latency" for result in case.results):
        quantities = ("p50", "p99")
    baselines = {result.case.baseline for result in case.results}
    if case.is_series or len(baselines) > 1 or variant in baselines:
        return quantities
    for name in (variant, *baselines):
        for side, results in ((before, case.before), (after, case.after)):
            has_times = bool(sample(side, results, name, quantities[0]).logarithms_by_result)
            if not has_times:
                return quantities
    return (*quantities, "relative")


def _describe_unmatched(
    side_name: str, cases: Mapping[CaseKey, Sequence[Result]], other_cases: Mapping[CaseKey, Sequence[Result]]
) -> list[str]:
    """Return `NAME is only in SIDE` for each case of one side, and each variant of it, that the other side lacks."""
    phrases = [f"{label(key)} is only in {side_name}" for key in cases if key not in other_cases]
    for key in cases:
        if key in other_cases:
            only_here = set(_variant_names(cases[key])) - set(_variant_names(other_cases[key]))
            phrases += [f"{variant} is only in {side_name}" for variant in sorted(only_here)]
    return phrases


@dataclass(frozen=True)
class _Rules:
    """Hold how the comparisons of a case are judged."""

    alpha: float
    is_series: bool
    margin: float
    confidence: str
    """The confidence as text, as `95 %`."""


def _rules(case: _CommonCase, *, comparisons: int) -> _Rules:
    """Return how a case is judged: significance, margin and confidence.

    The confidence is for all `comparisons` of the two runs together (Bonferroni).
    """
    measurements = [result.case.measurement for result in case.results]
    first = measurements[0]
    stopping_rules = [
        StoppingRule(
            rounds_min=measurement.rounds_min,
            rounds_max=measurement.rounds_max,
            target=float(measurement.target_relative_error),
            confidence=float(first.confidence),
            comparisons=comparisons,
        )
        for measurement in measurements
    ]
    confidence = f"{100 * float(first.confidence):.4g} %"
    return _Rules(
        # A run ends when its interval is narrow: such repeated tests need a smaller alpha. A series has no such rule.
        alpha=stopping_rules[0].alpha if case.is_series else min(rule.nominal_alpha for rule in stopping_rules),
        is_series=case.is_series,
        margin=float(first.equivalence_margin),
        confidence=f"{confidence} for {comparisons} comparisons together" if comparisons > 1 else confidence,
    )


def _compare(
    key: CaseKey,
    variant: str,
    quantity: ComparedQuantity,
    before: Sample,
    after: Sample,
    *,
    rules: _Rules,
    case_label: str,
    allowed_names: Sequence[str],
) -> VariantChange:
    """Compare two samples of a variant: decide a verdict, or say why there is none.

    Args:
        key: The case.
        variant: The variant's name.
        quantity: The statistic that the samples are of.
        before: The variant's launches on the first side.
        after: Those on the second side.
        rules: How to judge.
        case_label: What distinguishes the case from others; empty if there is only one.
        allowed_names: What differs between the two sides and was allowed to, for the sentence.
    """

    def change(*sentences: str, interval: Interval | None = None, verdict: Verdict | None = None) -> VariantChange:
        """Return the change, described by these sentences."""
        description = " ".join(filter(None, (*sentences, before.exclusion_sentence, after.exclusion_sentence)))
        if case_label:
            description = f"With {case_label}: {description}"
        return VariantChange(key, variant, quantity, before, after, description, interval, verdict)

    if not before.logarithms_by_result or not after.logarithms_by_result:
        return change(f"{variant}: not compared.")
    before_logarithms = before.result_logarithms if rules.is_series else before.launch_logarithms
    after_logarithms = after.result_logarithms if rules.is_series else after.launch_logarithms
    interval = welch_interval(before_logarithms, after_logarithms, rules.alpha)
    if interval is None:
        sizes = f"{len(before_logarithms)} and {len(after_logarithms)} {'results' if rules.is_series else 'launches'}"
        why = "are too few" if max(len(before_logarithms), len(after_logarithms)) < MINIMUM_PAIRS else "differ too much"
        return change(f"{variant}: {sizes} {why} for an interval.")
    checks = (*before.certificate.checks, *after.certificate.checks)
    # Samples exclude results with failed checks, so ValidMeasurement raises no error.
    measurement = ValidMeasurement(Certificate(checks=checks), after.label, before.label)
    verdict = measurement.decide(interval, rules.margin)
    # The sentence names the variant once: of the label `VARIANT in SIDE`, its baseline is only `in SIDE`.
    baseline = before.label.removeprefix(f"{variant} ").partition(",")[0]
    sentence = verdict_sentence(
        verdict,
        interval,
        variant=after.label,
        baseline=baseline,
        margin=rules.margin,
        confidence=rules.confidence,
    )
    if allowed_names:
        sentence = f"{sentence.removesuffix('.')}; compared although these differ: {', '.join(allowed_names)}."
    gap_sentences = []
    if not rules.is_series:
        for side in (before, after):
            gap = find_gap(list(map(math.exp, side.launch_logarithms)), rules.margin)
            if gap is not None:
                gap_sentences.append(gap.sentence(side.label))
    return change(sentence, *gap_sentences, interval=interval, verdict=verdict)
