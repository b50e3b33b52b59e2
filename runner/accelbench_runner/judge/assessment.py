"""The judge: a short-lived child that is shown all launches so far and says what they are worth.

`python -m accelbench_runner.judge` reads a `JudgeRequest` from standard input and writes an `Assessment` to standard
output. It is run after every round: parity is known after the first, and it decides when there are enough. It imports
numpy and scipy.special, so that the supervisor need not.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from accelbench.api.case import Case
from accelbench.api.reasons import StopReason
from accelbench.api.result import Certificate, Comparison, Disturbed, Failure, Quarantined
from accelbench.catalogue import script
from accelbench.launch.fact import Unreadable
from accelbench.launch.record import LaunchRecord, ParityReading, UnseenReading
from accelbench.stats.interval import Interval, student_interval
from accelbench.stats.stopping import StoppingRule
from accelbench.stats.summary import QUANTITIES, Quantity
from accelbench.validity.certificate import certify
from accelbench.validity.evidence import Evidence
from accelbench.validity.quarantine import Rounds, split_disturbed
from accelbench.verdict.pairwise import MeasuredVariants
from accelbench_runner.judge.own_program import REMEDY
from accelbench_runner.judge.payback import payback
from accelbench_runner.judge.spread import spreads
from accelbench_runner.judge_protocol import Assessment, JudgeRequest
from accelbench_runner.outputs import UNSEEN

CHECKED_ROUNDS = 2
"""A variant that is checked runs twice, to see whether its launches agree."""
MAXIMUM_REASONS = 2
"""Of a disturbed round: one is enough for it."""


def judge(request: JudgeRequest) -> Assessment:
    """Parity of the new outputs, the certificate, the comparisons, and whether there are enough rounds."""
    parity = read_parity(request)
    launches = tuple(
        launch.model_copy(update={"parity": parity.get(f"{launch.round}/{launch.variant}", launch.parity)})
        for launch in request.launches
    )
    if not request.timed:
        return check(request.case, launches, parity)
    split = split_disturbed(request.case, [launch for launch in launches if launch.failure is None])
    evidence = Evidence(case=request.case, launches=split.counted, quarantined=split.quarantined)
    measured = JudgedCase(request.case, launches, certify(evidence), split)
    return Assessment(
        parity=parity,
        certificate=measured.certificate,
        comparisons=tuple(measured.comparisons()),
        tail_comparisons=tuple(measured.tail_comparisons()),
        rounds=len(measured.rounds),
        quarantined=tuple(
            Quarantined(round=number, reasons=why[:MAXIMUM_REASONS]) for number, why in sorted(split.reasons.items())
        ),
        noisy=tuple(
            Disturbed(round=number, reasons=why[:MAXIMUM_REASONS]) for number, why in sorted(split.noisy.items())
        ),
        spread=spreads(split.counted, 1 - float(request.case.measurement.confidence)),
        stop=measured.stop(),
    )


def check(case: Case, launches: Sequence[LaunchRecord], parity: dict[str, ParityReading]) -> Assessment:
    """Whether launches that nobody timed compute what they should; nobody disturbs that."""
    sound = tuple(launch for launch in launches if launch.failure is None)
    rounds = len({launch.round for launch in launches})
    return Assessment(
        parity=parity,
        certificate=certify(Evidence(case=case, launches=sound), timed=False),
        comparisons=(),
        rounds=rounds,
        stop=StopReason.TARGET_MET if rounds >= CHECKED_ROUNDS else None,
    )


def read_parity(request: JudgeRequest) -> dict[str, ParityReading]:
    """A reading for each of the request's outputs; whatever goes wrong with one is its reading."""
    from accelbench_runner.judge.parity import compare, mismatch, read_outputs
    from accelbench_runner.judge.reference import reference

    launches = {f"{launch.round}/{launch.variant}": launch for launch in request.launches}
    readings: dict[str, ParityReading] = {}
    for key, directory in request.outputs.items():
        launch = launches.get(key)
        if launch and launch.observes:
            continue
        units = launch.facts.parity_units if launch else Unreadable(why=f"there is no launch {key}")
        if isinstance(units, Unreadable):
            readings[key] = mismatch(0, units.why)
            continue
        try:
            outputs = read_outputs(Path(directory))
        except Exception as error:  # noqa: BLE001 - a launch wrote the file, or did not
            readings[key] = mismatch(units, f"its outputs cannot be read: {error!r}")
            continue
        try:
            reading = compare(outputs, reference(request.case, units, Path(request.directory)), units)
            readings[key] = _against_itself(reading, launch)
        except Exception as error:  # noqa: BLE001 - the reference is a workload author's code
            readings[key] = mismatch(units, f"the reference cannot be computed: {script.in_one_line(error)}")
        if launch and (unseen := read_unseen(request, launch, Path(directory))):
            readings[key] = readings[key].model_copy(update={"unseen": unseen})
    return _agreeing(request, readings)


def _against_itself(reading: ParityReading, launch: LaunchRecord | None) -> ParityReading:
    """A baseline that differs from its own program in float64 says what to do."""
    if launch is None or reading.own_program != launch.variant or reading.worst_ratio <= 1:
        return reading
    return reading.model_copy(update={"detail": f"in float64 it computes something else: {REMEDY}; {reading.detail}"})


def _agreeing(request: JudgeRequest, readings: dict[str, ParityReading]) -> dict[str, ParityReading]:
    """The readings; where all variants differ from the reference, and not from each other, they say so."""
    from accelbench_runner.judge.parity import agree, read_outputs
    from accelbench_runner.judge.reference import reference

    units, *others = {reading.units for reading in readings.values()} or {0}
    # Numbers that overflow in all variants alike prove nothing against the reference.
    wrong = all(reading.finite and reading.worst_ratio > 1 for reading in readings.values())
    if len(readings) < 2 or others or not wrong:  # noqa: PLR2004
        return readings
    try:
        right = reference(request.case, units, Path(request.directory))
        if not agree([read_outputs(Path(request.outputs[key])) for key in readings], right):
            return readings
    except Exception:  # noqa: BLE001 - the readings have said what is wrong
        return readings
    who = "both variants agree" if len(readings) == 2 else "all variants agree"  # noqa: PLR2004
    said = f"{who} with each other and differ from the reference"
    return {
        key: reading.model_copy(update={"detail": f"{reading.detail}; {said}"}) for key, reading in readings.items()
    }


def read_unseen(request: JudgeRequest, launch: LaunchRecord, outputs: Path) -> UnseenReading | None:
    """The reading of what the launch made of inputs that it had not seen; None where it was given none."""
    from accelbench_runner.judge.parity import compare, mismatch, read_outputs, within
    from accelbench_runner.judge.reference import reference

    found = launch.facts.dependence
    if isinstance(found, Unreadable) or found.units is None:
        return None
    units, directory = found.units, Path(request.directory)
    try:
        right = reference(request.case, units, directory, unseen_seed=request.unseen_seed)
        before = reference(request.case, units, directory)
        reading = compare(read_outputs(outputs, UNSEEN), right, units)
        return UnseenReading(reading=reading, changes=not within(before.values, right))
    except Exception as error:  # noqa: BLE001 - the reference is a workload author's code, the outputs a launch's
        return UnseenReading(reading=mismatch(units, f"cannot be compared: {script.in_one_line(error)}"), changes=True)


@dataclass(frozen=True)
class JudgedCase:
    """A case's launches with their certificate: what comparisons and the decision to stop are made from."""

    case: Case
    launches: tuple[LaunchRecord, ...]
    certificate: Certificate
    split: Rounds[LaunchRecord]

    @cached_property
    def rule(self) -> StoppingRule:
        """How many rounds, how narrow, how sure."""
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
        """What is compared: the first decides; a pair's share of the run's alpha is divided among them."""
        return next((QUANTITIES[launch.protocol] for launch in self.launches if launch.failure is None), ())

    @cached_property
    def observed(self) -> bool:
        """Nothing was timed."""
        sound = [launch for launch in self.launches if launch.failure is None]
        return bool(sound) and all(launch.observes for launch in sound)

    @cached_property
    def failures(self) -> Mapping[str, Failure]:
        """The first failure of each variant that has one."""
        found: dict[str, Failure] = {}
        for launch in self.launches:
            if launch.failure is not None:
                found.setdefault(launch.variant, launch.failure)
        return found

    @cached_property
    def rounds(self) -> tuple[int, ...]:
        """The complete rounds that nothing disturbed: every variant was launched, or had failed before."""
        launched = {(launch.round, launch.variant) for launch in self.launches}
        return tuple(
            number
            for number in sorted({launch.round for launch in self.launches} - self.split.reasons.keys())
            if all(
                (number, variant.name) in launched
                or (variant.name in self.failures and self.failures[variant.name].round < number)
                for variant in self.case.variants
            )
        )

    @cached_property
    def seconds(self) -> Mapping[str, Mapping[int, float]]:
        """By variant and round that nothing disturbed, seconds per unit by what decides.

        Of a round that was cut short, too: whoever was measured in it beside the baseline makes a pair.
        """
        return self._seconds(None)

    def _seconds(self, quantity: Quantity | None) -> Mapping[str, Mapping[int, float]]:
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

    def _compared(self, quantity: Quantity | None = None) -> MeasuredVariants:
        """The variants by a quantity; None: by what decides."""
        named = (quantity or self.quantities[0]) if len(self.quantities) > 1 else None
        return MeasuredVariants(
            seconds=self._seconds(quantity) if quantity else self.seconds,
            failures=self.failures,
            certificate=self.certificate,
            rule=self.rule,
            margin=float(self.case.measurement.equivalence_margin),
            noisy=bool(self.split.noisy),
            quantity=named,
        )

    def comparisons(self) -> Iterator[Comparison]:
        """Each variant but the baseline against it, in the case's order; none where nothing was timed."""
        if not self.observed:
            yield from self._each_against_the_baseline(None)

    def tail_comparisons(self) -> Iterator[Comparison]:
        """The same by what is compared beside."""
        for quantity in self.quantities[1:]:
            yield from self._each_against_the_baseline(quantity)

    def _each_against_the_baseline(self, quantity: Quantity | None) -> Iterator[Comparison]:
        baseline, measured = self.case.baseline, self._compared(quantity)
        for name in (variant.name for variant in self.case.variants if variant.name != baseline):
            found = measured.compare(name, baseline)
            yield found if found.verdict is None else self._with_payback(found)

    def _with_payback(self, comparison: Comparison) -> Comparison:
        """The comparison, and after how many steps a dearer first call has paid."""
        sides = self._counted(comparison.baseline), self._counted(comparison.variant)
        found = payback(*sides, self.rule.nominal_alpha)
        if found is None:
            return comparison
        sentence = " ".join(filter(None, [comparison.sentence, found.sentence]))
        return comparison.model_copy(update={"pays_back": found.document, "sentence": sentence})

    def stop(self) -> StopReason | None:
        """Why measuring may end now: nothing left to learn, learnt well enough, or as many rounds as allowed.

        Comparisons decide where there are any. A single variant, or those that outlive their baseline, are measured
        until their own times are known as well as a speedup would have been. While every round was disturbed, the next
        may not be. What is observed is observed `rounds_min` times, to see whether launches agree.
        """
        if self.observed:
            return StopReason.TARGET_MET if len(self.rounds) >= self.rule.rounds_min else None
        names = [variant.name for variant in self.case.variants]
        sound = [name for name in names if name not in self.failures and not self._spoilt(name)]
        if len(sound) < min(2, len(names)):
            return StopReason.NOTHING_TO_COMPARE
        if self.split.all_disturbed:
            return None
        compared = [name for name in sound if name != self.case.baseline] if self.case.baseline in sound else []
        intervals = (
            [self._compared().speedup(name, self.case.baseline) for name in compared]
            if compared
            else [self._own_times(name) for name in sound]
        )
        rounds = len(self.rounds)
        if all(
            interval is not None
            and self.rule.should_stop(rounds=rounds, relative_half_width=interval.relative_half_width)
            for interval in intervals
        ):
            return StopReason.TARGET_MET
        return StopReason.MAXIMUM_ROUNDS_REACHED if rounds >= self.rule.rounds_max else None

    def _spoilt(self, variant: str) -> bool:
        """Another round cannot mend it."""
        return any(check.name not in self._compared().excused for check in self.certificate.failed(variant))

    def _own_times(self, variant: str) -> Interval | None:
        logs = [math.log(value) for value in self.seconds[variant].values()]
        return student_interval(logs, self.rule.nominal_alpha)

    def _counted(self, variant: str) -> Mapping[int, LaunchRecord]:
        return {
            launch.round: launch
            for launch in self.split.counted
            if launch.variant == variant and launch.round in self.rounds
        }
