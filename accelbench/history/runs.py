"""Compare results of different runs: each variant before and after. Pure.

Within a run, rounds make pairs. Two runs share no rounds, so each side's launches are a sample of their own and the
interval is Welch's. That interval does not include what slows a whole run. Therefore, if each side is one run, the
variant is also compared relative to its baseline, where such effects cancel; and if a side holds several results (a
series), its unit of randomness is the result. Margin and confidence are those of the first side.
docs/adr/0012-what-must-match-to-compare-runs.md gives the reasons.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from accelbench.api.result import Certificate, Result, Verdict
from accelbench.history.comparability import Difference, differences, ordered
from accelbench.history.sample import ComparedQuantity, Key, Sample, Side, label, sample, short_label
from accelbench.stats.gap import find_gap
from accelbench.stats.interval import MINIMUM_PAIRS, Interval, welch_interval
from accelbench.stats.stopping import StoppingRule
from accelbench.verdict.rule import Clean, verdict_sentence

Cases = tuple[Mapping[Key, Sequence[Result]], Mapping[Key, Sequence[Result]]]
"""Results of each case, before and after."""


@dataclass(frozen=True)
class VariantChange:
    """Compare one variant of one case before and after; a speedup above 1 means that it became faster."""

    case: Key
    variant: str
    quantity: ComparedQuantity
    before: Sample
    after: Sample
    sentence: str
    interval: Interval | None = None
    verdict: Verdict | None = None

    @property
    def invalid(self) -> tuple[str, ...]:
        """Return the failed checks that excluded results of either side, if there is no verdict."""
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
        """Return the differences that matter and were allowed."""
        return tuple(one for one in self.differences if one.matters and one not in self.refused)


def compare(before: Side, after: Side, allowed: Sequence[str] = ()) -> RunComparison:
    """Compare every variant of every case that both sides have.

    Args:
        before: The first side, the baseline of every speedup.
        after: The second side.
        allowed: Entries of the fingerprint, or groups of them, that may differ.
    """
    cases: Cases = (before.cases(after), after.cases(before))
    common = [key for key in cases[0] if key in cases[1]]
    differing = ordered(one for key in common for one in differences(cases[0][key], cases[1][key]))
    refused = tuple(one for one in differing if one.matters and not one.allowed(allowed))
    unmatched = _unmatched((before, after), cases)
    if refused:
        return RunComparison(before, after, differing, refused, unmatched=unmatched)
    comparisons = [
        (key, variant, quantity)
        for key in common
        for variant in _variants(cases, key)
        for quantity in _quantities((before, after), cases, key, variant)
    ]
    allowed_names = tuple(one.name for one in differing if one.matters)
    changes = tuple(
        _compare(
            key,
            variant,
            quantity,
            sample(before, cases[0][key], variant, quantity),
            sample(after, cases[1][key], variant, quantity),
            rules=_rules(cases, key, comparisons=len(comparisons)),
            case=short_label(key, common),
            allowed_names=allowed_names,
        )
        for key, variant, quantity in comparisons
    )
    return RunComparison(before, after, differing, (), changes, unmatched)


def _variants(cases: Cases, key: Key) -> tuple[str, ...]:
    """Return the variants that both sides have, in the order of the first."""
    first, second = (dict.fromkeys(one.name for result in side[key] for one in result.variants) for side in cases)
    return tuple(name for name in first if name in second)


def _quantities(sides: tuple[Side, Side], cases: Cases, key: Key, variant: str) -> tuple[ComparedQuantity, ...]:
    """Return what to compare: the median or, for latency, p50 and p99, and possibly seconds relative to the baseline.

    `relative` is added if each side is one result, both have the same baseline, which is another variant, and both
    results have times of variant and baseline.
    """
    results = [result for side in cases for result in side[key]]
    seconds: tuple[ComparedQuantity, ...] = (
        ("p50", "p99") if all(result.protocol == "latency" for result in results) else ("median",)
    )
    baselines = {result.case.baseline for result in results}
    if len(results) > len(cases) or len(baselines) > 1 or variant in baselines:
        return seconds
    timed = all(
        sample(side, results_by_key[key], name, seconds[0]).logs
        for side, results_by_key in zip(sides, cases, strict=True)
        for name in (variant, *baselines)
    )
    return (*seconds, "relative") if timed else seconds


def _unmatched(sides: tuple[Side, Side], cases: Cases) -> tuple[str, ...]:
    """Return a phrase for each case, and each variant of a common case, that only one side has."""
    phrases = []
    for number, side in enumerate(sides):
        own, other = cases[number], cases[1 - number]
        phrases += [f"{label(key)} is only in {side.name}" for key in own if key not in other]
        for key in (key for key in own if key in other):
            names = [{one.name for result in results[key] for one in result.variants} for results in (own, other)]
            phrases += [f"{variant} is only in {side.name}" for variant in sorted(names[0] - names[1])]
    return tuple(dict.fromkeys(phrases))


@dataclass(frozen=True)
class _Rules:
    """Hold how the comparisons of a case are judged."""

    alpha: float
    series: bool
    margin: float
    confidence: str


def _rules(cases: Cases, key: Key, *, comparisons: int) -> _Rules:
    """Return how a case is judged: by the margin and confidence of the first side's first result."""
    measurements = [result.case.measurement for side in cases for result in side[key]]
    first, series = measurements[0], len(measurements) > len(cases)
    rules = [
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
        # Each run stopped depending on its launches, so the interval needs the same correction as in the run.
        alpha=rules[0].alpha if series else min(rule.nominal_alpha for rule in rules),
        series=series,
        margin=float(first.equivalence_margin),
        confidence=f"{confidence} for {comparisons} comparisons together" if comparisons > 1 else confidence,
    )


def _compare(
    key: Key,
    variant: str,
    quantity: ComparedQuantity,
    before: Sample,
    after: Sample,
    *,
    rules: _Rules,
    case: str,
    allowed_names: Sequence[str],
) -> VariantChange:
    """Compare two samples of a variant; `case` distinguishes its case from the others that are compared."""

    def change(*sentences: str, interval: Interval | None = None, verdict: Verdict | None = None) -> VariantChange:
        text = " ".join(filter(None, (*sentences, before.left_out, after.left_out)))
        text = f"With {case}: {text}" if case else text
        return VariantChange(key, variant, quantity, before, after, text, interval, verdict)

    if not before.logs or not after.logs:
        return change(f"{variant}: not compared.")
    both = (before, after)
    values = [side.results if rules.series else side.launches for side in both]
    interval = welch_interval(values[0], values[1], rules.alpha)
    if interval is None:
        numbers = " and ".join(str(len(side)) for side in values)
        why = "are too few" if max(map(len, values)) < MINIMUM_PAIRS else "differ too much"
        return change(f"{variant}: {numbers} {'results' if rules.series else 'launches'} {why} for an interval.")
    checks = (*before.certificate.checks, *after.certificate.checks)
    clean = Clean(Certificate(checks=checks), after.about, before.about)
    verdict = clean.decide(interval, rules.margin)
    # The sentence names the variant once, so its baseline is only `in SIDE`.
    baseline = before.about.removeprefix(f"{variant} ").partition(",")[0]
    sentence = verdict_sentence(
        verdict,
        interval,
        variant=after.about,
        baseline=baseline,
        margin=rules.margin,
        confidence=rules.confidence,
    )
    if allowed_names:
        sentence = f"{sentence.removesuffix('.')}; compared although these differ: {', '.join(allowed_names)}."
    gaps = [
        gap.sentence(side.about)
        for side in (() if rules.series else both)
        if (gap := find_gap(list(map(math.exp, side.launches)), rules.margin))
    ]
    return change(sentence, *gaps, interval=interval, verdict=verdict)
