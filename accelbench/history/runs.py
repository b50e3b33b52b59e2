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
from accelbench.history.comparability import Difference, find_differences, sort_differences
from accelbench.history.sample import (
    CaseKey,
    ComparedQuantity,
    Sample,
    Side,
    collect_sample,
    describe_case,
    short_label,
)
from accelbench.stats.gap import find_gap
from accelbench.stats.interval import MINIMUM_PAIRS, Interval, welch_interval
from accelbench.stats.stopping import StoppingRule
from accelbench.stats.summary import has_tail
from accelbench.verdict.rule import ValidMeasurement, verdict_sentence


@dataclass(frozen=True)
class _CommonCase:
    """Hold the results of a case that both sides have."""

    key: CaseKey
    before: Sequence[Result]
    after: Sequence[Result]

    @property
    def results(self) -> tuple[Result, ...]:
        """Return the results before, then the results after."""
        return (*self.before, *self.after)

    @property
    def is_series(self) -> bool:
        """Return True if there are several results before or after, so that results are compared, not launches."""
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
        """Return the names of the failed checks that excluded results; empty if other results gave a verdict."""
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
        """Return the differences that would prevent the comparison, but which the user allowed."""
        return tuple(
            difference for difference in self.differences if difference.matters and difference not in self.refused
        )


def compare(before: Side, after: Side, allowed: Sequence[str] = ()) -> RunComparison:
    """Compare the times of every variant of every case that both sides have.

    Nothing is compared if a setting or the machine differs in a way that affects times, unless `allowed` contains the
    name or the group of this difference.
    """
    # Each side needs the other one, because a parameter that either of them swept distinguishes cases.
    before_cases, after_cases = before.results_by_case(after), after.results_by_case(before)
    cases = [_CommonCase(key, before_cases[key], after_cases[key]) for key in before_cases if key in after_cases]
    all_differences = sort_differences(
        difference for case in cases for difference in find_differences(case.before, case.after)
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
            collect_sample(before, case.before, variant, quantity),
            collect_sample(after, case.after, variant, quantity),
            rules=_choose_rules(case, comparisons=len(comparisons)),
            case_label=short_label(case.key, keys),
            allowed_names=allowed_names,
        )
        for case, variant, quantity in comparisons
    )
    return RunComparison(before, after, all_differences, (), changes, unmatched)


def _common_variants(case: _CommonCase) -> tuple[str, ...]:
    """Return the names of the variants that a case has both before and after."""
    after_names = _variant_names(case.after)
    return tuple(name for name in _variant_names(case.before) if name in after_names)


def _variant_names(results: Iterable[Result]) -> tuple[str, ...]:
    """Return the names of the results' variants, each once."""
    return tuple(dict.fromkeys(variant.name for result in results for variant in result.variants))


def _choose_quantities(before: Side, after: Side, case: _CommonCase, variant: str) -> tuple[ComparedQuantity, ...]:
    """Return which statistics of a variant's times to compare: `median`, or `p50` and `p99`; perhaps `relative`.

    `p50` and `p99` are compared if all results are of protocols that time calls one by one. `relative` is the variant's
    time divided by its baseline's. It needs a variant other than the baseline, and one result on each side: both with
    the same baseline, and with valid times of the variant and of the baseline.
    """
    quantities: tuple[ComparedQuantity, ...] = ("median",)
    if all(has_tail(result.protocol) for result in case.results):
        quantities = ("p50", "p99")
    baselines = {result.case.baseline for result in case.results}
    if case.is_series or len(baselines) > 1 or variant in baselines:
        return quantities
    for name in (variant, *baselines):
        for side, results in ((before, case.before), (after, case.after)):
            has_times = bool(collect_sample(side, results, name, quantities[0]).logarithms_by_result)
            if not has_times:
                return quantities
    return (*quantities, "relative")


def _describe_unmatched(
    side_name: str, cases: Mapping[CaseKey, Sequence[Result]], other_cases: Mapping[CaseKey, Sequence[Result]]
) -> list[str]:
    """Return `NAME is only in SIDE` for each case that one side has and the other lacks, and likewise for variants."""
    phrases = [f"{describe_case(key)} is only in {side_name}" for key in cases if key not in other_cases]
    for key in cases:
        if key in other_cases:
            unmatched_variants = set(_variant_names(cases[key])) - set(_variant_names(other_cases[key]))
            phrases += [f"{variant} is only in {side_name}" for variant in sorted(unmatched_variants)]
    return phrases


@dataclass(frozen=True)
class _Rules:
    """Hold the settings by which the comparisons of a case are judged."""

    alpha: float
    is_series: bool
    margin: float
    confidence: str
    """The confidence as text, as `95 %`."""


def _choose_rules(case: _CommonCase, *, comparisons: int) -> _Rules:
    """Return the rules for verdicts on a case: significance level, equivalence margin and confidence.

    The confidence is for all `comparisons` of the two sides together (Bonferroni).
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
    # A run may end as soon as its interval is narrow. Testing after each round needs a smaller alpha, which depends on
    # the run's numbers of rounds.
    alpha = min(rule.nominal_alpha for rule in stopping_rules)
    if case.is_series:  # its number of results depends on no interval
        alpha = stopping_rules[0].alpha  # all rules have the same, from the first confidence
    confidence = f"{100 * float(first.confidence):.4g} %"
    return _Rules(
        alpha=alpha,
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
        quantity: The statistic of a launch that both samples contain.
        before: The variant's launches on the first side of the comparison.
        after: The variant's launches on the second side.
        rules: Significance level, equivalence margin and confidence.
        case_label: What distinguishes the case from others; empty if there is only one case.
        allowed_names: Names of the differences between the two sides that the user allowed; the sentence lists them.
    """

    def make_change(*sentences: str, interval: Interval | None = None, verdict: Verdict | None = None) -> VariantChange:
        """Build the outcome of the comparison; describe it by `sentences`, then those about excluded results."""
        description = " ".join(filter(None, (*sentences, before.exclusion_sentence, after.exclusion_sentence)))
        if case_label:
            description = f"With {case_label}: {description}"
        return VariantChange(key, variant, quantity, before, after, description, interval, verdict)

    if not before.logarithms_by_result or not after.logarithms_by_result:
        return make_change(f"{variant}: not compared.")
    before_logarithms = before.result_logarithms if rules.is_series else before.launch_logarithms
    after_logarithms = after.result_logarithms if rules.is_series else after.launch_logarithms
    interval = welch_interval(before_logarithms, after_logarithms, rules.alpha)
    if interval is None:
        counts = (len(before_logarithms), len(after_logarithms))
        # One value is enough on one side: its variance is then taken from the other side.
        reason = "are too few" if max(counts) < MINIMUM_PAIRS else "differ too much"
        unit = "results" if rules.is_series else "launches"
        return make_change(f"{variant}: {counts[0]} and {counts[1]} {unit} {reason} for an interval.")
    checks = (*before.certificate.checks, *after.certificate.checks)
    # ValidMeasurement raises an error for a failed check, but samples contain only results that passed their checks.
    measurement = ValidMeasurement(Certificate(checks=checks), after.label, before.label)
    verdict = measurement.decide(interval, rules.margin)
    # The sentence names the variant once: shorten the baseline's label `VARIANT in SIDE, relative to ...` to `in SIDE`.
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
    if not rules.is_series:  # a gap between launches makes only an interval that is computed from launches too narrow
        for side in (before, after):
            gap = find_gap(list(map(math.exp, side.launch_logarithms)), rules.margin)
            if gap is not None:
                gap_sentences.append(gap.sentence(side.label))
    return make_change(sentence, *gap_sentences, interval=interval, verdict=verdict)
