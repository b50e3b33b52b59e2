"""Two variants of a case, from the seconds of their launches by round to the comparison that is shown."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from accelbench import figures
from accelbench.api.result import Certificate, Comparison, Failure
from accelbench.document import decimal_string
from accelbench.stats.gap import find_gap
from accelbench.stats.interval import MINIMUM_PAIRS, Interval, log_speedups, student_interval
from accelbench.stats.stopping import StoppingRule
from accelbench.stats.summary import Quantity
from accelbench.validity.quarantine import disturbance_checks, failed_by_noise
from accelbench.verdict.rule import Clean, noisy_sentence, too_few_sentence, unclean, verdict_sentence

MAXIMUM_SENTENCE = 500
WEIGHTY = ("work-present", "depends-on-inputs", "work-skipped", "precision")
"""Checks that a program which does less than it should would fail: a verdict says so where they could not be made."""


@dataclass(frozen=True)
class MeasuredVariants:
    """What comparisons of a case are made from."""

    seconds: Mapping[str, Mapping[int, float]]
    """Per unit, by variant and round that counts."""
    failures: Mapping[str, Failure]
    certificate: Certificate
    rule: StoppingRule
    margin: float
    """The relative difference that does not matter."""
    noisy: bool = False
    """Rounds that other load disturbed count."""
    quantity: Quantity | None = None
    """What is compared, where it has to be said."""

    @cached_property
    def excused(self) -> frozenset[str]:
        """Names of the checks that say nothing against a variant: a quieter round may pass them."""
        return failed_by_noise() if self.noisy else frozenset(check.name for check in disturbance_checks())

    @cached_property
    def _certifying(self) -> Certificate:
        """The checks that an interval needs: where disturbed rounds count, all but those that noise can fail."""
        if not self.noisy:
            return self.certificate
        return Certificate(checks=tuple(each for each in self.certificate.checks if each.name not in self.excused))

    def pairs(self, variant: str, baseline: str) -> list[float]:
        """Log-speedups of the rounds that both were measured in, in order."""
        before, after = self.seconds[baseline], self.seconds[variant]
        rounds = sorted(before.keys() & after.keys())
        return log_speedups([before[number] for number in rounds], [after[number] for number in rounds])

    def speedup(self, variant: str, baseline: str) -> Interval | None:
        """The interval on the speedup; None with too few pairs."""
        return student_interval(self.pairs(variant, baseline), self.rule.nominal_alpha)

    def compare(self, variant: str, baseline: str) -> Comparison:
        """The comparison with its verdict, or with why there is none."""
        pairs, rule = self.pairs(variant, baseline), self.rule

        def comparison(sentence: str, **found: Any) -> Comparison:
            return Comparison(
                variant=variant,
                baseline=baseline,
                rounds=len(pairs),
                confidence=decimal_string(1 - rule.alpha),
                quantity=self.quantity,
                sentence=f"{self.quantity}: {sentence}" if self.quantity else sentence,
                **found,
            )

        for name in (variant, baseline):
            if failure := self.failures.get(name):
                return comparison(f"{name} failed in round {failure.round} ({failure.reason}): nothing to compare.")
        if names := unclean(self._certifying, variant, baseline):
            return comparison(self._invalid_sentence((variant, baseline), names), invalid=names)
        if not pairs:
            return comparison(f"{variant}: no complete round yet.")
        speedup = decimal_string(math.exp(math.fsum(pairs) / len(pairs)))
        interval = self.speedup(variant, baseline)
        if interval is None:
            why = "too few for" if len(pairs) < MINIMUM_PAIRS else "which differ too much for"
            words = f"{variant}: {figures.count(len(pairs), 'round')}, {why} an interval."
            return comparison(words, speedup=speedup)
        return comparison(speedup=speedup, **self._decided(interval, variant, baseline))

    def _decided(self, interval: Interval, variant: str, baseline: str) -> dict[str, Any]:
        """What an interval says of the two: its ends, the verdict where there is one, and the sentence."""
        names = {"variant": variant, "baseline": baseline}
        found: dict[str, Any] = {"lower": decimal_string(interval.lower), "upper": decimal_string(interval.upper)}
        if self.noisy:
            found["noisy"] = True
            words = noisy_sentence(interval, **names, sure=self._sure())
        elif interval.pairs < self.rule.rounds_min:
            found["verdict"] = "inconclusive"
            words = too_few_sentence(interval, **names, rounds=interval.pairs, least=self.rule.rounds_min)
        else:
            verdict = Clean(self.certificate, variant, baseline).decide(interval, self.margin)
            found["verdict"] = verdict
            words = verdict_sentence(verdict, interval, **names, margin=self.margin, sure=self._sure())
        return found | {"sentence": " ".join([words, *self._remarks(variant, baseline)])}

    def _remarks(self, variant: str, baseline: str) -> Iterator[str]:
        """What a reader must know beside an interval: a gap between launches, checks that are untested."""
        for name in (variant, baseline):
            if gap := find_gap(tuple(self.seconds[name].values()), self.rule.target):
                yield gap.sentence(name)
        if unchecked := self._unchecked({variant, baseline, None}):
            yield f"Untested: {unchecked}."

    def _unchecked(self, sides: set[str | None]) -> str:
        """What a reader of the verdict must know is untested, of which side and why."""
        found = {
            f"{check.name}{f' for {check.variant}' if check.variant else ''} ({check.reading})"
            for check in self.certificate.checks
            if check.name in WEIGHTY and check.outcome == "untested" and check.variant in sides
        }
        return "; ".join(sorted(found))

    def _sure(self) -> str:
        sure = f"{100 * self.rule.confidence:.4g} %"
        together = f"the run's {self.rule.comparisons} comparisons together"
        return sure if self.rule.comparisons == 1 else f"{sure} for {together}"

    def _invalid_sentence(self, sides: tuple[str, str], names: tuple[str, ...]) -> str:
        found = [
            f"{check.variant} fails {check.name}: {check.reading}"
            if check.variant
            else f"{check.name}: {check.reading}"
            for check in self.certificate.failed(*sides)
        ]
        return f"Invalid: {'; '.join(found) or ', '.join(names)}."[:MAXIMUM_SENTENCE]
