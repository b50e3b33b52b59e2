"""Compare two variants of a case, from the seconds of their launches by round to a verdict with its sentence."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from accelbench import figures
from accelbench.api.result import Certificate, Comparison, Failure
from accelbench.document import decimal_string, shorten
from accelbench.stats.gap import find_gap
from accelbench.stats.interval import MINIMUM_PAIRS, Interval, log_speedups, student_interval
from accelbench.stats.stopping import StoppingRule
from accelbench.stats.summary import Quantity
from accelbench.validity.quarantine import disturbance_check_names, noise_check_names
from accelbench.verdict.rule import (
    ValidMeasurement,
    checks_against_verdict,
    noisy_sentence,
    too_few_sentence,
    verdict_sentence,
)

MAXIMUM_SENTENCE = 1000
MAXIMUM_READING = 400
"""Maximum length of a failed check's reading in a sentence; the certificate has the rest."""
WORK_CHECKS = ("work-present", "depends-on-inputs", "work-skipped", "precision")
"""Checks that detect a program which does less than it should; a verdict names those that are untested."""


@dataclass(frozen=True)
class MeasuredVariants:
    """Hold the launches' times, failures and certificate of a case, from which its variants are compared."""

    seconds: Mapping[str, Mapping[int, float]]
    """Seconds per unit, by variant and by round that counts."""
    failures: Mapping[str, Failure]
    certificate: Certificate
    rule: StoppingRule
    """Rounds, target and confidence of the case, for all its comparisons."""
    margin: float
    """Largest relative difference that does not matter."""
    noisy: bool = False
    """True if rounds count that other load disturbed."""
    quantity: Quantity | None = None
    """Compared statistic, if the sentence has to name it."""

    @cached_property
    def excused_checks(self) -> frozenset[str]:
        """Return the names of the checks that fail because of other load on the machine, not because of a variant.

        If disturbed rounds count (`noisy`), also return the checks of all rounds together that such load can make fail.
        """
        return noise_check_names() if self.noisy else disturbance_check_names()

    @cached_property
    def _certificate_for_verdict(self) -> Certificate:
        """Return the certificate; if disturbed rounds count (`noisy`), without the checks in `excused_checks`."""
        if not self.noisy:
            return self.certificate
        checks = (check for check in self.certificate.checks if check.name not in self.excused_checks)
        return Certificate(checks=tuple(checks))

    def log_speedups(self, variant: str, baseline: str) -> list[float]:
        """Return the logarithm of the speedup of each round that has both variants, in the order of rounds."""
        baseline_seconds, variant_seconds = self.seconds[baseline], self.seconds[variant]
        rounds = sorted(baseline_seconds.keys() & variant_seconds.keys())
        return log_speedups(
            [baseline_seconds[number] for number in rounds], [variant_seconds[number] for number in rounds]
        )

    def speedup(self, variant: str, baseline: str) -> Interval | None:
        """Return the speedup's confidence interval; None with too few rounds, or with rounds that differ too much."""
        return student_interval(self.log_speedups(variant, baseline), self.rule.nominal_alpha)

    def compare(self, variant: str, baseline: str) -> Comparison:
        """Return the comparison of two variants, with a verdict or with the reason why there is none."""
        log_ratios = self.log_speedups(variant, baseline)

        def make_comparison(sentence: str, **fields: Any) -> Comparison:
            """Return a comparison of the two variants; `fields` are its numbers, verdict or failed checks."""
            return Comparison(
                variant=variant,
                baseline=baseline,
                rounds=len(log_ratios),
                confidence=decimal_string(1 - self.rule.alpha),
                quantity=self.quantity,
                sentence=f"{self.quantity}: {sentence}" if self.quantity else sentence,
                **fields,
            )

        for name in (variant, baseline):
            if failure := self.failures.get(name):
                return make_comparison(f"{name} failed {failure.when} ({failure.reason}): nothing to compare.")
        # These checks failed or, if none failed, are necessary and untested or missing.
        if check_names := checks_against_verdict(self._certificate_for_verdict, variant, baseline):
            return make_comparison(self._invalid_sentence((variant, baseline), check_names), invalid=check_names)
        if not log_ratios:
            return make_comparison(f"{variant}: no complete round yet.")
        speedup = decimal_string(math.exp(math.fsum(log_ratios) / len(log_ratios)))
        interval = self.speedup(variant, baseline)
        if interval is None:
            reason = "too few for" if len(log_ratios) < MINIMUM_PAIRS else "which differ too much for"
            rounds = figures.count(len(log_ratios), "round")
            return make_comparison(f"{variant}: {rounds}, {reason} an interval.", speedup=speedup)
        # `_decide` returns the sentence too.
        return make_comparison(speedup=speedup, **self._decide(interval, variant, baseline))

    def _decide(self, interval: Interval, variant: str, baseline: str) -> dict[str, Any]:
        """Return the fields of a comparison that follow from its interval: ends, sentence, and a verdict or `noisy`."""
        names = {"variant": variant, "baseline": baseline}
        fields: dict[str, Any] = {"lower": decimal_string(interval.lower), "upper": decimal_string(interval.upper)}
        if self.noisy:
            fields["noisy"] = True  # and no verdict
            sentence = noisy_sentence(interval, **names, confidence=self._confidence())
        elif interval.pairs < self.rule.rounds_min:
            fields["verdict"] = "inconclusive"
            rounds_min = self.rule.rounds_min
            sentence = too_few_sentence(interval, **names, rounds=interval.pairs, rounds_min=rounds_min)
        else:
            # `compare` has found no check against a verdict; otherwise this raises InvalidMeasurementError.
            verdict = ValidMeasurement(self.certificate, variant, baseline).decide(interval, self.margin)
            fields["verdict"] = verdict
            sentence = verdict_sentence(verdict, interval, **names, margin=self.margin, confidence=self._confidence())
        return fields | {"sentence": " ".join([sentence, *self._remarks(variant, baseline)])}

    def _remarks(self, variant: str, baseline: str) -> Iterator[str]:
        """Yield sentences that limit the verdict: about launches in two groups, and about untested checks."""
        for name in (variant, baseline):
            if gap := find_gap(tuple(self.seconds[name].values()), self.rule.target):
                yield gap.sentence(name)
        if untested := self._list_untested({variant, baseline, None}):
            yield f"Untested: {untested}."

    def _list_untested(self, variants: set[str | None]) -> str:
        """List the untested checks that detect skipped work, with the reasons. A variant None means all variants."""
        texts = set()
        for check in self.certificate.checks:
            if check.name in WORK_CHECKS and check.outcome == "untested" and check.variant in variants:
                for_variant = f" for {check.variant}" if check.variant else ""
                texts.add(f"{check.name}{for_variant} ({check.reading})")
        return "; ".join(sorted(texts))

    def _confidence(self) -> str:
        """Describe the confidence: `95 %`, or `95 % for the run's 3 comparisons together`."""
        percent = f"{100 * self.rule.confidence:.4g} %"
        if self.rule.comparisons == 1:
            return percent
        return f"{percent} for the run's {self.rule.comparisons} comparisons together"

    def _invalid_sentence(self, variants: tuple[str, str], check_names: tuple[str, ...]) -> str:
        """Return a sentence about the failed checks of both variants; if none failed, about `check_names`.

        A comparison is also invalid if a necessary check is missing or untested.
        """
        failures = []
        for check in self.certificate.failed_checks(*variants):
            subject = f"{check.variant} fails {check.name}" if check.variant else check.name
            failures.append(f"{subject}: {shorten(check.reading, MAXIMUM_READING)}")
        return shorten(f"Invalid: {'; '.join(failures) or ', '.join(check_names)}.", MAXIMUM_SENTENCE)
