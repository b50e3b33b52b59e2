"""Run a case: rounds of launches, the judge after each round, checkpoints and the result into the log.

While a launch measures, this process sleeps: it computes between launches only, and imports neither numpy nor a
framework.

A checkpoint is the result so far. A quarantined round is one that other load has disturbed, so that it does not count.
A probe is work of accelbench's own within a launch. A warm probe is a second start of a variant, with the compile
caches of its launch.
"""

import contextlib
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from accelbench.api.case import Case
from accelbench.api.reasons import StopReason
from accelbench.api.result import Disturbed, Failure, Phase, Result
from accelbench.delivery.log import (
    DocumentKind,
    Headline,
    LaunchFinished,
    LaunchStarted,
    PhaseReached,
    RoundFinished,
    TimeSoFar,
)
from accelbench.document import decimal_string, timestamp
from accelbench.launch.fact import is_reported
from accelbench.launch.facts import Probe
from accelbench.launch.record import LaunchRecord
from accelbench.plan.round_order import round_order
from accelbench.report import advice
from accelbench.verdict.redaction import rejections
from accelbench_runner.judge_protocol import Assessment
from accelbench_runner.supervisor.allowance import launch_limit, warm_limit
from accelbench_runner.supervisor.assemble import CaseTiming, assemble
from accelbench_runner.supervisor.children import Interruption
from accelbench_runner.supervisor.explanation import Explainer
from accelbench_runner.supervisor.judge_process import Judge, NothingToJudge
from accelbench_runner.supervisor.launcher import Launcher
from accelbench_runner.supervisor.log_writer import LogWriter, OutputForwarder, TerminationMessage

JUDGE_SECONDS = 120.0
"""Minimum limit of the judge, even after the case's time limit, so that measured rounds get a verdict."""
LAST_JUDGE_SECONDS = 5.0
"""The judge's limit after a signal: the sender may kill this process ten seconds later."""
COLD_PHASES = {"import", "device-init", "setup", "compile", "first-step"}
"""Phases of a cold start, whose seconds set the limit of a warm probe."""


class ProbeError(Exception):
    """Report that a probe of accelbench's own ended a launch that was to skip the probe."""


@dataclass
class Supervisor:
    """Run one case from its first launch to its result."""

    case: Case
    launcher: Launcher
    judge: Judge | NothingToJudge
    log: LogWriter
    termination: TerminationMessage
    interruption: Interruption
    directory: Path
    host: Mapping[str, str]
    unusable: Mapping[str, Failure] = field(default_factory=dict)
    """Why a variant's environment cannot be used, by the variant's name: it is not launched."""
    compares: bool = True
    """False: each variant is observed, checked or compiled by itself."""
    traces: Path | None = None
    """Directory that keeps the profilers' traces; None: they are not kept."""
    clock: Callable[[], float] = time.monotonic

    _launches: list[LaunchRecord] = field(default_factory=list)
    """Launches of rounds that count, and all failed launches."""
    _discarded: list[LaunchRecord] = field(default_factory=list)
    """Other launches, which count only as overhead."""
    _failed: dict[str, Failure] = field(default_factory=dict)
    """Failure by variant."""
    _assessment: Assessment | None = None
    _digest: str | None = None
    """Digest of the last checkpoint or result in the log."""
    _skip_reasons: dict[Probe, str] = field(default_factory=dict)
    """Why a probe hung or crashed, by probe; later launches skip these probes."""
    _judge_seconds: float = 0.0
    _round_seconds: list[float] = field(default_factory=list)
    """Seconds of each complete round, without launches that failed."""
    _explainer: Explainer = field(init=False)

    def __post_init__(self) -> None:
        """Start the case's time limit, and prepare the launches that explain the case."""
        self._began = self.clock()
        self._started = timestamp(datetime.now(UTC))
        self._deadline = self._began + self.case.measurement.time_limit_seconds
        self._explainer = Explainer(
            case=self.case,
            launcher=self.launcher,
            log=self.log,
            directory=self.directory,
            traces=self.traces,
            seconds_left=lambda: self._deadline - self.clock(),
            interrupted=lambda: self.interruption.signal is not None,
        )

    def run(self) -> Result:
        """Measure rounds until there is a reason to stop, and return the result.

        Raises JudgeError, JudgeKilledError, ProbeError and UnkillableError.
        """
        self._record_unusable()
        round_number = 0
        stop_reason = self._stop_reason()
        while stop_reason is None:
            round_number += 1
            stop_reason = self._run_round(round_number)
            if stop_reason is None:
                stop_reason = self._stop_reason()
        # A check times nothing, so there are no times to explain.
        if self.case.measurement.explain and self.launcher.purpose != "check":
            self._explainer.explain(self._launches)
        result = self._deliver("result", complete=stop_reason != StopReason.INTERRUPTED, stopped=stop_reason)
        signal = self.interruption.signal
        message = f"interrupted by {signal.name}" if signal and stop_reason == StopReason.INTERRUPTED else ""
        self._write_termination_message("finished", message=message)
        return result

    def _record_unusable(self) -> None:
        """Record the failure of each variant that cannot be launched; the other variants are measured nevertheless."""
        for position, (variant, failure) in enumerate(self.unusable.items()):
            record = LaunchRecord(
                variant=variant, round=failure.round, position=position, wall_seconds=0.0, failure=failure
            )
            self._failed[variant] = failure
            self._launches.append(record)
            self.log.document("launch", f"{record.round}/{variant}", record.to_json())
            self.log.event(
                LaunchFinished(
                    variant=variant,
                    round=record.round,
                    failure=failure.reason,
                    wall_seconds=decimal_string(record.wall_seconds),
                )
            )

    def give_up(self, error: str) -> None:
        """End the case with an error: write what was measured as a checkpoint, and `error` as termination message."""
        self.log.notice(error)
        with contextlib.suppress(ValueError):  # the error may be that no result can be assembled
            self._deliver("checkpoint", complete=False, stopped=None, notes=(f"not finished: {error}",))
        self._write_termination_message("failed", message=error)

    @property
    def _counted_rounds(self) -> int:
        """Return how many rounds count so far: those that are complete and not quarantined."""
        return self._assessment.rounds if self._assessment else 0

    def _stop_reason(self) -> StopReason | None:
        """Return the reason to stop before another round; None if another round may start."""
        if self.interruption.signal is not None:
            return StopReason.INTERRUPTED
        if self._assessment and self._assessment.stop:
            return self._assessment.stop
        if len(self._failed) == len(self.case.variants):
            return StopReason.NOTHING_TO_COMPARE
        if self._counted_rounds >= self.case.measurement.rounds_max:
            return StopReason.MAXIMUM_ROUNDS_REACHED
        return self._time_stop_reason()

    def _time_stop_reason(self) -> StopReason | None:
        """Return the reason to stop if the case has no time left for another round; None if it has time."""
        remaining_seconds = self._deadline - self.clock()
        if remaining_seconds <= 0:
            return StopReason.TIME_LIMIT_REACHED
        if self._round_seconds and remaining_seconds < min(self._round_seconds):  # less than the shortest round took
            return StopReason.NO_TIME_FOR_ROUND
        return None

    def _run_round(self, round_number: int) -> StopReason | None:
        """Launch each variant that has not failed, judge the round, and log a checkpoint.

        Returns the reason why the case must stop; None if another round may follow.
        """
        began = self.clock()
        variants = [variant.name for variant in self.case.variants if variant.name not in self._failed]
        # A quarantined round does not count, so the next round has the same order.
        order = round_order(
            variants, seed=self.case.measurement.seed, case=self.case.name, round_number=self._counted_rounds + 1
        )
        directories = {variant: self.directory / f"{round_number}-{position}" for position, variant in enumerate(order)}
        launches, cut_reason = self._launch_all(round_number, directories)
        judged_launches = launches if cut_reason is None else self._launches_that_count(launches, cut_reason)
        # Without an assessment, only the failed launches count.
        counted_launches = [launch for launch in launches if launch.failure]
        assessment = None
        try:
            assessment = self._judge(round_number, judged_launches, directories)
            if assessment is not None:
                counted_launches = judged_launches
        finally:  # even if the judge raises an error
            self._store_round(counted_launches, launches)
            for launch_directory in directories.values():
                shutil.rmtree(launch_directory, ignore_errors=True)
        if cut_reason is not None:
            return cut_reason
        if assessment is None:  # only a signal leaves a complete round without an assessment
            return StopReason.INTERRUPTED
        self._report_round(round_number, assessment)
        # Later rounds do not launch a failed variant, so they do not take its time.
        failed_seconds = sum(launch.wall_seconds for launch in launches if launch.failure)
        self._round_seconds.append(self.clock() - began - failed_seconds)
        return None

    def _report_round(self, round_number: int, assessment: Assessment) -> None:
        """Write to the log a checkpoint, and an event with the round's disturbances, times and comparisons."""
        result = self._deliver("checkpoint", complete=False, stopped=None)
        quarantined = _disturbances_of_round(round_number, assessment.quarantined)
        event = RoundFinished(
            round=round_number,
            quarantined=quarantined,
            advice=advice.disturbance_advice(quarantined, self.host) if quarantined else None,
            noisy=_disturbances_of_round(round_number, assessment.noisy),
            times=times_so_far(result),
            comparisons=assessment.comparisons,
        )
        self.log.event(event)

    def _launches_that_count(self, launches: Sequence[LaunchRecord], cut_reason: StopReason) -> list[LaunchRecord]:
        """Return the launches of an incomplete round that count: all that finished, or only those that failed.

        `cut_reason` is why the round is incomplete. Successful launches count if the baseline and another variant are
        among them, so that they can be compared, or if no later round will make a comparison possible.
        """
        finished = [launch for launch in launches if not launch.unfinished]
        successful_variants = {launch.variant for launch in finished if not launch.failure}
        has_pairs = len(successful_variants) > 1 and self.case.baseline in successful_variants
        never_has_pairs = cut_reason == StopReason.NOTHING_TO_COMPARE or self.case.baseline in self._failed
        if has_pairs or never_has_pairs:
            return finished
        return [launch for launch in finished if launch.failure]

    def _launch_all(
        self, round_number: int, directories: Mapping[str, Path]
    ) -> tuple[list[LaunchRecord], StopReason | None]:
        """Launch the variants in the order of `directories`, which maps each variant to its launch's directory.

        Returns the launches, and the reason why the round is incomplete; None if the round is complete.
        """
        launches: list[LaunchRecord] = []
        for position, variant in enumerate(directories):
            if self.interruption.signal is not None:
                return launches, StopReason.INTERRUPTED
            if self.clock() >= self._deadline:
                return launches, StopReason.TIME_LIMIT_REACHED
            record = self._launch(variant, round_number, position, directories)
            launches.append(record)
            if record.unfinished == "interrupted":
                return launches, StopReason.INTERRUPTED
            if record.unfinished == "time-limit":
                return launches, StopReason.TIME_LIMIT_REACHED
            if record.failure:
                self._failed[variant] = record.failure
                is_last = position + 1 == len(directories)  # then the round is complete
                if not is_last and self._leaves_no_comparison(record.failure):
                    return launches, StopReason.NOTHING_TO_COMPARE
        return launches, None

    def _leaves_no_comparison(self, failure: Failure) -> bool:
        """Return True if after this failure the case has no variants left to compare, so that it can stop at once.

        Only a failure in the first round, before the variant was timed, ends a case so early.
        """
        if not self.compares or failure.round > 1 or failure.phase == "steady":
            return False
        remaining_variants = len(self.case.variants) - len(self._failed)
        return self.case.baseline in self._failed or remaining_variants <= 1

    def _launch(self, variant: str, round_number: int, position: int, directories: Mapping[str, Path]) -> LaunchRecord:
        """Launch `variant`; if a probe of accelbench's own ends the launch early, launch again without that probe.

        So `unfinished` of the returned record is never `probe`. Raises ProbeError if a probe that the launch was to
        skip ends the launch before the measurement is complete.
        """
        while True:
            record = self._launch_once(variant, round_number, position, directories)
            probe = record.ended_by
            if probe is None or record.unfinished in {"interrupted", "time-limit"}:
                return record
            should_have_skipped = probe in self._skip_reasons
            self._skip_reasons[probe] = record.unchecked[probe]  # for example, that the probe did not finish in time
            if record.unfinished is None:  # the measurement was complete before the probe ended the launch
                return record
            if should_have_skipped:
                raise ProbeError(f"{self._skip_reasons[probe]}, although it was to be left out")
            if self.clock() >= self._deadline:
                return record.model_copy(update={"unfinished": "time-limit"})
            self._discarded.append(record)
            shutil.rmtree(directories[variant])

    def _launch_once(
        self, variant: str, round_number: int, position: int, directories: Mapping[str, Path]
    ) -> LaunchRecord:
        """Launch `variant` once, followed by a warm probe if it needs one, and log the progress.

        `position` is the launch's number in the round, from 0.
        """
        measurement = self.case.measurement
        directory = directories[variant]
        directory.mkdir()
        earlier_launches = [launch for launch in self._launches if launch.variant == variant]
        self._write_termination_message("running", running=variant, round_number=round_number)
        self.log.event(LaunchStarted(variant=variant, round=round_number, position=position, of=len(directories)))
        forward = OutputForwarder(self.log, f"{variant} round {round_number}")
        remaining_seconds = self._deadline - self.clock()
        limit = launch_limit(
            remaining_seconds,
            time_limit=measurement.time_limit_seconds,
            round_launches=len(directories),
            launches_left=len(directories) - position,
            rounds_min=measurement.rounds_min,
            earlier_seconds=[launch.wall_seconds - launch.probe_seconds for launch in earlier_launches],
        )
        record = self.launcher.launch(
            variant,
            round_number=round_number,
            position=position,
            directory=directory,
            limit=limit,
            case_seconds=remaining_seconds,
            skip=self._skip_reasons,
            forward=forward,
            phase_reached=self._log_phase,
        )
        if self._wants_warm_probe(record):
            record = self._add_warm_probe(record, directory, forward)
        forward.finish()
        warm_seconds = record.warm.wall_seconds if record.warm else 0.0
        self.log.event(
            LaunchFinished(
                variant=variant,
                round=round_number,
                failure=record.failure.reason if record.failure else None,
                unfinished=record.unfinished,
                wall_seconds=decimal_string(record.wall_seconds + warm_seconds),
            )
        )
        return record

    def _log_phase(self, phase: Phase) -> None:
        """Write to the log that the current launch has reached `phase`."""
        self.log.event(PhaseReached(phase=phase))

    def _add_warm_probe(self, record: LaunchRecord, directory: Path, forward: OutputForwarder) -> LaunchRecord:
        """Start the variant again with the launch's compile caches; return the record with the times of that start.

        `warm` stays None if a signal or the case's time limit ended that start.
        """
        cold_seconds = sum(phase.seconds for phase in record.phases if phase.phase in COLD_PHASES)
        warm = self.launcher.warm_probe(
            record.variant,
            round_number=record.round,
            directory=directory,
            limit=warm_limit(cold_seconds, self.launcher.probe_seconds),
            case_seconds=self._deadline - self.clock(),
            forward=forward,
            phase_reached=self._log_phase,
        )
        return record.model_copy(update={"warm": warm})

    def _wants_warm_probe(self, record: LaunchRecord) -> bool:
        """Return True if a start with warm compile caches has to follow the launch.

        That is so in the first rounds, if the launch succeeded and used a compile cache, no earlier warm start of the
        variant failed, and time is left.
        """
        if self.launcher.purpose != "measure" or not is_reported(record.facts.compile_cache):
            return False
        if record.failure or record.unfinished:
            return False
        warm_probes = [launch.warm for launch in self._launches if launch.variant == record.variant and launch.warm]
        if any(probe.failure for probe in warm_probes):
            return False
        if self.interruption.signal is not None or self.clock() >= self._deadline:
            return False
        return self._counted_rounds < self.case.measurement.rounds_min

    def _judge(
        self, round_number: int, counted_launches: Sequence[LaunchRecord], directories: Mapping[str, Path]
    ) -> Assessment | None:
        """Have the judge assess the launches of earlier rounds together with `counted_launches` of this round.

        Returns None if `counted_launches` is empty. Also returns None if a signal came and the judge did not finish its
        last try, which has a short limit.
        """
        if not counted_launches:
            return None
        self._write_termination_message("running", round_number=round_number, message="judging")
        successful_variants = [launch.variant for launch in counted_launches if not launch.failure]
        launches = [*self._launches, *counted_launches]
        outputs = {f"{round_number}/{variant}": directories[variant] for variant in successful_variants}
        # `assess` returns None only if a signal interrupts it; the signal also makes the next try the last. Without a
        # signal it returns an assessment or raises.
        is_last_try = False
        while not is_last_try:
            began = self.clock()
            is_last_try = self.interruption.signal is not None
            # Even at the case's deadline, the judge gets `JUDGE_SECONDS`.
            limit_seconds = LAST_JUDGE_SECONDS if is_last_try else max(JUDGE_SECONDS, self._deadline - began)
            assessment = self.judge.assess(
                self.case, launches, outputs, limit_seconds=limit_seconds, last_try=is_last_try
            )
            self._judge_seconds += self.clock() - began
            if assessment is not None:
                self._assessment = assessment
                return assessment
        return None

    def _store_round(self, counted_launches: Sequence[LaunchRecord], launches: Sequence[LaunchRecord]) -> None:
        """Store the round's launches as counted or discarded, and write them to the log.

        `counted_launches` are those of `launches` that count. Each launch is stored with the judge's parity check, if
        the judge has compared its outputs.
        """
        parity = self._assessment.parity if self._assessment else {}
        for launch in launches:
            key = f"{launch.round}/{launch.variant}"
            record = launch.model_copy(update={"parity": parity.get(key)})
            if launch in counted_launches:
                self._launches.append(record)
            else:
                self._discarded.append(record)
            self.log.document("launch", key, record.to_json())

    def _deliver(
        self, kind: DocumentKind, *, complete: bool, stopped: StopReason | None, notes: tuple[str, ...] = ()
    ) -> Result:
        """Assemble the result so far, write it to the log as a document of `kind`, and return it.

        `stopped` is the reason why no more rounds follow; None if more may follow, or if an error ended the case.
        """
        timing = CaseTiming(
            started=self._started,
            finished=timestamp(datetime.now(UTC)),
            total_seconds=self.clock() - self._began,
            judge_seconds=self._judge_seconds,
            complete=complete,
            stopped=stopped,
            host=self.host,
            notes=(*notes, *self._explainer.notes, *self.log.omission_notes()),
            discarded=tuple(self._discarded),
            explained=tuple(self._explainer.records),
        )
        result = assemble(self.case, self._launches, self._assessment, timing)
        self._digest = self.log.document(kind, str(result.rounds), result.to_json())
        return result

    def _write_termination_message(
        self,
        state: Literal["running", "finished", "failed"],
        *,
        running: str | None = None,
        round_number: int | None = None,
        message: str = "",
    ) -> None:
        """Rewrite the pod's termination message, which shows the case's progress even after the pod is killed.

        `running` is the variant of the current launch. `round_number` is the current round; by default, the number of
        complete rounds.
        """
        self.termination.write(
            Headline(
                case=self.case.name,
                attempt=self.case.origin.attempt,
                state=state,
                running=running,
                round=len(self._round_seconds) if round_number is None else round_number,
                digest=self._digest,
                comparisons=self._assessment.comparisons if self._assessment else (),
                message=message,
            )
        )


def times_so_far(result: Result) -> tuple[TimeSoFar, ...]:
    """Return the time so far of each variant that has not failed, with the validity checks that reject the time."""
    return tuple(
        TimeSoFar(
            variant=variant.name,
            seconds=variant.seconds.geometric_mean_seconds if variant.seconds else None,
            invalid=rejections(result, variant),
        )
        for variant in result.variants
        if variant.failure is None
    )


def _disturbances_of_round(round_number: int, disturbed_rounds: Sequence[Disturbed]) -> tuple[str, ...]:
    """Return the reasons why the judge found the round disturbed; empty if it is not among `disturbed_rounds`."""
    for disturbed in disturbed_rounds:
        if disturbed.round == round_number:
            return disturbed.reasons
    return ()
