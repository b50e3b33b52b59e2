"""Launch each variant once more, under its framework's profiler, after all that is timed.

Errors become notes: a result is complete without an explanation.
"""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from accelbench.api.case import Case
from accelbench.api.operation_times import TIMED_CALLS
from accelbench.api.result import Phase
from accelbench.delivery.traces import trace_file
from accelbench.launch.fact import Unreadable
from accelbench.launch.facts import PROBES
from accelbench.launch.record import LaunchRecord
from accelbench_runner.protocol import TRACE_FILE
from accelbench_runner.supervisor.allowance import launch_limit
from accelbench_runner.supervisor.children import UnkillableError
from accelbench_runner.supervisor.launcher import Launcher
from accelbench_runner.supervisor.log_writer import LogWriter, OutputForwarder


@dataclass
class Explainer:
    """Make the launches that explain a case, and keep their records and the reasons of those that failed."""

    case: Case
    launcher: Launcher
    log: LogWriter
    directory: Path
    """Directory for the launches' own files."""
    traces: Path | None
    """Directory that keeps the traces; None: they are not kept."""
    seconds_left: Callable[[], float]
    """Returns the seconds left of the case's time limit."""
    interrupted: Callable[[], bool]
    records: list[LaunchRecord] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def explain(self, launches: Sequence[LaunchRecord]) -> None:
        """Launch each variant that has times among `launches`, until time is up or a signal arrives.

        Add a note for each variant that could not be explained.
        """
        protocols = {launch.protocol for launch in launches if launch.failure is None}
        if protocols - TIMED_CALLS:
            self.notes.append(f"nothing to explain: the protocol {', '.join(sorted(protocols))} times no single calls")
            return
        failed = {launch.variant for launch in launches if launch.failure}
        for number, variant in enumerate(self.case.variants, start=1):
            earlier = [launch for launch in launches if launch.variant == variant.name]
            if variant.name in failed or not earlier:
                continue
            if self.interrupted():
                return
            if self.seconds_left() <= 0:
                self._note(variant.name, "the case has reached its time limit; raise timeLimitSeconds")
                continue
            try:
                record = self._launch(variant.name, number, earlier)
            except (OSError, UnkillableError) as error:  # the launches of other variants would fail too
                self._note(variant.name, str(error))
                return
            self.records.append(record)
            if reason := _why_unexplained(record):
                self._note(variant.name, reason)
            else:
                self._keep_trace(variant.name, number)

    def _launch(self, variant: str, number: int, earlier: Sequence[LaunchRecord]) -> LaunchRecord:
        """Launch a variant under its profiler, and return the record.

        `number` is the variant's place in the case, from 1; `earlier` are the variant's earlier launches.
        """
        self.log.notice(f"{variant}: one more launch, under the profiler")
        directory = self._launch_directory(number)
        directory.mkdir()
        forward = OutputForwarder(self.log, f"{variant} profiled")
        seconds_left = self.seconds_left()
        record = self.launcher.launch(
            variant,
            round_number=max(launch.round for launch in earlier) + 1,  # the launch belongs to no measured round
            position=number - 1,
            directory=directory,
            limit=launch_limit(
                seconds_left,
                time_limit=self.case.measurement.time_limit_seconds,
                round_launches=len(self.case.variants),
                launches_left=1,
                rounds_min=self.case.measurement.rounds_min,
                earlier_seconds=[launch.wall_seconds for launch in earlier],
            ),
            case_seconds=seconds_left,
            skip=dict.fromkeys(PROBES, "the launch explains, and measures nothing"),
            forward=forward,
            phase_reached=_ignore_phase,
            purpose="explain",
        )
        forward.finish()
        return record

    def _keep_trace(self, variant: str, number: int) -> None:
        """Move the trace of a launch to the directory that keeps traces, if there is one."""
        if self.traces is None:
            return
        name = trace_file(self.case.name, number, variant)
        try:
            shutil.move(self._launch_directory(number) / TRACE_FILE, self.traces / name)
        except OSError as error:
            self.notes.append(f"{variant}: its trace was not kept: {error}")

    def _launch_directory(self, number: int) -> Path:
        """Return the directory for the launch of the variant whose place in the case is `number`, from 1."""
        return self.directory / f"explain-{number}"

    def _note(self, variant: str, reason: str) -> None:
        """Note why the operations of a variant are not known."""
        self.notes.append(f"{variant}: the operations that take most are not known: {reason}")


def _why_unexplained(record: LaunchRecord) -> str:
    """Return why a launch did not report the operations that take most; empty if it did."""
    if record.failure:
        return f"{record.failure.reason}: {record.failure.message}"
    if record.unfinished:
        return f"its launch under the profiler was not finished ({record.unfinished})"
    fact = record.facts.profiled_calls
    return fact.why if isinstance(fact, Unreadable) else ""


def _ignore_phase(_phase: Phase) -> None:
    """Do nothing with the phase that a launch has reached."""
