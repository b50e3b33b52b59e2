"""`python -m accelbench_runner CASE`: measures one case and delivers one result.

With `--check` each variant runs twice, nothing is timed, and the result is a certificate of what they compute.

Exit status: 0 a result was delivered, failed variants included; 2 the case document cannot be run; 3 an error of
accelbench's own; 130 or 143 after SIGINT or SIGTERM, with a partial result. The log goes to standard output, the
headline to the file that ACCELBENCH_TERMINATION_LOG names, and nothing is written outside the work directory
(ACCELBENCH_WORK_DIRECTORY, or a temporary one). It ends with the process ACCELBENCH_ENDS_WITH, where that started it.
"""

import argparse
import os
import resource
import secrets
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from accelbench import catalogue
from accelbench.api.case import Case
from accelbench.api.reasons import StopReason
from accelbench.delivery.log import Headline, MachineSeen
from accelbench.machine import fingerprint
from accelbench_runner.protocol import ABOUT_THE_MACHINE
from accelbench_runner.supervisor import processors, surroundings
from accelbench_runner.supervisor.allowance import PROBE_SECONDS
from accelbench_runner.supervisor.case_file import InvalidCaseError, read_case
from accelbench_runner.supervisor.children import Interruption, UnkillableError, adopt_orphans, terminate_with
from accelbench_runner.supervisor.experiment import ProbeError, Supervisor
from accelbench_runner.supervisor.judge_process import Judge, JudgeError, JudgeKilledError, NothingToJudge
from accelbench_runner.supervisor.launcher import Launcher, compiler_memory_limit
from accelbench_runner.supervisor.log_writer import LogWriter, TerminationMessage

EXIT_DELIVERED = 0
EXIT_INVALID_CASE = 2
EXIT_INTERNAL = 3
EXIT_SIGNAL = 128
STANDARD_OUTPUT = 1

LAUNCH = (sys.executable, "-m", "accelbench_runner.launch")
JUDGE = (sys.executable, "-m", "accelbench_runner.judge")


def main(
    arguments: Sequence[str] | None = None,
    *,
    launch_command: Sequence[str] = LAUNCH,
    judge_command: Sequence[str] = JUDGE,
    take_survey: surroundings.TakeSurvey = surroundings.take_survey,
    probe_seconds: float = PROBE_SECONDS,
) -> int:
    """Run one case; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m accelbench_runner", description="Measure one case.")
    parser.add_argument("case", type=Path, help="the case document, JSON")
    parser.add_argument("--check", action="store_true", help="time nothing: only whether the variants are right")
    parser.add_argument("--processors", type=int, help="use only so many, idle ones first; default: all")
    given = parser.parse_args(arguments)
    interruption = Interruption()
    interruption.listen()
    if parent := os.environ.get("ACCELBENCH_ENDS_WITH"):
        terminate_with(int(parent))
    log = LogWriter(STANDARD_OUTPUT)
    termination = TerminationMessage(_termination_log(), complain=log.notice)
    try:
        case = read_case(given.case)
    except InvalidCaseError as error:
        log.notice(f"error: {error}")
        termination.write(Headline(case="", attempt=0, state="failed", message=str(error)))
        return EXIT_INVALID_CASE
    try:
        with _work_directory() as directory:
            launcher = partial(Launcher, case=case, command=launch_command, probe_seconds=probe_seconds)
            threads = len(processors.set_affinity(given.processors))
            supervisor = _supervisor(case, directory, log, termination, interruption, launcher, judge_command, threads)
            if case.accelerator.target is not None:
                supervisor = _compiling(supervisor)
            elif given.check:
                supervisor = _checking(supervisor)
            elif supervisor.compares:
                _warn(supervisor, take_survey)
            return _run(supervisor, log)
    except OSError as error:  # no directory to work in, or nobody who reads the log any more
        message = f"internal error: {error}"
        termination.write(Headline(case=case.name, attempt=case.origin.attempt, state="failed", message=message))
        sys.stderr.write(f"accelbench: {message}\n")
        return EXIT_INTERNAL


def _run(supervisor: Supervisor, log: LogWriter) -> int:
    try:
        result = supervisor.run()
    except JudgeKilledError as error:
        supervisor.give_up(str(error))
        return EXIT_INTERNAL
    except (JudgeError, ProbeError, UnkillableError) as error:
        supervisor.give_up(f"internal error: {error}")
        return EXIT_INTERNAL
    except Exception as error:  # noqa: BLE001 - whatever it is, what was measured is delivered
        log.notice(traceback.format_exc())
        supervisor.give_up(f"internal error: {type(error).__name__}: {error}")
        return EXIT_INTERNAL
    signal = supervisor.interruption.signal
    return EXIT_SIGNAL + signal if signal and result.stopped == StopReason.INTERRUPTED else EXIT_DELIVERED


def _supervisor(
    case: Case,
    directory: Path,
    log: LogWriter,
    termination: TerminationMessage,
    interruption: Interruption,
    launcher: Callable[..., Launcher],
    judge_command: Sequence[str],
    threads: int,
) -> Supervisor:
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))  # a launch that crashes must not fill the disk
    adopt_orphans()
    machine = os.environ.get(ABOUT_THE_MACHINE, str(directory / "machine"))
    environment = {**os.environ, **processors.thread_environment(threads), ABOUT_THE_MACHINE: machine}
    judge_directory = directory / "judge"
    judge_directory.mkdir()
    unseen_seed = secrets.randbits(63)
    return Supervisor(
        case=case,
        launcher=launcher(environment=environment, threads=threads, interruption=interruption, unseen_seed=unseen_seed),
        judge=Judge(
            command=judge_command,
            environment=environment,
            directory=judge_directory,
            interruption=interruption,
            log=log,
            unseen_seed=unseen_seed,
        ),
        log=log,
        termination=termination,
        interruption=interruption,
        directory=directory,
        host=_fingerprint(case, threads),
        compares=_compares(case),
    )


def _checking(supervisor: Supervisor) -> Supervisor:
    """The same case with nothing timed: then no variant's failure makes another's result worthless."""
    judge = supervisor.judge
    return replace(
        supervisor,
        launcher=replace(supervisor.launcher, purpose="check"),
        judge=replace(judge, timed=False) if isinstance(judge, Judge) else judge,
        compares=False,
    )


def _compiling(supervisor: Supervisor) -> Supervisor:
    """The same case compiled for its target: one launch of each variant, each within its own limit of memory."""
    return replace(
        supervisor,
        launcher=replace(supervisor.launcher, purpose="compile", memory_bytes=compiler_memory_limit()),
        judge=NothingToJudge(),
        compares=False,
    )


def _compares(case: Case) -> bool:
    """Whether times of its variants are compared; else each is observed for itself."""
    workload = catalogue.find(case.workload)
    return workload.measure(catalogue.parse_parameters(workload, case.parameters)).protocol != "observe"


def _fingerprint(case: Case, threads: int) -> dict[str, str]:
    """What is known before the first launch."""
    workload = catalogue.find(case.workload)
    parameters = catalogue.parse_parameters(workload, case.parameters).model_dump(mode="json")
    return {
        **fingerprint.of_host(threads=threads),
        **fingerprint.of_source(type(workload)),
        **fingerprint.of_case(case, parameters),
    }


def _warn(supervisor: Supervisor, take_survey: surroundings.TakeSurvey) -> None:
    """Says what will disturb the case, before its time begins."""
    case, log = supervisor.case, supervisor.log
    try:
        survey = take_survey(supervisor.host)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        log.notice(f"what the machine is doing cannot be seen: {error}")
        return
    if lines := surroundings.warnings(survey, supervisor.host, accepts_noise=case.measurement.accept_noise):
        for line in lines:
            log.notice(f"warning: {line}")
        log.event(MachineSeen(warnings=lines))


def _termination_log() -> Path | None:
    named = os.environ.get("ACCELBENCH_TERMINATION_LOG")
    if named:
        return Path(named)
    default = Path("/dev/termination-log")
    return default if default.exists() else None


@contextmanager
def _work_directory() -> Iterator[Path]:
    """A fresh directory inside the one that was given, or a temporary one; removed at the end."""
    directory = Path(tempfile.mkdtemp(prefix="ab-", dir=os.environ.get("ACCELBENCH_WORK_DIRECTORY")))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
