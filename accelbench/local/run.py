"""Measure a BenchmarkRun on this machine: run its cases one after the other, each in a runner as in a pod."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

import accelbench
from accelbench.api.case import Case
from accelbench.api.environment import CaseEnvironment
from accelbench.api.result import Result
from accelbench.api.run import BenchmarkRun
from accelbench.catalogue.script import ORIGIN_VARIABLE, SCRIPT_VARIABLE
from accelbench.delivery.traces import TRACE_DIRECTORY
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
    problems: tuple[str, ...] = ()
    """Messages about failures that are no variant's fault."""


@dataclass(frozen=True)
class RunOutcome:
    """Hold the outcome of a run. Cases that did not start because of a signal are left out."""

    record: RunRecord
    cases: tuple[CaseOutcome, ...]
    exit: Exit

    @property
    def measured(self) -> tuple[tuple[Result, tuple[ExpectationOutcome, ...]], ...]:
        """Return each result with the outcomes of its expectations."""
        return tuple((case.result, case.expectations) for case in self.cases if case.result is not None)


def reserve(runs: Sequence[BenchmarkRun], out: Path | None) -> list[RunDirectory]:
    """Create a directory for the results of each run; raises OSError.

    Several runs use subdirectories of `out`. Without `out`, directories in `results` have the run's name and the time.
    """
    names = [run.metadata.name for run in runs]
    if out is None:
        return [reserve_numbered(Path("results", f"{name}-{datetime.now(UTC):%Y%m%dT%H%M%SZ}")) for name in names]
    directory = RunDirectory(out)
    directory.reserve()
    return [directory] if len(runs) == 1 else [reserve_numbered(out / name) for name in names]


def write_page(directory: RunDirectory) -> str | None:
    """Write `report.html` and return None; if a package is missing, return how to install it instead.

    Call this last: drawing takes a second or two.
    """
    hint = html.install_hint()
    if hint is None:
        loaded = read(directory.path)
        directory.write_page(html.report(loaded.name, loaded.cases_with_launches(), manifest=loaded.manifest()))
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
    earlier_results: Mapping[str, Result] = MappingProxyType({}),
    environments: tuple[CaseEnvironment, ...] = (),
) -> RunOutcome:
    """Run all cases until a signal arrives, and write each result at once.

    Args:
        run: The run.
        platform: Name of the platform of the run's profile.
        directory: The directory for the results.
        signals: The handler that forwards Ctrl-C and SIGTERM to the runner.
        display: The progress display.
        script: The workload's file. A copy in the directory of the results is measured.
        processors: Number of CPUs for each runner; None for all.
        environment: Environment variables for the runner, in addition to this process's variables.
        earlier_results: Results that the directory already has, by case name. Their cases do not run again.
        environments: The run's environments, as `accelbench.local.environments` has installed them.
    """
    cases = plan_cases(run, platform, environments=environments)
    record = RunRecord(
        accelbench=accelbench.__version__,
        started=timestamp(datetime.now(UTC)),
        cases=tuple(case.name for case in cases),
        run=run,
    )
    directory.prepare(record, keep=earlier_results)
    runner_environment = {
        **environment,
        **script_environment(script, directory),
        TRACE_DIRECTORY: str(directory.path.resolve()),
    }
    outcomes: list[CaseOutcome] = []
    for number, case in enumerate(cases, start=1):
        if signals.received is not None:
            break
        if case.name in earlier_results:
            outcomes.append(_evaluated_outcome(run, case, earlier_results[case.name]))
            continue
        display.start_case(case, number, len(cases))
        log = directory.log_path(case.name)
        runner_exit = run_case(
            case,
            log,
            signals=signals,
            on_event=display.event,
            on_tick=display.tick,
            environment=runner_environment,
            processors=processors,
        )
        display.end_case()
        if runner_exit.result is not None:
            directory.write_result(runner_exit.result, runner_exit.launches)
        outcomes.append(_case_outcome(run, case, runner_exit, log, interrupted=signals.received is not None))
    exit_code = exit_for(outcomes) if signals.received is None else EXIT_OF_SIGNAL[signals.received.name]
    return _finish(record, tuple(outcomes), exit_code, directory)


def _finish(record: RunRecord, cases: tuple[CaseOutcome, ...], exit_code: Exit, directory: RunDirectory) -> RunOutcome:
    """Write the completed record and the Markdown report of a run, and return the run's outcome."""
    record = record.model_copy(update={"finished": timestamp(datetime.now(UTC)), "exit_code": int(exit_code)})
    directory.write_record(record)
    outcome = RunOutcome(record=record, cases=cases, exit=exit_code)
    directory.write_report(markdown.report(record.run.metadata.name, outcome.measured))
    return outcome


def script_environment(script: Path | None, directory: RunDirectory) -> dict[str, str]:
    """Copy the script into the directory; return the environment variables that name the copy and the original."""
    if script is None:
        return {}
    copy = directory.copy_script(script)
    return {SCRIPT_VARIABLE: str(copy.resolve()), ORIGIN_VARIABLE: str(script.absolute())}


def exit_for(outcomes: Sequence[CaseOutcome]) -> Exit:
    """Return the most severe exit code that the outcomes of the cases call for; SUCCESS if nothing went wrong."""
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
            if result.has_refuted_observations:
                codes.append(Exit.INVALID_MEASUREMENT)
        if any(expectation.outcome != "met" for expectation in outcome.expectations):
            codes.append(Exit.EXPECTATION_NOT_MET)
    return Exit.worst(codes)


def exit_for_results(run: BenchmarkRun, results: Iterable[Result]) -> Exit:
    """Return the most severe exit code that a run's results call for."""
    return exit_for([_evaluated_outcome(run, result.case, result) for result in results])


def _lacks_comparison(result: Result) -> bool:
    """Return True if a variant has no verdict against the baseline, for another reason than accepted noise.

    Return False if nothing was timed: then no verdict is expected.
    """
    if result.protocol == "compile" or result.observations:
        return False
    compared_variants = {
        comparison.variant for comparison in result.comparisons if comparison.verdict is not None or comparison.noisy
    }
    other_variants = {variant.name for variant in result.case.variants if variant.name != result.case.baseline}
    return compared_variants != other_variants


def _case_outcome(
    run: BenchmarkRun, case: Case, runner_exit: RunnerExit, log: Path, *, interrupted: bool
) -> CaseOutcome:
    """Return the outcome of a case from its runner's exit.

    `log` is the path of the runner's output. A missing result is no problem if a signal `interrupted` the run.
    """
    problems = [f"{case.name}: {problem}" for problem in runner_exit.problems]
    is_complete = runner_exit.result is not None and runner_exit.result.complete
    if not is_complete and not interrupted:
        code = runner_exit.code
        end = f"was ended by signal {-code}" if code < 0 else f"ended with status {code}"
        delivery = "only a checkpoint" if runner_exit.result else "no result"
        problems.append(f"{case.name}: the runner {end} and left {delivery}; its log is {log}")
        problems += [f"  {line}" for line in runner_exit.tail]
    if runner_exit.result is None:
        return CaseOutcome(case=case, result=None, problems=tuple(problems))
    return _evaluated_outcome(run, case, runner_exit.result, tuple(problems))


def _evaluated_outcome(run: BenchmarkRun, case: Case, result: Result, problems: tuple[str, ...] = ()) -> CaseOutcome:
    """Evaluate the run's expectations for a case that has a result, and return the case's outcome."""
    expectations = evaluate(run.spec.expectations, result)
    return CaseOutcome(case=case, result=result, expectations=expectations, problems=problems)
