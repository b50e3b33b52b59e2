"""A BenchmarkRun on this machine: its cases one after the other, each measured by a runner as in a pod."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

import accelbench
from accelbench.api.case import Case
from accelbench.api.result import Result
from accelbench.api.run import BenchmarkRun
from accelbench.catalogue.script import ORIGIN, VARIABLE
from accelbench.document import timestamp
from accelbench.local.child import RunnerExit, run_case
from accelbench.local.directory import RunDirectory, RunRecord, reserve_beside
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
    """What came of one case."""

    case: Case
    result: Result | None
    expectations: tuple[ExpectationOutcome, ...] = ()
    trouble: tuple[str, ...] = ()
    """What went wrong that no variant is to blame for."""


@dataclass(frozen=True)
class RunOutcome:
    """What came of a run; cases that were not reached are not in it."""

    record: RunRecord
    cases: tuple[CaseOutcome, ...]
    exit: Exit

    @property
    def measured(self) -> tuple[tuple[Result, tuple[ExpectationOutcome, ...]], ...]:
        """The cases that have a result."""
        return tuple((case.result, case.expectations) for case in self.cases if case.result is not None)


def now() -> datetime:
    """The wall clock, in UTC."""
    return datetime.now(tz=UTC)


def reserve(runs: Sequence[BenchmarkRun], out: Path | None) -> list[RunDirectory]:
    """A new directory for each run; of several they lie in `out`. Raises OccupiedError and OSError."""
    names = [run.metadata.name for run in runs]
    if out is None:
        return [reserve_beside(Path("results", f"{name}-{now():%Y%m%dT%H%M%SZ}")) for name in names]
    directory = RunDirectory(out)
    directory.reserve()
    return [directory] if len(runs) == 1 else [reserve_beside(out / name) for name in names]


def write_page(directory: RunDirectory) -> str | None:
    """`report.html`, after all else is written and shown: drawing takes a second or two, and an extra.

    Returns what to install where that is missing.
    """
    if (what := html.missing()) is None:
        found = read(directory.path)
        directory.write_page(html.report(found.name, found.pages(), manifest=found.manifest()))
    return what


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
    """Run every case, write what it gave as soon as it has ended, and stop at the first signal.

    What is `done`, by its case's name, an earlier run has left in the directory; it stays and is not run. `script` is
    the workload's file, where the run has one: a copy of it is kept beside the results, and measured. Without a number
    of `processors` all are used. Runners have `environment` beside this process's.
    """
    cases = plan_cases(run, platform)
    record = RunRecord(
        accelbench=accelbench.__version__, started=timestamp(now()), cases=tuple(case.name for case in cases), run=run
    )
    directory.create()
    for case in cases:
        if case.name not in done:
            directory.forget(case.name)
    directory.write_record(record)
    beside = {**environment, **script_environment(script, directory)}
    outcomes: list[CaseOutcome] = []
    for number, case in enumerate(cases, start=1):
        if signals.received is not None:
            break
        if case.name in done:
            outcomes.append(_known(run, case, done[case.name]))
            continue
        display.case_begins(case, number, len(cases))
        log = directory.log(case.name)
        ended = run_case(
            case,
            log,
            signals=signals,
            on_event=display.event,
            on_tick=display.tick,
            environment=beside,
            processors=processors,
        )
        display.case_ends()
        if ended.result is not None:
            directory.write_result(ended.result, ended.launches)
        outcomes.append(_outcome(run, case, ended, log, interrupted=signals.received is not None))
    code = exit_for(outcomes)
    if signals.received is not None:
        code = EXIT_OF_SIGNAL[signals.received.name]
    record = record.model_copy(update={"finished": timestamp(now()), "exit_code": int(code)})
    directory.write_record(record)
    outcome = RunOutcome(record=record, cases=tuple(outcomes), exit=code)
    directory.write_report(markdown.report(run.metadata.name, outcome.measured))
    return outcome


def script_environment(script: Path | None, directory: RunDirectory) -> dict[str, str]:
    """What a runner is told of the script: the copy that is kept with the results, and what it is a copy of."""
    if script is None:
        return {}
    return {VARIABLE: str(directory.keep_script(script).resolve()), ORIGIN: str(script.absolute())}


def exit_for(outcomes: Sequence[CaseOutcome]) -> Exit:
    """The exit code of a run that nobody interrupted."""
    codes: list[Exit] = []
    for outcome in outcomes:
        result = outcome.result
        if result is None or not result.complete:
            codes.append(Exit.INTERNAL)
        if result is not None:
            if result.failed_variants:
                codes.append(Exit.VARIANT_FAILED)
            if _untold(result) or result.untimed_variants:
                codes.append(Exit.INVALID_MEASUREMENT)
            if result.noisy:
                codes.append(Exit.NOISY)
            if result.refuted_observations:
                codes.append(Exit.INVALID_MEASUREMENT)
        if any(expectation.outcome != "met" for expectation in outcome.expectations):
            codes.append(Exit.EXPECTATION_NOT_MET)
    return Exit.worst(codes)


def _untold(result: Result) -> bool:
    """A comparison has neither verdict nor accepted noise, or was never made: there was no time for the variant."""
    compared = {each.variant for each in result.comparisons if each.verdict is not None or each.noisy}
    wanted = {variant.name for variant in result.case.variants if variant.name != result.case.baseline}
    return result.protocol != "compile" and not result.observations and compared != wanted


def _outcome(run: BenchmarkRun, case: Case, ended: RunnerExit, log: Path, *, interrupted: bool) -> CaseOutcome:
    trouble = [f"{case.name}: {problem}" for problem in ended.problems]
    delivered = ended.result is not None and ended.result.complete
    if not delivered and not interrupted:
        how = f"was ended by signal {-ended.code}" if ended.code < 0 else f"ended with status {ended.code}"
        kept = "only a checkpoint" if ended.result else "no result"
        trouble.append(f"{case.name}: the runner {how} and left {kept}; its log is {log}")
        trouble += [f"  {line}" for line in ended.tail]
    if ended.result is None:
        return CaseOutcome(case=case, result=None, trouble=tuple(trouble))
    return _known(run, case, ended.result, tuple(trouble))


def _known(run: BenchmarkRun, case: Case, result: Result, trouble: tuple[str, ...] = ()) -> CaseOutcome:
    expectations = evaluate(run.spec.expectations, result)
    return CaseOutcome(case=case, result=result, expectations=expectations, trouble=trouble)
