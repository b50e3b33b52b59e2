"""Judge all launches of a case so far: parity, validity checks, comparisons, and whether to stop.

`python -m accelbench_runner.judge` reads a `JudgeRequest` from standard input and writes an `Assessment` to a file
after every round. It imports numpy and scipy.special, which the supervisor does without.

Parity is the comparison of a launch's outputs with the reference. A round is quarantined, and does not count, if other
load disturbed it. A disturbed round counts if the case accepts noise; and as long as all rounds are disturbed, their
launches are checked, but none of their times is compared.
"""

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from accelbench.api.case import Case
from accelbench.api.reasons import StopReason
from accelbench.api.result import Certificate, Comparison, Disturbed, Failure, OutlierCounts, Quarantined, Spread
from accelbench.catalogue.workload_checks import InvalidWorkloadError
from accelbench.launch.record import BEFORE_ROUNDS, LaunchRecord, ParityReading
from accelbench.stats.independence import effective_size
from accelbench.stats.interval import Interval, student_interval
from accelbench.stats.spread import between_launch_share, find_outliers, total
from accelbench.stats.stopping import StoppingRule
from accelbench.stats.summary import QUANTITIES, Quantity, has_tail, quantile
from accelbench.validity.certificate import certify
from accelbench.validity.evidence import Evidence
from accelbench.validity.quarantine import SplitRounds, split_disturbed
from accelbench.verdict.pairwise import MeasuredVariants
from accelbench.verdict.rule import checks_against_verdict
from accelbench_runner.judge.no_reference import without_reference
from accelbench_runner.judge.parity import read_parity
from accelbench_runner.judge.payback import payback
from accelbench_runner.judge_protocol import Assessment, JudgeRequest

CHECKED_ROUNDS = 2
"""Number of rounds of `accelbench check`: two launches of a variant have to agree."""
MAXIMUM_REASONS = 2
"""Maximum number of reasons that are stored for a disturbed round."""


def judge(request: JudgeRequest) -> Assessment:
    """Check the request's launches, compare their times, and decide whether to stop."""
    parity = _read_parity(request)
    # Outputs of earlier rounds have been deleted, so their launches keep the parity that they already have.
    launches = tuple(
        launch.model_copy(update={"parity": parity.get(f"{launch.round}/{launch.variant}", launch.parity)})
        for launch in request.launches
    )
    if not request.timed:
        return assess_outputs(request.case, launches, parity)
    successful = [launch for launch in launches if launch.failure is None]
    split = split_disturbed(request.case, successful)
    evidence = Evidence(case=request.case, launches=split.counted, quarantined=split.quarantined)
    judged = JudgedCase(request.case, launches, certify(evidence), split)
    return Assessment(
        parity=parity,
        certificate=judged.certificate,
        comparisons=tuple(judged.comparisons()),
        tail_comparisons=tuple(judged.tail_comparisons()),
        rounds=len(judged.rounds),
        quarantined=tuple(
            Quarantined(round=round_number, reasons=reasons[:MAXIMUM_REASONS])
            for round_number, reasons in sorted(split.reasons.items())
        ),
        noisy=tuple(
            Disturbed(round=round_number, reasons=reasons[:MAXIMUM_REASONS])
            for round_number, reasons in sorted(split.noisy.items())
        ),
        spread=spread_by_variant(split.counted, 1 - float(request.case.measurement.confidence)),
        stop=judged.stop_reason(),
    )


def _read_parity(request: JudgeRequest) -> dict[str, ParityReading]:
    """Return the comparison of each launch's outputs with the reference, by `ROUND/VARIANT`."""
    if request.reference_delay:  # says why there is no reference yet; no variant is to blame for a slow machine
        return dict.fromkeys(request.outputs, _uncompared(request.reference_delay))
    if request.reference_problem:  # says why the reference cannot be computed
        error = InvalidWorkloadError(request.reference_problem)
        # Units of work are 0, because no outputs were compared.
        reading = without_reference(request.case, request.launches, units=0, error=error)
        return dict.fromkeys(request.outputs, reading)
    return read_parity(request)


def _uncompared(reason: str) -> ParityReading:
    """Return the reading of outputs whose parity is unknown for this reason."""
    return ParityReading(units=0, finite=True, worst_ratio=0.0, worst_array="", detail=reason, compared=False)


def assess_outputs(case: Case, launches: Sequence[LaunchRecord], parity: dict[str, ParityReading]) -> Assessment:
    """Check launches that were not timed, as those of `accelbench check`; compare no times.

    `parity` has the comparisons of the newest round's outputs with the reference, by `ROUND/VARIANT`.
    """
    successful = tuple(launch for launch in launches if launch.failure is None)
    # The record of a variant that could not be launched at all belongs to no round.
    rounds = len({launch.round for launch in launches} - {BEFORE_ROUNDS})
    return Assessment(
        parity=parity,
        certificate=certify(Evidence(case=case, launches=successful), timed=False),
        comparisons=(),
        rounds=rounds,
        stop=StopReason.TARGET_MET if rounds >= CHECKED_ROUNDS else None,
    )


def spread_by_variant(launches: Iterable[LaunchRecord], alpha: float) -> dict[str, Spread]:
    """Return the spread of each variant's times: outliers, and confidence intervals at level 1 - `alpha`.

    The intervals are those of the variant's time and, if calls are timed one by one, of their 99th percentile. Launches
    without a time are left out.
    """
    blocks_by_variant: dict[str, list[list[float]]] = {}
    times_by_variant: dict[str, list[float]] = {}
    tails_by_variant: dict[str, list[float]] = {}
    for launch in launches:
        time = launch.seconds()
        if time is not None:
            blocks_by_variant.setdefault(launch.variant, []).append(launch.seconds_of_blocks())
            times_by_variant.setdefault(launch.variant, []).append(time)
            if has_tail(launch.protocol):
                p99_seconds = quantile(launch.seconds_of_blocks(), 99)
                tails_by_variant.setdefault(launch.variant, []).append(p99_seconds)
    return {
        variant: _spread(blocks_by_launch, times_by_variant[variant], tails_by_variant.get(variant, ()), alpha)
        for variant, blocks_by_launch in blocks_by_variant.items()
    }


def _spread(
    blocks_by_launch: Sequence[Sequence[float]], times: Sequence[float], tails: Sequence[float], alpha: float
) -> Spread:
    """Return the spread of one variant's times, in seconds per unit of work.

    `blocks_by_launch` has the times of each launch's blocks, `times` one time of each launch, and `tails` the 99th
    percentile of each launch's calls, if they are timed one by one.
    """
    interval = student_interval([math.log(time) for time in times], alpha)
    tail_interval = student_interval([math.log(time) for time in tails], alpha)
    # `Outliers` and `OutlierCounts` have the same fields.
    block_outliers = total(find_outliers(blocks) for blocks in blocks_by_launch)
    launch_outliers = find_outliers([statistics.median(blocks) for blocks in blocks_by_launch])
    return Spread(
        block_outliers=OutlierCounts(**vars(block_outliers)),
        launch_outliers=OutlierCounts(**vars(launch_outliers)),
        between_launches=between_launch_share(blocks_by_launch),
        effective_blocks=statistics.median(effective_size(blocks) for blocks in blocks_by_launch),
        lower_seconds=interval.lower if interval else None,
        upper_seconds=interval.upper if interval else None,
        lower_p99_seconds=tail_interval.lower if tail_interval else None,
        upper_p99_seconds=tail_interval.upper if tail_interval else None,
    )


@dataclass(frozen=True)
class JudgedCase:
    """Compare the variants of a case, and decide whether to stop."""

    case: Case
    launches: tuple[LaunchRecord, ...]
    certificate: Certificate
    split: SplitRounds[LaunchRecord]

    @cached_property
    def rule(self) -> StoppingRule:
        """Return the stopping rule with the case's settings."""
        measurement = self.case.measurement
        return StoppingRule(
            rounds_min=measurement.rounds_min,
            rounds_max=measurement.rounds_max,
            target=float(measurement.target_relative_error),
            confidence=float(measurement.confidence),
            # There is no quantity if all launches failed, or if they only observe.
            comparisons=self.case.comparisons_in_run * max(1, len(self.quantities)),
        )

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        """Return the statistics of times that the launches' protocol compares; the first one decides the verdict."""
        for launch in self.launches:
            if launch.failure is None:
                return QUANTITIES[launch.protocol]
        return ()

    @cached_property
    def only_observes(self) -> bool:
        """Return True if the launches only observe values of the program, and time nothing."""
        successful = [launch for launch in self.launches if launch.failure is None]
        return bool(successful) and all(launch.observes for launch in successful)

    @cached_property
    def failures(self) -> Mapping[str, Failure]:
        """Return the first failure of each variant that failed, by variant."""
        failures: dict[str, Failure] = {}
        for launch in self.launches:
            if launch.failure is not None:
                failures.setdefault(launch.variant, launch.failure)
        return failures

    @cached_property
    def rounds(self) -> tuple[int, ...]:
        """Return the numbers of the complete rounds that count, in order.

        If the case does not accept noise, these are the rounds that no other load disturbed.
        """
        # `split.reasons` has the disturbed rounds, but none if the case accepts noise.
        counted_rounds = {launch.round for launch in self.launches} - self.split.reasons.keys()
        return tuple(round_number for round_number in sorted(counted_rounds) if self._is_complete(round_number))

    def _is_complete(self, round_number: int) -> bool:
        """Return True if each variant was launched in the round, or failed earlier."""
        launched = {launch.variant for launch in self.launches if launch.round == round_number}
        failed_earlier = {name for name, failure in self.failures.items() if failure.round < round_number}
        return all(variant.name in launched | failed_earlier for variant in self.case.variants)

    @cached_property
    def seconds(self) -> Mapping[str, Mapping[int, float]]:
        """Return each variant's seconds per unit in each round that counts, complete or not.

        The seconds are those of the quantity that decides the verdict.
        """
        return self._seconds(None)

    def _seconds(self, quantity: Quantity | None) -> Mapping[str, Mapping[int, float]]:
        """Return each variant's seconds per unit in each round that counts, complete or not.

        `quantity` is the statistic over a launch's blocks; None for the one that decides the verdict.
        """
        seconds: dict[str, dict[int, float]] = {variant.name: {} for variant in self.case.variants}
        for launch in self.launches:
            is_counted = launch.round not in self.split.reasons
            if launch.failure is not None or not is_counted or launch.variant not in seconds:
                continue
            value = launch.seconds(quantity)
            if value is not None:
                seconds[launch.variant][launch.round] = value
        return seconds

    def _measured_variants(self, quantity: Quantity | None = None) -> MeasuredVariants:
        """Return the variants' times by `quantity`, ready to be compared.

        A `quantity` of None stands for the one that decides the verdict.
        """
        # With a single quantity, comparisons do not name it.
        named_quantity = (quantity or self.quantities[0]) if len(self.quantities) > 1 else None
        return MeasuredVariants(
            seconds=self._seconds(quantity) if quantity else self.seconds,
            failures=self.failures,
            certificate=self.certificate,
            rule=self.rule,
            margin=float(self.case.measurement.equivalence_margin),
            noisy=bool(self.split.noisy),
            quantity=named_quantity,
        )

    def comparisons(self) -> Iterator[Comparison]:
        """Compare each variant with the baseline by the quantity that decides the verdict."""
        if not self.only_observes:
            yield from self._compare_with_baseline(None)

    def tail_comparisons(self) -> Iterator[Comparison]:
        """Compare each variant with the baseline by quantities that decide no verdict, such as the 99th percentile."""
        for quantity in self.quantities[1:]:
            yield from self._compare_with_baseline(quantity)

    def _compare_with_baseline(self, quantity: Quantity | None) -> Iterator[Comparison]:
        """Compare each variant with the baseline by `quantity`; None stands for the one that decides the verdict."""
        baseline, measured = self.case.baseline, self._measured_variants(quantity)
        for variant in self.case.variants:
            if variant.name != baseline:
                comparison = measured.compare(variant.name, baseline)
                yield comparison if comparison.verdict is None else self._add_payback(comparison)

    def _add_payback(self, comparison: Comparison) -> Comparison:
        """Return the comparison with the number of steps after which a slower first call pays off, if it is known."""
        baseline_launches = self._counted_launches(comparison.baseline)
        variant_launches = self._counted_launches(comparison.variant)
        finding = payback(baseline_launches, variant_launches, self.rule.nominal_alpha)
        if finding is None:
            return comparison
        sentence = " ".join(filter(None, [comparison.sentence, finding.sentence]))
        return comparison.model_copy(update={"pays_back": finding.document, "sentence": sentence})

    def stop_reason(self) -> StopReason | None:
        """Return why measuring may end now; None if another round is needed."""
        if self.only_observes:  # without times, the minimum of rounds is enough
            return StopReason.TARGET_MET if len(self.rounds) >= self.rule.rounds_min else None
        names = [variant.name for variant in self.case.variants]
        valid = [name for name in names if name not in self.failures and not self._is_rejected(name)]
        needed = min(2, len(names))  # a case may have a single variant
        if len(valid) < needed:
            return StopReason.NOTHING_TO_COMPARE
        if self.split.all_disturbed:  # no round counts yet, so none counts towards the maximum either
            return None
        rounds = len(self.rounds)
        are_narrow_enough = [
            interval is not None
            and self.rule.should_stop(rounds=rounds, relative_half_width=interval.relative_half_width)
            for interval in self._deciding_intervals(valid)
        ]
        if all(are_narrow_enough):
            return StopReason.TARGET_MET
        return StopReason.MAXIMUM_ROUNDS_REACHED if rounds >= self.rule.rounds_max else None

    def _deciding_intervals(self, valid: Sequence[str]) -> list[Interval | None]:
        """Return the confidence intervals that must be as narrow as the target before measuring stops.

        These are the intervals of speedups over the baseline; without a valid baseline, those of the variants' own
        times. `valid` names the variants that can be compared. An interval is None if there are too few rounds for it.
        """
        baseline = self.case.baseline
        opponents = [name for name in valid if name != baseline]
        if baseline in valid and opponents:
            return [self._measured_variants().speedup(name, baseline) for name in opponents]
        return [self._time_interval(name) for name in valid]

    def _is_rejected(self, variant: str) -> bool:
        """Return True if a check prevents a verdict on the variant, and does not fail because of the machine's load."""
        excused_checks = self._measured_variants().excused_checks
        return any(name not in excused_checks for name in checks_against_verdict(self.certificate, variant))

    def _time_interval(self, variant: str) -> Interval | None:
        """Return the confidence interval of the variant's mean log(seconds per unit); None with too few rounds."""
        logarithms = [math.log(value) for value in self.seconds[variant].values()]
        return student_interval(logarithms, self.rule.nominal_alpha)

    def _counted_launches(self, variant: str) -> Mapping[int, LaunchRecord]:
        """Return the variant's launches in the complete rounds that count (`rounds`), by round."""
        return {
            launch.round: launch
            for launch in self.split.counted
            if launch.variant == variant and launch.round in self.rounds
        }
