"""The experiment: rounds of launches, the judge between them, and what is delivered as it goes.

Small and dumb on purpose. While a launch measures, this process sleeps; it imports no numpy and no framework, and
everything it computes is between launches.
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
from accelbench.api.result import Disturbed, Failure, Phase, Result, StopReason
from accelbench.delivery import (
    ComparisonNow,
    DocumentKind,
    Headline,
    LaunchFinished,
    LaunchStarted,
    PhaseReached,
    RoundFinished,
)
from accelbench.document import decimal_string
from accelbench.plan.schedule import round_order
from accelbench.validity.evidence import launch_seconds
from accelbench_runner.assemble import Course, assemble
from accelbench_runner.children import Interruption
from accelbench_runner.deliver import LogWriter, OutputForwarder, TerminationMessage
from accelbench_runner.judging import Judge
from accelbench_runner.launches import Launcher
from accelbench_runner.records import Assessment, LaunchRecord

JUDGE_SECONDS = 120.0
"""The judge may take this long even when the case's time is up: rounds that were measured are worth a verdict."""
HANG_FACTOR = 5.0
HANG_SECONDS = 30.0
"""A launch hangs that takes longer than this, and than five times the longest before it of the same variant."""


def launch_limit(remaining: float, *, time_limit: float, left: int, rounds_min: int, before: Sequence[float]) -> float:
    """Seconds that a launch may take; `left` launches of the round are still to come, this one included.

    `before`: wall seconds of the same variant's launches in earlier rounds. A first launch gets its share of what
    remains, or what a launch could take at most if the least number of rounds is to be had; so one that hangs leaves
    time for the others. `remaining` bounds both.
    """
    if before:
        return min(remaining, max(HANG_SECONDS, HANG_FACTOR * max(before)))
    return min(remaining, max(remaining / left, time_limit / rounds_min))


@dataclass
class Supervisor:
    """One case from its first launch to its result."""

    case: Case
    launcher: Launcher
    judge: Judge
    log: LogWriter
    termination: TerminationMessage
    interruption: Interruption
    directory: Path
    host: Mapping[str, str]
    clock: Callable[[], float] = time.monotonic

    _launches: list[LaunchRecord] = field(default_factory=list)
    """Those of complete rounds, and all that failed."""
    _discarded: list[LaunchRecord] = field(default_factory=list)
    _failed: dict[str, Failure] = field(default_factory=dict)
    _assessment: Assessment | None = None
    _digest: str | None = None
    _judge_seconds: float = 0.0
    _round_seconds: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._began = self.clock()
        self._started = _now()
        self._deadline = self._began + self.case.measurement.time_limit_seconds

    def run(self) -> Result:
        """Rounds until there is a reason to stop, then the result, delivered; raises JudgeError and UnkillableError."""
        number = 0
        while (stopped := self._why_stop()) is None:
            number += 1
            if not self._round(number) and self.interruption.signal is None:
                stopped = "time-limit"
                break
        result = self._deliver("result", complete=stopped != "interrupted", stopped=stopped)
        signal = self.interruption.signal
        message = f"interrupted by {signal.name}" if signal and stopped == "interrupted" else ""
        self.headline("finished", message=message)
        return result

    def give_up(self, why: str) -> None:
        """After an error of our own: what was measured, as a checkpoint, and a headline that says why."""
        self.log.notice(why)
        with contextlib.suppress(ValueError):  # it may be the result itself that cannot be made
            self._deliver("checkpoint", complete=False, stopped=None, notes=(f"not finished: {why}",))
        self.headline("failed", message=why)

    @property
    def _rounds(self) -> int:
        """Complete rounds that count."""
        return self._assessment.rounds if self._assessment else 0

    def _why_stop(self) -> StopReason | None:
        if self.interruption.signal is not None:
            return "interrupted"
        if self._assessment and self._assessment.stop:
            return self._assessment.stop
        if len(self._failed) == len(self.case.variants):
            return "nothing-to-compare"
        if self._rounds >= self.case.measurement.rounds_max:
            return "rounds-max"
        if self._round_seconds and self._deadline - self.clock() < min(self._round_seconds):
            return "time-limit"  # no round yet was that short
        return None

    def _round(self, number: int) -> bool:
        """One launch of every variant that has not failed, and judgement; False when the round was cut short.

        A round that repeats a quarantined one has its order: the schedule goes on once a round counts.
        """
        began = self.clock()
        variants = [variant.name for variant in self.case.variants if variant.name not in self._failed]
        order = round_order(variants, seed=self.case.measurement.seed, case=self.case.name, number=self._rounds + 1)
        directories = {variant: self.directory / f"{number}-{position}" for position, variant in enumerate(order)}
        launches, complete = self._launch_all(number, directories)
        failed = [launch for launch in launches if launch.failure]
        counted = launches if complete else failed
        judged = False
        try:
            judged = self._judge(number, counted, directories)
        finally:
            self._keep(counted if judged else failed, launches)
            for directory in directories.values():
                shutil.rmtree(directory, ignore_errors=True)
        assessed = self._assessment
        if not (judged and complete and assessed):
            return False
        event = RoundFinished(
            round=number,
            quarantined=_reasons(number, assessed.quarantined),
            noisy=_reasons(number, assessed.noisy),
            comparisons=self._comparisons(),
        )
        self.log.event(event)
        self._deliver("checkpoint", complete=False, stopped=None)
        self._round_seconds.append(self.clock() - began)
        return True

    def _launch_all(self, number: int, directories: Mapping[str, Path]) -> tuple[list[LaunchRecord], bool]:
        """The round's launches, in order; and whether there was time for all of them."""
        launches: list[LaunchRecord] = []
        for position, variant in enumerate(directories):
            remaining = self._deadline - self.clock()
            if remaining <= 0 and number > 1:
                return launches, False
            record = (
                self._launch(variant, number, position, directories, remaining)
                if remaining > 0
                else self._never_launched(variant, number, position)
            )
            if self.interruption.signal is not None:
                return launches, False
            if number > 1 and _timed_out(record) and self.clock() >= self._deadline:
                self._discarded.append(record.model_copy(update={"failure": None}))
                return launches, False
            launches.append(record)
            if record.failure:
                self._failed[variant] = record.failure
        return launches, True

    def _launch(
        self, variant: str, number: int, position: int, directories: Mapping[str, Path], remaining: float
    ) -> LaunchRecord:
        measurement = self.case.measurement
        directory = directories[variant]
        directory.mkdir()
        self.headline("running", running=variant, number=number)
        self.log.event(LaunchStarted(variant=variant, round=number, position=position, of=len(directories)))
        forward = OutputForwarder(self.log, f"{variant} round {number}")
        limit = launch_limit(
            remaining,
            time_limit=measurement.time_limit_seconds,
            left=len(directories) - position,
            rounds_min=measurement.rounds_min,
            before=[launch.wall_seconds for launch in self._launches if launch.variant == variant],
        )

        def phase_reached(phase: Phase) -> None:
            self.log.event(PhaseReached(phase=phase))

        record = self.launcher.launch(
            variant,
            number=number,
            position=position,
            directory=directory,
            limit_seconds=limit,
            forward=forward,
            phase_reached=phase_reached,
        )
        if self._wants_probe(record):
            warm = self.launcher.probe(
                variant,
                number=number,
                directory=directory,
                limit_seconds=min(self._deadline - self.clock(), max(HANG_SECONDS, record.wall_seconds)),
                forward=forward,
                phase_reached=phase_reached,
            )
            record = record.model_copy(update={"warm": warm})
        forward.finish()
        seconds = None if record.failure else launch_seconds(record)
        self.log.event(
            LaunchFinished(
                variant=variant,
                round=number,
                seconds=None if seconds is None else decimal_string(seconds),
                failure=record.failure.reason if record.failure else None,
                wall_seconds=decimal_string(record.wall_seconds + (record.warm.wall_seconds if record.warm else 0.0)),
            )
        )
        return record

    def _wants_probe(self, record: LaunchRecord) -> bool:
        """Where something is compiled, in as many rounds as are measured in any case; the rest are for the steps."""
        if record.failure or "compileCache" not in record.facts:
            return False
        if self.interruption.signal is not None or self.clock() >= self._deadline:
            return False
        return self._rounds < self.case.measurement.rounds_min

    def _never_launched(self, variant: str, number: int, position: int) -> LaunchRecord:
        limit = self.case.measurement.time_limit_seconds
        message = f"the time limit of {limit} s had passed before its first launch: raise it, or compare fewer variants"
        failure = Failure(reason="TimedOut", message=message, round=number)
        return LaunchRecord(variant=variant, round=number, position=position, wall_seconds=0.0, failure=failure)

    def _judge(self, number: int, counted: Sequence[LaunchRecord], directories: Mapping[str, Path]) -> bool:
        """Have the rounds so far judged, `counted` included; False when there is nothing to judge, or no time to."""
        if not counted or self.interruption.signal is not None:
            return False
        self.headline("running", number=number, message="judging")
        began = self.clock()
        assessment = self.judge.assess(
            self.case,
            [*self._launches, *counted],
            {f"{number}/{launch.variant}": directories[launch.variant] for launch in counted if not launch.failure},
            limit_seconds=max(JUDGE_SECONDS, self._deadline - began),
        )
        self._judge_seconds += self.clock() - began
        if assessment is None:
            return False
        self._assessment = assessment
        return True

    def _keep(self, counted: Sequence[LaunchRecord], launches: Sequence[LaunchRecord]) -> None:
        """Remember the launches that count, apart from the others; the block series of all goes to the log."""
        parity = self._assessment.parity if self._assessment else {}
        for launch in launches:
            key = f"{launch.round}/{launch.variant}"
            record = launch.model_copy(update={"parity": parity.get(key)})
            (self._launches if launch in counted else self._discarded).append(record)
            self.log.document("launch", key, record.to_json())

    def _deliver(
        self, kind: DocumentKind, *, complete: bool, stopped: StopReason | None, notes: tuple[str, ...] = ()
    ) -> Result:
        course = Course(
            started=self._started,
            finished=_now(),
            total_seconds=self.clock() - self._began,
            judge_seconds=self._judge_seconds,
            complete=complete,
            stopped=stopped,
            host=self.host,
            notes=(*notes, *self.log.left_out()),
            discarded=tuple(self._discarded),
        )
        result = assemble(self.case, self._launches, self._assessment, course)
        self._digest = self.log.document(kind, str(result.rounds), result.to_json())
        return result

    def headline(
        self,
        state: Literal["running", "finished", "failed"],
        *,
        running: str | None = None,
        number: int | None = None,
        message: str = "",
    ) -> None:
        """Rewrite the termination message."""
        self.termination.write(
            Headline(
                case=self.case.name,
                attempt=self.case.origin.attempt,
                state=state,
                running=running,
                round=len(self._round_seconds) if number is None else number,
                digest=self._digest,
                comparisons=self._comparisons(),
                message=message,
            )
        )

    def _comparisons(self) -> tuple[ComparisonNow, ...]:
        return tuple(
            ComparisonNow(
                variant=comparison.variant,
                verdict=comparison.verdict,
                noisy=comparison.noisy,
                invalid=comparison.invalid,
                speedup=comparison.speedup,
                lower=comparison.lower,
                upper=comparison.upper,
            )
            for comparison in (self._assessment.comparisons if self._assessment else ())
        )


def _reasons(number: int, rounds: Sequence[Disturbed]) -> tuple[str, ...]:
    return next((each.reasons for each in rounds if each.round == number), ())


def _timed_out(record: LaunchRecord) -> bool:
    return record.failure is not None and record.failure.reason == "TimedOut"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
