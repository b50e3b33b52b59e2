"""Measure a BenchmarkRun on this machine: run its cases one after the other, each in a runner as in a pod."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

import accelbench
from accelbench.api.case import Case
from accelbench.api.result import Result
from accelbench.api.run import BenchmarkRun
from accelbench.catalogue.script import ORIGIN_VARIABLE, SCRIPT_VARIABLE
from accelbench.document import timestamp
from accelbench.local.child import RunnerExit, run_case
from accelbench.local.directory import RunDirectory, RunRecord, reserve_numbered
from accelbench.local.exits import Exit
from accelbench.local.interrupt import Signals
from accelbench.local.results import read
from accelbench.plan.cases import plan_cases
from accelbench.report import html, markdown
from accelbench.report.live import Display
from accelbench.verdict.expectations import ExpectationOutcome, evaluate

EXIT_OF_SIGNAL = {"SIGINT": Exit.INTERRUPTED, "SIGTERM": Exit.TERMINATED}


@dataclass(frozen=True)
class CaseOutcome:
    """Hold the outcome of one case."""

    case: Case
    result: Result | None
    expectations: tuple[ExpectationOutcome, ...] = ()
    trouble: tuple[str, ...] = ()
    """Messages about failures that are no variant's fault."""


@dataclass(frozen=True)
class RunOutcome:
    """Hold the outcome of a run, without the cases that an interrupt kept from starting."""

    record: RunRecord
    cases: tuple[CaseOutcome, ...]
    exit: Exit

    @property
    def measured(self) -> tuple[tuple[Result, tuple[ExpectationOutcome, ...]], ...]:
        """Return the results, each with the outcomes of the run's expectations."""
        return tuple((case.result, case.expectations) for case in self.cases if case.result is not None)


def reserve(runs: Sequence[BenchmarkRun], out: Path | None) -> list[RunDirectory]:
    """Create a directory for each run, below `out` if there are several; raises OccupiedError and OSError."""
    names = [run.metadata.name for run in runs]
    if out is None:
        return [reserve_numbered(Path("results", f"{name}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}")) for name in names]
    directory = RunDirectory(out)
    directory.reserve()
    return [directory] if len(runs) == 1 else [reserve_numbered(out / name) for name in names]


def write_page(directory: RunDirectory) -> str | None:
    """Write `report.html`, or return the packages to install for it.

    Call this last: drawing takes a second or two.
    """
    hint = html.install_hint()
    if hint is None:
        loaded = read(directory.path)
        directory.write_page(html.report(loaded.name, loaded.pages(), manifest=loaded.manifest()))
    return hint


def measure(
    run: BenchmarkRun,
    platform: str,
    directory: RunDirectory,
    *,
    signals: Signals,
    display: Display,
    script: Path | None = None,
    processors: int | None = None,
    environment: Mapping[str, str] = MappingProxyType({}),
    done: Mapping[str, Result] = MappingProxyType({}),
) -> RunOutcome:
    """Run every case, write its result as soon as it has ended, and stop at the first signal.

    Args:
        run: The run, planned into cases here.
        platform: The platform of the run's profile.
        directory: The directory for the results.
        signals: The handler that forwards Ctrl-C and SIGTERM to the runner.
        display: The progress display.
        script: The workload's file; a copy is kept with the results, and the copy is measured.
        processors: How many processors a runner uses; None: all.
        environment: Variables that are added to this process's.
        done: Results by case name that are in the directory already; their cases do not run again.
    """
    cases = plan_cases(run, platform)
    record = RunRecord(
        accelbench=accelbench.__version__,
        started=timestamp(datetime.now(UTC)),
        cases=tuple(case.name for case in cases),
        run=run,
    )
    directory.prepare(record, keep=done)
    variables = {**environment, **script_environment(script, directory)}
    outcomes: list[CaseOutcome] = []
    for number, case in enumerate(cases, start=1):
        if signals.received is not None:
            break
        if case.name in done:
            outcomes.append(_with_expectations(run, case, done[case.name]))
            continue
        display.start_case(case, number, len(cases))
        log = directory.log_path(case.name)
        exited = run_case(
            case,
            log,
            signals=signals,
            on_event=display.event,
            on_tick=display.tick,
            environment=variables,
            processors=processors,
        )
        display.end_case()
        if exited.result is not None:
            directory.write_result(exited.result, exited.launches)
        outcomes.append(_outcome(run, case, exited, log, interrupted=signals.received is not None))
    code = exit_for(outcomes) if signals.received is None else EXIT_OF_SIGNAL[signals.received.name]
    return _finish(record, tuple(outcomes), code, directory)


def _finish(record: RunRecord, cases: tuple[CaseOutcome, ...], code: Exit, directory: RunDirectory) -> RunOutcome:
    """Write the end of the run and the Markdown report."""
    record = record.model_copy(update={"finished": timestamp(datetime.now(UTC)), "exit_code": int(code)})
    directory.write_record(record)
    outcome = RunOutcome(record=record, cases=cases, exit=code)
    directory.write_report(markdown.report(record.run.metadata.name, outcome.measured))
    return outcome


def script_environment(script: Path | None, directory: RunDirectory) -> dict[str, str]:
    """Copy the script to the results, and return the variables that name the copy and the original."""
    if script is None:
        return {}
    return {SCRIPT_VARIABLE: str(directory.copy_script(script).resolve()), ORIGIN_VARIABLE: str(script.absolute())}


def exit_for(outcomes: Sequence[CaseOutcome]) -> Exit:
    """Return the exit code of a run that was not interrupted."""
    codes: list[Exit] = []
    for outcome in outcomes:
        result = outcome.result
        if result is None or not result.complete:
            codes.append(Exit.INTERNAL)
        if result is not None:
            if result.failed_variants:
                codes.append(Exit.VARIANT_FAILED)
            if _lacks_comparison(result) or result.untimed_variants:
                codes.append(Exit.INVALID_MEASUREMENT)
            if result.noisy:
                codes.append(Exit.NOISY)
            if result.refuted_observations:
                codes.append(Exit.INVALID_MEASUREMENT)
        if any(expectation.outcome != "met" for expectation in outcome.expectations):
            codes.append(Exit.EXPECTATION_NOT_MET)
    return Exit.worst(codes)


def _lacks_comparison(result: Result) -> bool:
    """Return True if a variant was not compared, or has neither a verdict nor accepted noise."""
    compared = {item.variant for item in result.comparisons if item.verdict is not None or item.noisy}
    wanted = {variant.name for variant in result.case.variants if variant.name != result.case.baseline}
    return result.protocol != "compile" and not result.observations and compared != wanted


def _outcome(run: BenchmarkRun, case: Case, exited: RunnerExit, log: Path, *, interrupted: bool) -> CaseOutcome:
    trouble = [f"{case.name}: {problem}" for problem in exited.problems]
    delivered = exited.result is not None and exited.result.complete
    if not delivered and not interrupted:
        how = f"was ended by signal {-exited.code}" if exited.code < 0 else f"ended with status {exited.code}"
        kept = "only a checkpoint" if exited.result else "no result"
        trouble.append(f"{case.name}: the runner {how} and left {kept}; its log is {log}")
        trouble += [f"  {line}" for line in exited.tail]
    if exited.result is None:
        return CaseOutcome(case=case, result=None, trouble=tuple(trouble))
    return _with_expectations(run, case, exited.result, tuple(trouble))


def _with_expectations(run: BenchmarkRun, case: Case, result: Result, trouble: tuple[str, ...] = ()) -> CaseOutcome:
    expectations = evaluate(run.spec.expectations, result)
    return CaseOutcome(case=case, result=result, expectations=expectations, trouble=trouble)
