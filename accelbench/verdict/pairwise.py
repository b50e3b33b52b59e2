"""Compare two variants of a case, from the seconds of their launches by round to a verdict with its sentence."""

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
WORK_CHECKS = ("work-present", "depends-on-inputs", "work-skipped", "precision")
"""Checks that detect a program which does less than it should; a verdict names those that are untested."""


@dataclass(frozen=True)
class MeasuredVariants:
    """Hold what the comparisons of a case need."""

    seconds: Mapping[str, Mapping[int, float]]
    """Seconds per unit, by variant and by round that counts."""
    failures: Mapping[str, Failure]
    certificate: Certificate
    rule: StoppingRule
    margin: float
    """Relative difference that does not matter."""
    noisy: bool = False
    """True if rounds count that other load disturbed."""
    quantity: Quantity | None = None
    """Compared statistic, if the sentence has to name it."""

    @cached_property
    def excused(self) -> frozenset[str]:
        """Return the names of the checks that do not invalidate a variant when they fail.

        In a noisy case these are all checks that other load can fail, otherwise only those that disqualify a round.
        """
        return failed_by_noise() if self.noisy else frozenset(check.name for check in disturbance_checks())

    @cached_property
    def _required_checks(self) -> Certificate:
        """Return the checks that an interval needs: without those that noise can fail, if noisy."""
        if not self.noisy:
            return self.certificate
        return Certificate(checks=tuple(check for check in self.certificate.checks if check.name not in self.excused))

    def pairs(self, variant: str, baseline: str) -> list[float]:
        """Return the log-speedup of each round in which both variants were measured, in the order of the rounds."""
        before, after = self.seconds[baseline], self.seconds[variant]
        rounds = sorted(before.keys() & after.keys())
        return log_speedups([before[number] for number in rounds], [after[number] for number in rounds])

    def speedup(self, variant: str, baseline: str) -> Interval | None:
        """Return the interval on the speedup; None with fewer than two pairs, or if it is too wide to be useful."""
        return student_interval(self.pairs(variant, baseline), self.rule.nominal_alpha)

    def compare(self, variant: str, baseline: str) -> Comparison:
        """Return the comparison of two variants: with a verdict, or with the reason why there is none."""
        pairs, rule = self.pairs(variant, baseline), self.rule

        def comparison(sentence: str, **fields: Any) -> Comparison:
            return Comparison(
                variant=variant,
                baseline=baseline,
                rounds=len(pairs),
                confidence=decimal_string(1 - rule.alpha),
                quantity=self.quantity,
                sentence=f"{self.quantity}: {sentence}" if self.quantity else sentence,
                **fields,
            )

        for name in (variant, baseline):
            if failure := self.failures.get(name):
                return comparison(f"{name} failed in round {failure.round} ({failure.reason}): nothing to compare.")
        if names := unclean(self._required_checks, variant, baseline):
            return comparison(self._invalid_sentence((variant, baseline), names), invalid=names)
        if not pairs:
            return comparison(f"{variant}: no complete round yet.")
        speedup = decimal_string(math.exp(math.fsum(pairs) / len(pairs)))
        interval = self.speedup(variant, baseline)
        if interval is None:
            reason = "too few for" if len(pairs) < MINIMUM_PAIRS else "which differ too much for"
            words = f"{variant}: {figures.count(len(pairs), 'round')}, {reason} an interval."
            return comparison(words, speedup=speedup)
        return comparison(speedup=speedup, **self._decide(interval, variant, baseline))

    def _decide(self, interval: Interval, variant: str, baseline: str) -> dict[str, Any]:
        """Return the interval's ends, the verdict if there is one, and the sentence."""
        names = {"variant": variant, "baseline": baseline}
        fields: dict[str, Any] = {"lower": decimal_string(interval.lower), "upper": decimal_string(interval.upper)}
        if self.noisy:
            fields["noisy"] = True
            words = noisy_sentence(interval, **names, confidence=self._confidence())
        elif interval.pairs < self.rule.rounds_min:
            fields["verdict"] = "inconclusive"
            words = too_few_sentence(interval, **names, rounds=interval.pairs, least=self.rule.rounds_min)
        else:
            verdict = Clean(self.certificate, variant, baseline).decide(interval, self.margin)
            fields["verdict"] = verdict
            words = verdict_sentence(verdict, interval, **names, margin=self.margin, confidence=self._confidence())
        return fields | {"sentence": " ".join([words, *self._remarks(variant, baseline)])}

    def _remarks(self, variant: str, baseline: str) -> Iterator[str]:
        """Yield caveats for an interval: launches in groups, untested checks that matter."""
        for name in (variant, baseline):
            if gap := find_gap(tuple(self.seconds[name].values()), self.rule.target):
                yield gap.sentence(name)
        if untested := self._list_untested({variant, baseline, None}):
            yield f"Untested: {untested}."

    def _list_untested(self, sides: set[str | None]) -> str:
        """List the untested ones of `WORK_CHECKS` for these variants, with the reasons; empty if there are none."""
        checks = {
            f"{check.name}{f' for {check.variant}' if check.variant else ''} ({check.reading})"
            for check in self.certificate.checks
            if check.name in WORK_CHECKS and check.outcome == "untested" and check.variant in sides
        }
        return "; ".join(sorted(checks))

    def _confidence(self) -> str:
        """Return the confidence for a sentence: `95 %`, or `95 % for the run's 3 comparisons together`."""
        percent = f"{100 * self.rule.confidence:.4g} %"
        together = f"the run's {self.rule.comparisons} comparisons together"
        return percent if self.rule.comparisons == 1 else f"{percent} for {together}"

    def _invalid_sentence(self, sides: tuple[str, str], names: tuple[str, ...]) -> str:
        """Describe the failed checks of both variants, or list `names` if the checks are untested."""
        failures = [
            f"{check.variant} fails {check.name}: {check.reading}"
            if check.variant
            else f"{check.name}: {check.reading}"
            for check in self.certificate.failed(*sides)
        ]
        return f"Invalid: {'; '.join(failures) or ', '.join(names)}."[:MAXIMUM_SENTENCE]
