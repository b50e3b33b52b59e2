"""Make one attempt at an item: measure a manifest, run a program, or check a variant."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from accelbench.api.reasons import StopReason
from accelbench.api.result import Result
from accelbench.api.run import BenchmarkRun, Rounds
from accelbench.local.device import platform_of
from accelbench.local.directory import RESULT_SUFFIX, RunDirectory
from accelbench.local.errors import LocalError, UnreadableResultError
from accelbench.local.interrupt import Signals
from accelbench.local.run import RunOutcome, measure
from accelbench.plan.cases import count_cases
from accelbench.report.live import display
from accelbench.terminal.console import console
from gpu.checks import ENVIRONMENT
from gpu_visit.items import Check, Measurement, ProgramRun, question
from gpu_visit.plan import Outcome, Step

MINIMUM_SECONDS = 10
"""Minimum time limit that a manifest may have."""
TIME_WAS_OVER = {StopReason.TIME_LIMIT_REACHED, StopReason.NO_TIME_FOR_ROUND}
MAXIMUM_LAST_SECONDS, LAST_SHARE = 40.0, 0.25
"""Seconds after a run's time limit in which the last round is judged, and their share of a short step."""
END_SECONDS = 15.0
"""Seconds for a process to end after it was asked to, before it is killed."""
KEPT_CHARACTERS = 4000
"""Length of the end of an output that is kept to explain a failure."""
PRINTED = "printed.json"
"""Name of the file with the JSON document that a command printed."""
RUN_WITH_PARENT = """
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
if os.getppid() == int(sys.argv[1]):  # else the parent ended before the call above
    os.execv(sys.argv[2], sys.argv[2:])
"""
"""Runs a command that ends with the visit, even if that is killed: else it would disturb the next one."""
_running: set[subprocess.Popen[str]] = set()


@dataclass(frozen=True)
class Performed:
    """Hold how an attempt ended, and the files that it wrote."""

    outcome: Outcome
    rounds: int = 0
    seconds: float = 0.0
    message: str = ""
    files: dict[str, str] = field(default_factory=dict)


def perform_measurement(item: Measurement, step: Step, directory: Path) -> Performed:
    """Measure the item's manifest in at most the step's seconds.

    `directory` may hold results of an earlier attempt that was killed: their cases are not measured again.
    """
    began = time.monotonic()
    run = with_limits(item.run, step)
    run_directory = RunDirectory(directory)
    try:
        # The timer ends before `Signals`, which turns its SIGTERM into the end of the runner.
        with Signals() as signals, _ended_after(step.seconds) as timer, display(console(stderr=True)) as live_display:
            outcome = measure(
                run,
                platform_of(run),
                run_directory,
                signals=signals,
                display=live_display,
                earlier_results=_earlier_results(run_directory, item),
            )
    except LocalError as error:
        return Performed("failed", seconds=time.monotonic() - began, message=error.explanation())
    except Exception:  # noqa: BLE001 - whatever is wrong with one item must not end the visit
        return Performed("failed", seconds=time.monotonic() - began, message=traceback.format_exc()[-KEPT_CHARACTERS:])
    results = [result for result, _ in outcome.measured]
    # If cases of an earlier attempt were kept, their time counts as well.
    seconds = max(time.monotonic() - began, sum(float(result.overhead.get("total", 0)) for result in results))
    reason = _why_not_measured(results, outcome, item, count_cases(run))
    if signals.received and not timer.fired:
        return Performed("interrupted", seconds=seconds, message=reason)
    if reason and (timer.fired or any(result.stopped in TIME_WAS_OVER for result in results)):
        return Performed("overran", seconds=seconds, message=f"{step.seconds:.0f} s were too short: {reason}")
    if reason:
        return Performed("failed", seconds=seconds, message=reason, files=_files(directory))
    return Performed("measured", min(result.rounds for result in results), seconds, files=_files(directory))


def with_limits(run: BenchmarkRun, step: Step) -> BenchmarkRun:
    """Return the run with a time limit and a maximum of rounds that suit the step.

    The judge and the launches share the time limit, after which what was measured has still to be judged: therefore the
    limit is a little shorter than the step, and the run ends in time by itself.
    """
    measurement = run.spec.measurement
    minimum = measurement.rounds.min
    last_seconds = min(MAXIMUM_LAST_SECONDS, LAST_SHARE * step.seconds)
    limits = {
        "rounds": Rounds(min=minimum, max=max(minimum, step.rounds)),
        "time_limit_seconds": max(MINIMUM_SECONDS, int(step.seconds - last_seconds)),
    }
    new_spec = run.spec.model_copy(update={"measurement": measurement.model_copy(update=limits)})
    return run.model_copy(update={"spec": new_spec})


def perform_program(item: ProgramRun, step: Step) -> Performed:
    """Run the item's program, which prints a JSON document."""
    performed, _errors = _perform_command([sys.executable, str(item.program), *item.arguments], {}, step)
    return performed


def perform_check(item: Check, step: Step) -> Performed:
    """Check the item's variant."""
    performed, errors = _perform_command(item.asked.command, ENVIRONMENT, step)
    if performed.outcome != "measured":
        return performed
    cases = json.loads(performed.files[PRINTED])
    failure = cases[0]["variants"][0]["failure"] if cases else errors
    if failure is None:
        return performed
    return Performed("failed", seconds=performed.seconds, message=str(failure))


def _why_not_measured(results: Sequence[Result], outcome: RunOutcome, item: Measurement, case_count: int) -> str:
    """Return why the outcome is no measurement; empty if every case has a round in which a variant was timed.

    A comparison has to be complete. Of a variant that is measured alone, enough rounds are a measurement even if the
    run was ended.
    """
    problems = "\n".join(problem for case in outcome.cases for problem in case.problems)
    wanted_rounds = item.task.rounds_min
    for result in results:
        failures = [variant.failure for variant in result.variants if variant.failure]
        if len(failures) == len(result.variants):
            return f"every variant failed; the first: {failures[0].message}"
        is_enough = item.variant is not None and result.rounds >= wanted_rounds
        if not result.complete and not is_enough:
            return problems[-KEPT_CHARACTERS:] or f"{result.case.name} was ended after {result.rounds} rounds"
        if not result.rounds:
            disturbed = [reason for quarantined in result.quarantined for reason in quarantined.reasons]
            return f"no complete round ({result.stopped}) {'; '.join(disturbed[:1])}".strip()
    return "" if len(results) == case_count else problems[-KEPT_CHARACTERS:] or "a case has no result"


def _earlier_results(directory: RunDirectory, item: Measurement) -> dict[str, Result]:
    """Return the complete results of an attempt at the same question that was killed, by the case's name."""
    if not directory.has_record:
        return {}
    try:
        record, results = directory.load()
    except UnreadableResultError:
        return {}
    if question(record.run) != item.task.question:
        return {}
    return {result.case.name: result for result in results if result.complete}


def _files(directory: Path) -> dict[str, str]:
    """Return the texts of a run's files by name, without logs and pages for the browser."""
    names = [path for path in sorted(directory.iterdir()) if path.suffix not in {".log", ".html"}]
    return {path.name: path.read_text(encoding="utf-8") for path in names if not path.name.startswith(".")}


def results_in(files: Mapping[str, str]) -> list[Result]:
    """Parse the results among the files of an attempt."""
    return [Result.model_validate_json(text) for name, text in files.items() if name.endswith(RESULT_SUFFIX)]


@dataclass
class Timer:
    """Remember whether the time was over."""

    fired: bool = False


@contextlib.contextmanager
def _ended_after(seconds: float) -> Iterator[Timer]:
    """Send SIGTERM to this process after `seconds`, unless the block has ended; `Signals` forwards it to the runner."""
    timer = Timer()

    def fire() -> None:
        timer.fired = True
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Timer(seconds, fire)
    thread.daemon = True
    thread.start()
    try:
        yield timer
    finally:
        thread.cancel()


def _perform_command(command: Sequence[str], environment: Mapping[str, str], step: Step) -> tuple[Performed, str]:
    """Run a command that prints a JSON document; return the attempt and the end of the command's standard error."""
    began = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-c", RUN_WITH_PARENT, str(os.getpid()), *command],
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        _running.add(process)
        try:
            output, errors = process.communicate(timeout=step.seconds)
        except subprocess.TimeoutExpired:
            _end(process)
            message = f"ended after {step.seconds:.0f} s"
            return Performed("overran", seconds=time.monotonic() - began, message=message), ""
        finally:
            _running.discard(process)
    seconds, errors = time.monotonic() - began, errors[-KEPT_CHARACTERS:]
    try:
        json.loads(output)
    except ValueError:
        message = f"status {process.returncode}, without a JSON document: {errors}"
        return Performed("failed", seconds=seconds, message=message), errors
    return Performed("measured", 1, seconds, files={PRINTED: output}), errors


def end_running() -> None:
    """End all commands that run now, whose threads then return."""
    for process in tuple(_running):
        _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    """End a process and its children: ask them, then kill them."""
    for number, patience in ((signal.SIGTERM, END_SECONDS), (signal.SIGKILL, None)):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=patience)
            return
