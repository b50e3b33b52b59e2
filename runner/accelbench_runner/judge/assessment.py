"""Judge all launches of a case so far: parity, validity checks, comparisons, and whether to stop.

`python -m accelbench_runner.judge` reads a `JudgeRequest` from standard input and writes an `Assessment` to standard
output after every round. It imports numpy and scipy.special, which the supervisor does without.
"""

import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from accelbench.api.case import Case
from accelbench.api.reasons import StopReason
from accelbench.api.result import Certificate, Comparison, Disturbed, Failure, OutlierCounts, Quarantined, Spread
from accelbench.launch.record import LaunchRecord, ParityReading
from accelbench.stats.independence import effective_size
from accelbench.stats.interval import Interval, student_interval
from accelbench.stats.spread import Outliers, between_launch_share, find_outliers, total
from accelbench.stats.stopping import StoppingRule
from accelbench.stats.summary import QUANTITIES, Quantity
from accelbench.validity.certificate import certify
from accelbench.validity.evidence import Evidence
from accelbench.validity.quarantine import SplitRounds, split_disturbed
from accelbench.verdict.pairwise import MeasuredVariants
from accelbench_runner.judge.parity import read_parity
from accelbench_runner.judge.payback import payback
from accelbench_runner.judge_protocol import Assessment, JudgeRequest

CHECKED_ROUNDS = 2
"""Number of rounds of `accelbench check`: two launches of a variant have to agree."""
MAXIMUM_REASONS = 2
"""Maximum number of reasons that are stored for a disturbed round."""


def judge(request: JudgeRequest) -> Assessment:
    """Return the assessment of all launches of the request."""
    parity = read_parity(request)
    launches = tuple(
        launch.model_copy(update={"parity": parity.get(f"{launch.round}/{launch.variant}", launch.parity)})
        for launch in request.launches
    )
    if not request.timed:
        return check(request.case, launches, parity)
    split = split_disturbed(request.case, [launch for launch in launches if launch.failure is None])
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
        spread=spreads(split.counted, 1 - float(request.case.measurement.confidence)),
        stop=judged.stop(),
    )


def check(case: Case, launches: Sequence[LaunchRecord], parity: dict[str, ParityReading]) -> Assessment:
    """Assess the outputs of launches that were not timed; other load cannot disturb outputs."""
    successful = tuple(launch for launch in launches if launch.failure is None)
    rounds = len({launch.round for launch in launches})
    return Assessment(
        parity=parity,
        certificate=certify(Evidence(case=case, launches=successful), timed=False),
        comparisons=(),
        rounds=rounds,
        stop=StopReason.TARGET_MET if rounds >= CHECKED_ROUNDS else None,
    )


def spreads(launches: Iterable[LaunchRecord], alpha: float) -> dict[str, Spread]:
    """Return the spread of the times of each variant with timed blocks.

    The interval of a variant's own time misses it with probability `alpha`.
    """
    blocks: dict[str, list[list[float]]] = {}
    times: dict[str, list[float]] = {}
    for launch in launches:
        if (seconds := launch.seconds()) is not None:
            series = [block.seconds / block.units for block in launch.blocks]
            blocks.setdefault(launch.variant, []).append(series)
            times.setdefault(launch.variant, []).append(seconds)
    return {variant: _spread(series, times[variant], alpha) for variant, series in blocks.items()}


def _spread(launches: Sequence[Sequence[float]], times: Sequence[float], alpha: float) -> Spread:
    """Return the spread of one variant by its launches' blocks and times, in seconds per unit."""
    interval = student_interval([math.log(time) for time in times], alpha)
    return Spread(
        block_outliers=_outlier_counts(total(find_outliers(blocks) for blocks in launches)),
        launch_outliers=_outlier_counts(find_outliers([statistics.median(blocks) for blocks in launches])),
        between_launches=between_launch_share(launches),
        effective_blocks=statistics.median(effective_size(blocks) for blocks in launches),
        lower_seconds=interval.lower if interval else None,
        upper_seconds=interval.upper if interval else None,
    )


def _outlier_counts(outliers: Outliers) -> OutlierCounts:
    return OutlierCounts(**vars(outliers))


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
            comparisons=self.case.comparisons_in_run * max(1, len(self.quantities)),
        )

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        """Return the compared quantities, the deciding one first; they divide a comparison's share of alpha."""
        return next((QUANTITIES[launch.protocol] for launch in self.launches if launch.failure is None), ())

    @cached_property
    def only_observes(self) -> bool:
        """Return True if the launches observe, and time nothing."""
        successful = [launch for launch in self.launches if launch.failure is None]
        return bool(successful) and all(launch.observes for launch in successful)

    @cached_property
    def failures(self) -> Mapping[str, Failure]:
        """Return the first failure of each variant that failed."""
        failures: dict[str, Failure] = {}
        for launch in self.launches:
            if launch.failure is not None:
                failures.setdefault(launch.variant, launch.failure)
        return failures

    @cached_property
    def rounds(self) -> tuple[int, ...]:
        """Return the undisturbed rounds in which every variant was launched or had failed before."""
        launched = {(launch.round, launch.variant) for launch in self.launches}
        return tuple(
            round_number
            for round_number in sorted({launch.round for launch in self.launches} - self.split.reasons.keys())
            if all(
                (round_number, variant.name) in launched
                or (variant.name in self.failures and self.failures[variant.name].round < round_number)
                for variant in self.case.variants
            )
        )

    @cached_property
    def seconds(self) -> Mapping[str, Mapping[int, float]]:
        """Return seconds per unit by the deciding quantity, by variant and undisturbed round.

        A round that was cut short is included, because a variant and the baseline in it make a pair.
        """
        return self._seconds(None)

    def _seconds(self, quantity: Quantity | None) -> Mapping[str, Mapping[int, float]]:
        """Return seconds per unit by variant and undisturbed round; by the deciding quantity if `quantity` is None."""
        return {
            variant.name: {
                launch.round: value
                for launch in self.launches
                if launch.variant == variant.name and launch.failure is None
                if launch.round not in self.split.reasons
                if (value := launch.seconds(quantity)) is not None
            }
            for variant in self.case.variants
        }

    def _measured_variants(self, quantity: Quantity | None = None) -> MeasuredVariants:
        """Return the variants' times by `quantity`, by default the deciding one."""
        shown_quantity = (quantity or self.quantities[0]) if len(self.quantities) > 1 else None
        return MeasuredVariants(
            seconds=self._seconds(quantity) if quantity else self.seconds,
            failures=self.failures,
            certificate=self.certificate,
            rule=self.rule,
            margin=float(self.case.measurement.equivalence_margin),
            noisy=bool(self.split.noisy),
            quantity=shown_quantity,
        )

    def comparisons(self) -> Iterator[Comparison]:
        """Compare each variant with the baseline, in the case's order; nothing if the launches only observe."""
        if not self.only_observes:
            yield from self._with_baseline(None)

    def tail_comparisons(self) -> Iterator[Comparison]:
        """Compare each variant with the baseline by the quantities that do not decide."""
        for quantity in self.quantities[1:]:
            yield from self._with_baseline(quantity)

    def _with_baseline(self, quantity: Quantity | None) -> Iterator[Comparison]:
        """Compare each variant with the baseline; comparisons with a verdict get the payback."""
        baseline, measured = self.case.baseline, self._measured_variants(quantity)
        for name in (variant.name for variant in self.case.variants if variant.name != baseline):
            comparison = measured.compare(name, baseline)
            yield comparison if comparison.verdict is None else self._with_payback(comparison)

    def _with_payback(self, comparison: Comparison) -> Comparison:
        """Add the number of steps after which a slower first call has paid for itself, if it can be estimated."""
        sides = self._counted_launches(comparison.baseline), self._counted_launches(comparison.variant)
        finding = payback(*sides, self.rule.nominal_alpha)
        if finding is None:
            return comparison
        sentence = " ".join(filter(None, [comparison.sentence, finding.sentence]))
        return comparison.model_copy(update={"pays_back": finding.document, "sentence": sentence})

    def stop(self) -> StopReason | None:
        """Return why measuring may end now; None if another round is needed.

        Every comparison has to be as precise as the target. If the baseline failed or is invalid, every variant's own
        time has to be. Fewer than two valid variants leave nothing to compare. While every round so far was disturbed,
        another is needed. Launches that only observe need `rounds_min` rounds, which show whether they agree.
        """
        if self.only_observes:
            return StopReason.TARGET_MET if len(self.rounds) >= self.rule.rounds_min else None
        names = [variant.name for variant in self.case.variants]
        valid = [name for name in names if name not in self.failures and not self._is_rejected(name)]
        if len(valid) < min(2, len(names)):
            return StopReason.NOTHING_TO_COMPARE
        if self.split.all_disturbed:
            return None
        opponents = [name for name in valid if name != self.case.baseline] if self.case.baseline in valid else []
        intervals = (
            [self._measured_variants().speedup(name, self.case.baseline) for name in opponents]
            if opponents
            else [self._own_interval(name) for name in valid]
        )
        rounds = len(self.rounds)
        if all(
            interval is not None
            and self.rule.should_stop(rounds=rounds, relative_half_width=interval.relative_half_width)
            for interval in intervals
        ):
            return StopReason.TARGET_MET
        return StopReason.MAXIMUM_ROUNDS_REACHED if rounds >= self.rule.rounds_max else None

    def _is_rejected(self, variant: str) -> bool:
        """Return True if a check failed that no further round can pass."""
        return any(
            check.name not in self._measured_variants().excused_checks
            for check in self.certificate.failed_checks(variant)
        )

    def _own_interval(self, variant: str) -> Interval | None:
        """Return the interval of the variant's own time, in logarithms; None with too few rounds."""
        logs = [math.log(value) for value in self.seconds[variant].values()]
        return student_interval(logs, self.rule.nominal_alpha)

    def _counted_launches(self, variant: str) -> Mapping[int, LaunchRecord]:
        """Return the variant's launches in complete rounds that count, by round."""
        return {
            launch.round: launch
            for launch in self.split.counted
            if launch.variant == variant and launch.round in self.rounds
        }
