"""Run a case: rounds of launches, the judge after each round, checkpoints and the result into the log.

While a launch measures, this process sleeps: it computes between launches only, and imports neither numpy nor a
framework.
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
    TimeNow,
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
    """Report that a probe of accelbench's own ended a launch again, although the launch was asked to skip it."""


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
    compares: bool = True
    """False: each variant is observed, checked or compiled by itself."""
    clock: Callable[[], float] = time.monotonic

    _launches: list[LaunchRecord] = field(default_factory=list)
    """Launches of counted rounds, and all that failed."""
    _discarded: list[LaunchRecord] = field(default_factory=list)
    """Other launches, which count only as overhead."""
    _failed: dict[str, Failure] = field(default_factory=dict)
    """Failure by variant."""
    _assessment: Assessment | None = None
    _digest: str | None = None
    """Digest of the last checkpoint or result in the log."""
    _skipped: dict[Probe, str] = field(default_factory=dict)
    """Why a probe hung or crashed; later launches leave it out."""
    _judge_seconds: float = 0.0
    _round_seconds: list[float] = field(default_factory=list)
    """Seconds of each complete round, without launches that failed."""

    def __post_init__(self) -> None:
        self._began = self.clock()
        self._started = timestamp(datetime.now(UTC))
        self._deadline = self._began + self.case.measurement.time_limit_seconds

    def run(self) -> Result:
        """Measure rounds until there is a reason to stop; write the result to the log and return it.

        Raises JudgeError, JudgeKilledError, ProbeError and UnkillableError.
        """
        round_number = 0
        while (stopped := self._stop_reason()) is None:
            round_number += 1
            if (stopped := self._run_round(round_number)) is not None:
                break
        result = self._deliver("result", complete=stopped != StopReason.INTERRUPTED, stopped=stopped)
        signal = self.interruption.signal
        message = f"interrupted by {signal.name}" if signal and stopped == StopReason.INTERRUPTED else ""
        self._write_headline("finished", message=message)
        return result

    def give_up(self, error: str) -> None:
        """Write what was measured as a checkpoint, and `error` into the headline."""
        self.log.notice(error)
        with contextlib.suppress(ValueError):  # the error may be that no result can be assembled
            self._deliver("checkpoint", complete=False, stopped=None, notes=(f"not finished: {error}",))
        self._write_headline("failed", message=error)

    @property
    def _rounds(self) -> int:
        """Return the number of complete rounds that count."""
        return self._assessment.rounds if self._assessment else 0

    def _stop_reason(self) -> StopReason | None:
        """Return why no further round may start; None if one may."""
        if self.interruption.signal is not None:
            return StopReason.INTERRUPTED
        if self._assessment and self._assessment.stop:
            return self._assessment.stop
        if len(self._failed) == len(self.case.variants):
            return StopReason.NOTHING_TO_COMPARE
        if self._rounds >= self.case.measurement.rounds_max:
            return StopReason.MAXIMUM_ROUNDS_REACHED
        return self._time_stop_reason()

    def _time_stop_reason(self) -> StopReason | None:
        """Return a reason if the time limit is reached, or if less time is left than the shortest round took."""
        left = self._deadline - self.clock()
        if left <= 0:
            return StopReason.TIME_LIMIT_REACHED
        if self._round_seconds and left < min(self._round_seconds):
            return StopReason.NO_TIME_FOR_ROUND  # no round has been that short
        return None

    def _run_round(self, round_number: int) -> StopReason | None:
        """Launch every variant that has not failed, and judge the round; return the reason if it was cut short.

        A round that repeats a quarantined one has the same order: the schedule advances when a round counts.
        """
        began = self.clock()
        variants = [variant.name for variant in self.case.variants if variant.name not in self._failed]
        order = round_order(variants, seed=self.case.measurement.seed, case=self.case.name, number=self._rounds + 1)
        directories = {variant: self.directory / f"{round_number}-{position}" for position, variant in enumerate(order)}
        launches, cut_reason = self._launch_all(round_number, directories)
        counted = launches if cut_reason is None else self._counted_of_incomplete_round(launches, cut_reason)
        judged = False
        try:
            judged = self._judge(round_number, counted, directories)
        finally:
            self._store_round(counted if judged else [launch for launch in launches if launch.failure], launches)
            for launch_directory in directories.values():
                shutil.rmtree(launch_directory, ignore_errors=True)
        assessed = self._assessment
        if cut_reason or not judged or not assessed:
            return cut_reason or StopReason.INTERRUPTED
        result = self._deliver("checkpoint", complete=False, stopped=None)
        quarantined = _reasons(round_number, assessed.quarantined)
        event = RoundFinished(
            round=round_number,
            quarantined=quarantined,
            advice=advice.against_disturbances(quarantined, self.host) if quarantined else None,
            noisy=_reasons(round_number, assessed.noisy),
            times=times_so_far(result),
            comparisons=assessed.comparisons,
        )
        self.log.event(event)
        failed_seconds = sum(launch.wall_seconds for launch in launches if launch.failure)  # not launched again
        self._round_seconds.append(self.clock() - began - failed_seconds)
        return None

    def _counted_of_incomplete_round(
        self, launches: Sequence[LaunchRecord], cut_reason: StopReason
    ) -> list[LaunchRecord]:
        """Return the launches of a round cut short that count: always failures, and others if they can be used.

        They can be used if the baseline and another variant succeeded, if the baseline has failed, or if nothing is
        left to compare.
        """
        finished = [launch for launch in launches if not launch.unfinished]
        successful = {launch.variant for launch in finished if not launch.failure}
        has_pairs = len(successful) > 1 and self.case.baseline in successful
        nothing_to_pair = cut_reason == StopReason.NOTHING_TO_COMPARE or self.case.baseline in self._failed
        return [launch for launch in finished if launch.failure or has_pairs or nothing_to_pair]

    def _launch_all(
        self, round_number: int, directories: Mapping[str, Path]
    ) -> tuple[list[LaunchRecord], StopReason | None]:
        """Launch the variants in order; return the records, and the reason if some are missing."""
        launches: list[LaunchRecord] = []
        for position, variant in enumerate(directories):
            if self.interruption.signal is not None:
                return launches, StopReason.INTERRUPTED
            if self.clock() >= self._deadline:
                return launches, StopReason.TIME_LIMIT_REACHED
            record = self._launch(variant, round_number, position, directories)
            launches.append(record)
            if record.unfinished:
                interrupted = record.unfinished == "interrupted"
                return launches, StopReason.INTERRUPTED if interrupted else StopReason.TIME_LIMIT_REACHED
            if record.failure:
                self._failed[variant] = record.failure
                if position + 1 < len(directories) and self._leaves_no_comparison(record.failure):
                    return launches, StopReason.NOTHING_TO_COMPARE
        return launches, None

    def _leaves_no_comparison(self, failure: Failure) -> bool:
        """Return True if `failure`, in the first round and before the steady phase, leaves nothing to compare.

        Nothing is left to compare if the baseline has failed, or all variants but one.
        """
        if not self.compares or failure.round > 1 or failure.phase == "steady":
            return False
        return self.case.baseline in self._failed or len(self.case.variants) - len(self._failed) < 2  # noqa: PLR2004

    def _launch(self, variant: str, round_number: int, position: int, directories: Mapping[str, Path]) -> LaunchRecord:
        """Launch `variant`; if a probe of accelbench's own ends the launch, launch it again without that probe.

        Raises ProbeError if the probe ends the second launch too.
        """
        while True:
            record = self._launch_once(variant, round_number, position, directories)
            if record.ended_by is None or record.unfinished not in {None, "probe"}:
                return record
            repeated = record.ended_by in self._skipped
            self._skipped[record.ended_by] = record.unchecked[record.ended_by]
            if record.unfinished is None:
                return record
            if repeated:
                raise ProbeError(f"{self._skipped[record.ended_by]}, although it was to be left out")
            if self.clock() >= self._deadline:
                return record.model_copy(update={"unfinished": "time-limit"})
            self._discarded.append(record)
            shutil.rmtree(directories[variant])

    def _launch_once(
        self, variant: str, round_number: int, position: int, directories: Mapping[str, Path]
    ) -> LaunchRecord:
        """Launch `variant`, and start it again with warm caches if a warm probe is wanted."""
        measurement = self.case.measurement
        directory = directories[variant]
        directory.mkdir()
        self._write_headline("running", running=variant, round_number=round_number)
        self.log.event(LaunchStarted(variant=variant, round=round_number, position=position, of=len(directories)))
        forward = OutputForwarder(self.log, f"{variant} round {round_number}")
        remaining = self._deadline - self.clock()
        limit = launch_limit(
            remaining,
            time_limit=measurement.time_limit_seconds,
            round_launches=len(directories),
            launches_left=len(directories) - position,
            rounds_min=measurement.rounds_min,
            earlier_seconds=[
                earlier.wall_seconds - earlier.probe_seconds for earlier in self._launches if earlier.variant == variant
            ],
        )

        def phase_reached(phase: Phase) -> None:
            self.log.event(PhaseReached(phase=phase))

        record = self.launcher.launch(
            variant,
            round_number=round_number,
            position=position,
            directory=directory,
            limit=limit,
            case_seconds=remaining,
            skip=self._skipped,
            forward=forward,
            phase_reached=phase_reached,
        )
        if self._wants_warm_probe(record):
            cold = sum(phase.seconds for phase in record.phases if phase.phase in COLD_PHASES)
            warm = self.launcher.warm_probe(
                variant,
                round_number=round_number,
                directory=directory,
                limit=warm_limit(cold, self.launcher.probe_seconds),
                case_seconds=self._deadline - self.clock(),
                forward=forward,
                phase_reached=phase_reached,
            )
            record = record.model_copy(update={"warm": warm})
        forward.finish()
        self.log.event(
            LaunchFinished(
                variant=variant,
                round=round_number,
                failure=record.failure.reason if record.failure else None,
                unfinished=record.unfinished,
                wall_seconds=decimal_string(record.wall_seconds + (record.warm.wall_seconds if record.warm else 0.0)),
            )
        )
        return record

    def _wants_warm_probe(self, record: LaunchRecord) -> bool:
        """Return True if a launch that reported its compile cache succeeded, and fewer than `rounds_min` rounds count.

        False as well if times are not measured, no time is left, or a warm probe of the variant failed before.
        """
        if self.launcher.purpose != "measure" or not is_reported(record.facts.compile_cache):
            return False
        if record.failure or record.unfinished:
            return False
        if any(
            earlier.warm and earlier.warm.failure for earlier in self._launches if earlier.variant == record.variant
        ):
            return False
        if self.interruption.signal is not None or self.clock() >= self._deadline:
            return False
        return self._rounds < self.case.measurement.rounds_min

    def _judge(self, round_number: int, counted: Sequence[LaunchRecord], directories: Mapping[str, Path]) -> bool:
        """Judge all rounds so far with `counted`; return False if there is nothing to judge, or no time.

        A signal ends the judge, which is then started once more with little time.
        """
        if not counted:
            return False
        self._write_headline("running", round_number=round_number, message="judging")
        assessment, is_last_try = None, False
        while assessment is None and not is_last_try:
            began = self.clock()
            is_last_try = self.interruption.signal is not None
            assessment = self.judge.assess(
                self.case,
                [*self._launches, *counted],
                {
                    f"{round_number}/{launch.variant}": directories[launch.variant]
                    for launch in counted
                    if not launch.failure
                },
                limit_seconds=LAST_JUDGE_SECONDS if is_last_try else max(JUDGE_SECONDS, self._deadline - began),
            )
            self._judge_seconds += self.clock() - began
        if assessment is None:
            return False
        self._assessment = assessment
        return True

    def _store_round(self, counted: Sequence[LaunchRecord], launches: Sequence[LaunchRecord]) -> None:
        """Store the launches that count apart from the others, and write all of them to the log with their parity."""
        parity = self._assessment.parity if self._assessment else {}
        for launch in launches:
            key = f"{launch.round}/{launch.variant}"
            record = launch.model_copy(update={"parity": parity.get(key)})
            (self._launches if launch in counted else self._discarded).append(record)
            self.log.document("launch", key, record.to_json())

    def _deliver(
        self, kind: DocumentKind, *, complete: bool, stopped: StopReason | None, notes: tuple[str, ...] = ()
    ) -> Result:
        """Assemble the result so far, write it to the log as `kind`, and return it."""
        timing = CaseTiming(
            started=self._started,
            finished=timestamp(datetime.now(UTC)),
            total_seconds=self.clock() - self._began,
            judge_seconds=self._judge_seconds,
            complete=complete,
            stopped=stopped,
            host=self.host,
            notes=(*notes, *self.log.omission_notes()),
            discarded=tuple(self._discarded),
        )
        result = assemble(self.case, self._launches, self._assessment, timing)
        self._digest = self.log.document(kind, str(result.rounds), result.to_json())
        return result

    def _write_headline(
        self,
        state: Literal["running", "finished", "failed"],
        *,
        running: str | None = None,
        round_number: int | None = None,
        message: str = "",
    ) -> None:
        """Rewrite the termination message: `running` is the variant; the round is by default the last complete one."""
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


def times_so_far(result: Result) -> tuple[TimeNow, ...]:
    """Return each variant's time so far, or the checks that reject it; variants that failed are left out."""
    return tuple(
        TimeNow(
            variant=variant.name,
            seconds=variant.seconds.geometric_mean_seconds if variant.seconds else None,
            invalid=rejections(result, variant),
        )
        for variant in result.variants
        if variant.failure is None
    )


def _reasons(round_number: int, disturbed_rounds: Sequence[Disturbed]) -> tuple[str, ...]:
    """Return why the round was disturbed; empty if it was not."""
    return next((disturbed.reasons for disturbed in disturbed_rounds if disturbed.round == round_number), ())
