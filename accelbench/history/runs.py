"""Results of different runs against each other: the same variant, before and after. Pure.

Within a run, rounds make pairs; two runs share none, so each side's launches are a sample of their own and the interval
is Welch's. What slows a whole run, its mood, is not in that interval. So where each side is one run, it is also said
how a variant changed relative to its baseline, in which a mood cancels; and where a side holds several results, a
series, its unit of randomness is the result, and moods are in the interval. Margin and confidence are the runs' own, of
the first side where they differ. docs/adr/0012-what-must-match-to-compare-runs.md has the reasons.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from accelbench.api.result import Certificate, Result, Verdict
from accelbench.history.comparability import Difference, differences, ordered
from accelbench.history.sample import Key, Quantity, Sample, Side, label, sample, told_apart
from accelbench.stats.gap import find_gap
from accelbench.stats.interval import MINIMUM_PAIRS, Interval, welch_interval
from accelbench.stats.stopping import StoppingRule
from accelbench.verdict.rule import Clean, verdict_sentence

Cases = tuple[Mapping[Key, Sequence[Result]], Mapping[Key, Sequence[Result]]]


@dataclass(frozen=True)
class Compared:
    """One variant of one case, before and after; above 1 the second side is faster."""

    case: Key
    variant: str
    quantity: Quantity
    before: Sample
    after: Sample
    sentence: str
    interval: Interval | None = None
    verdict: Verdict | None = None

    @property
    def invalid(self) -> tuple[str, ...]:
        """Checks that left a side without a result that counts."""
        if self.verdict is not None:
            return ()
        return tuple(dict.fromkeys((*self.before.invalid, *self.after.invalid)))


@dataclass(frozen=True)
class RunComparison:
    """All that two sides have to say about each other."""

    before: Side
    after: Side
    differences: tuple[Difference, ...]
    refused: tuple[Difference, ...]
    """What matters, differs, and was not allowed to: then nothing is compared."""
    compared: tuple[Compared, ...] = ()
    alone: tuple[str, ...] = ()
    """What only one side has."""

    @property
    def insisted(self) -> tuple[Difference, ...]:
        """What matters, differs, and is compared all the same."""
        return tuple(each for each in self.differences if each.matters and each not in self.refused)


def compare(before: Side, after: Side, allowed: Sequence[str] = ()) -> RunComparison:
    """Every variant of every case that both sides have; `allowed` names entries or groups that may differ."""
    cases: Cases = (before.cases(after), after.cases(before))
    common = [key for key in cases[0] if key in cases[1]]
    found = ordered(each for key in common for each in differences(cases[0][key], cases[1][key]))
    refused = tuple(each for each in found if each.matters and not each.allowed(allowed))
    alone = _alone((before, after), cases)
    if refused:
        return RunComparison(before, after, found, refused, alone=alone)
    asked = [
        (key, variant, quantity)
        for key in common
        for variant in _variants(cases, key)
        for quantity in _quantities((before, after), cases, key, variant)
    ]
    insisted = tuple(each.name for each in found if each.matters)
    compared = tuple(
        _compare(
            key,
            variant,
            quantity,
            sample(before, cases[0][key], variant, quantity),
            sample(after, cases[1][key], variant, quantity),
            rules=_rules(cases, key, comparisons=len(asked)),
            case=told_apart(key, common),
            insisted=insisted,
        )
        for key, variant, quantity in asked
    )
    return RunComparison(before, after, found, (), compared, alone)


def _variants(cases: Cases, key: Key) -> tuple[str, ...]:
    """Those that both sides have, as the first lists them."""
    first, second = (dict.fromkeys(each.name for result in side[key] for each in result.variants) for side in cases)
    return tuple(name for name in first if name in second)


def _quantities(sides: tuple[Side, Side], cases: Cases, key: Key, variant: str) -> tuple[Quantity, ...]:
    """Seconds, and of two single runs also seconds over the baseline's, where both sides have a time of both."""
    results = [result for side in cases for result in side[key]]
    seconds: tuple[Quantity, ...] = (
        ("p50", "p99") if all(each.protocol == "latency" for each in results) else ("median",)
    )
    baselines = {result.case.baseline for result in results}
    if len(results) > len(cases) or len(baselines) > 1 or variant in baselines:
        return seconds
    timed = all(
        sample(side, of[key], name, seconds[0]).logs
        for side, of in zip(sides, cases, strict=True)
        for name in (variant, *baselines)
    )
    return (*seconds, "relative") if timed else seconds


def _alone(sides: tuple[Side, Side], cases: Cases) -> tuple[str, ...]:
    """Cases and variants that only one side has, a few words each."""
    said = []
    for number, side in enumerate(sides):
        mine, other = cases[number], cases[1 - number]
        said += [f"{label(key)} is only in {side.name}" for key in mine if key not in other]
        for key in (key for key in mine if key in other):
            names = [{each.name for result in its[key] for each in result.variants} for its in (mine, other)]
            said += [f"{variant} is only in {side.name}" for variant in sorted(names[0] - names[1])]
    return tuple(dict.fromkeys(said))


@dataclass(frozen=True)
class _Rules:
    """By what a case's comparisons are judged."""

    alpha: float
    series: bool
    margin: float
    sure: str


def _rules(cases: Cases, key: Key, *, comparisons: int) -> _Rules:
    measurements = [result.case.measurement for side in cases for result in side[key]]
    first, series = measurements[0], len(measurements) > len(cases)
    rules = [
        StoppingRule(
            rounds_min=each.rounds_min,
            rounds_max=each.rounds_max,
            target=float(each.target_relative_error),
            confidence=float(first.confidence),
            comparisons=comparisons,
        )
        for each in measurements
    ]
    sure = f"{100 * float(first.confidence):.4g} %"
    return _Rules(
        # When a run stopped was decided by looking at its launches, and that is paid for here as it was there.
        alpha=rules[0].alpha if series else min(rule.nominal_alpha for rule in rules),
        series=series,
        margin=float(first.equivalence_margin),
        sure=f"{sure} for {comparisons} comparisons together" if comparisons > 1 else sure,
    )


def _compare(
    key: Key,
    variant: str,
    quantity: Quantity,
    before: Sample,
    after: Sample,
    *,
    rules: _Rules,
    case: str,
    insisted: Sequence[str],
) -> Compared:
    """`case`: what tells it from the others that are compared."""

    def compared(*sentences: str, interval: Interval | None = None, verdict: Verdict | None = None) -> Compared:
        said = " ".join(filter(None, (*sentences, before.left_out, after.left_out)))
        said = f"With {case}: {said}" if case else said
        return Compared(key, variant, quantity, before, after, said, interval, verdict)

    if not before.logs or not after.logs:
        return compared(f"{variant}: not compared.")
    both = (before, after)
    sides = [each.results if rules.series else each.launches for each in both]
    interval = welch_interval(sides[0], sides[1], rules.alpha)
    if interval is None:
        numbers = " and ".join(str(len(side)) for side in sides)
        why = "are too few" if max(map(len, sides)) < MINIMUM_PAIRS else "differ too much"
        return compared(f"{variant}: {numbers} {'results' if rules.series else 'launches'} {why} for an interval.")
    checks = (*before.certificate.checks, *after.certificate.checks)
    clean = Clean(Certificate(checks=checks), after.about, before.about)
    verdict = clean.decide(interval, rules.margin)
    baseline = before.about.removeprefix(f"{variant} ").partition(",")[0]
    sentence = verdict_sentence(
        verdict, interval, variant=after.about, baseline=baseline, margin=rules.margin, confidence=rules.sure
    )
    if insisted:
        sentence = f"{sentence.removesuffix('.')}; compared although these differ: {', '.join(insisted)}."
    found = (
        [] if rules.series else [(each, find_gap(list(map(math.exp, each.launches)), rules.margin)) for each in both]
    )
    gaps = [gap.sentence(each.about) for each, gap in found if gap is not None]
    return compared(sentence, *gaps, interval=interval, verdict=verdict)
