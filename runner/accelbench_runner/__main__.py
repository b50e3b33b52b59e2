"""Measure one case and deliver one result: `python -m accelbench_runner CASE`.

With `--check`, each variant is launched twice, nothing is timed, and the result is a validity certificate.

Exit status: 0 a result was delivered, even if variants failed; 1 it took an hour longer than the case's time limit; 2
the case document cannot be run; 3 an error of accelbench's own; 130 or 143 after SIGINT or SIGTERM, with a partial
result. The log goes to standard output, the headline to the file that ACCELBENCH_TERMINATION_LOG names. Nothing is
written outside the work directory, which is created in ACCELBENCH_WORK_DIRECTORY or in the system's temporary
directory. If ACCELBENCH_ENDS_WITH holds the id of the parent process, this process ends when the parent ends.
"""

import argparse
import faulthandler
import os
import resource
import secrets
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from accelbench import catalogue
from accelbench.api.case import Case
from accelbench.api.reasons import StopReason
from accelbench.delivery.log import Headline, MachineSeen
from accelbench.delivery.traces import TRACE_DIRECTORY
from accelbench.machine import fingerprint
from accelbench.workload import Workload
from accelbench_runner.protocol import MACHINE_DIRECTORY, Purpose
from accelbench_runner.supervisor import preflight, processors
from accelbench_runner.supervisor.allowance import PROBE_SECONDS
from accelbench_runner.supervisor.case_file import InvalidCaseError, read_case
from accelbench_runner.supervisor.children import Interruption, UnkillableError, adopt_orphans, terminate_with_parent
from accelbench_runner.supervisor.environments import JUDGE_MODULE, LAUNCH_MODULE, ExaminedCase, Examiner
from accelbench_runner.supervisor.experiment import ProbeError, Supervisor
from accelbench_runner.supervisor.judge_process import Judge, JudgeError, JudgeKilledError, NothingToJudge
from accelbench_runner.supervisor.launcher import Launcher, compiler_memory_limit
from accelbench_runner.supervisor.log_writer import LogWriter, TerminationMessage, forward_output

EXIT_DELIVERED = 0
EXIT_INVALID_CASE = 2
EXIT_INTERNAL = 3
EXIT_SIGNAL = 128
STANDARD_OUTPUT = 1
STANDARD_ERROR = 2

LAUNCH = (sys.executable, "-m", LAUNCH_MODULE)
JUDGE = (sys.executable, "-m", JUDGE_MODULE)


def main(
    arguments: Sequence[str] | None = None,
    *,
    launch_command: Sequence[str] = LAUNCH,
    judge_command: Sequence[str] = JUDGE,
    take_survey: preflight.TakeSurvey = preflight.take_survey,
    probe_seconds: float = PROBE_SECONDS,
) -> int:
    """Run the case that the command line names, and return the exit status.

    Tests pass other commands for the child processes, another survey, and a shorter limit for probes.
    """
    parser = argparse.ArgumentParser(prog="python -m accelbench_runner", description="Measure one case.")
    parser.add_argument("case", type=Path, help="the case document, JSON")
    parser.add_argument("--check", action="store_true", help="time nothing; only check whether the variants are right")
    parser.add_argument("--processors", type=int, help="use only so many, idle ones first; default: all")
    options = parser.parse_args(arguments)
    interruption = Interruption()
    interruption.listen()
    if parent := os.environ.get("ACCELBENCH_ENDS_WITH"):
        terminate_with_parent(int(parent))
    log = LogWriter(STANDARD_OUTPUT)
    termination = TerminationMessage(_termination_log(), complain=log.notice)
    try:
        with forward_output(log, "script"):
            case = read_case(options.case)
    except InvalidCaseError as error:
        log.notice(f"error: {error}")
        termination.write(Headline(case="", attempt=0, state="failed", message=str(error)))
        return EXIT_INVALID_CASE
    purpose = _purpose(case, check_only=options.check)
    try:
        with _work_directory() as directory:
            threads = len(processors.set_affinity(options.processors))
            environment = _prepare(directory, threads)
            with forward_output(log, "script"):  # the workload's code, which runs here, may print
                host = _fingerprint(case, threads)
                compares = purpose == "measure" and _compares_times(case)
                examiner = Examiner(
                    case, catalogue.find(case.workload), directory / "environments", environment, interruption, log
                )
            examined = examiner.examine_all()
            case = examined.case
            unseen_seed = secrets.randbits(63)
            trace_directory = os.environ.get(TRACE_DIRECTORY)
            launcher = Launcher(
                case=case,
                command=launch_command,
                environment=environment,
                threads=threads,
                interruption=interruption,
                unseen_seed=unseen_seed,
                probe_seconds=probe_seconds,
                purpose=purpose,
                memory_bytes=compiler_memory_limit() if purpose == "compile" else None,
                pythons=examined.pythons,
            )
            judge = Judge(
                **_judge_arguments(examined, examiner.workload, judge_command, environment),
                directory=directory / "judge",
                interruption=interruption,
                log=log,
                unseen_seed=unseen_seed,
                timed=purpose == "measure",
            )
            supervisor = Supervisor(
                case=case,
                launcher=launcher,
                judge=NothingToJudge() if purpose == "compile" else judge,
                log=log,
                termination=termination,
                interruption=interruption,
                directory=directory,
                host=host,
                compares=compares,
                unusable=examined.failures,
                traces=Path(trace_directory) if trace_directory else None,
            )
            with _end_after(case.measurement.runner_limit_seconds):
                if supervisor.compares:
                    _warn_of_disturbances(supervisor, take_survey)
                return _run(supervisor, log)
    # No work directory can be created, the log is closed, or a process that examines an environment cannot be killed.
    except (OSError, UnkillableError) as error:
        message = f"internal error: {error}"
        termination.write(Headline(case=case.name, attempt=case.origin.attempt, state="failed", message=message))
        sys.stderr.write(f"accelbench: {message}\n")
        return EXIT_INTERNAL


def _purpose(case: Case, *, check_only: bool) -> Purpose:
    """Return the purpose of the launches: `compile` for a case with a target, otherwise `check` or `measure`."""
    if case.accelerator.target is not None:
        return "compile"
    return "check" if check_only else "measure"


def _judge_arguments(
    examined: ExaminedCase, workload: Workload, command: Sequence[str], environment: Mapping[str, str]
) -> dict[str, Any]:
    """Return the arguments of `Judge` that determine how its process is started.

    The process is started by `command`, with the environment variables `environment`. But if the workload has no
    reference, the judge computes one with the baseline's program. Then its process is started in the baseline's own
    Python environment, if it has one. If that environment cannot be used, the arguments have the reason why there is no
    reference.
    """
    baseline = examined.case.baseline
    python = None if workload.has_reference() else examined.pythons.get(baseline)
    if python is None:
        return {"command": command, "environment": environment}
    if failure := examined.failures.get(baseline):  # the baseline's program cannot run, so there is no reference
        return {
            "command": command,
            "environment": environment,
            "without_reference": {"reference_problem": failure.message},
        }
    return {"command": python.command(JUDGE_MODULE), "environment": python.variables}


def _run(supervisor: Supervisor, log: LogWriter) -> int:
    """Run the case and return the exit status; after an error, deliver what was measured as a checkpoint."""
    try:
        result = supervisor.run()
    except JudgeKilledError as error:  # not called an internal error: the case was probably too large for the memory
        supervisor.give_up(str(error))
        return EXIT_INTERNAL
    except (JudgeError, ProbeError, UnkillableError) as error:
        supervisor.give_up(f"internal error: {error}")
        return EXIT_INTERNAL
    except Exception as error:  # noqa: BLE001 - after any error, what was measured is delivered
        log.notice(traceback.format_exc())
        supervisor.give_up(f"internal error: {type(error).__name__}: {error}")
        return EXIT_INTERNAL
    signal = supervisor.interruption.signal
    if signal and result.stopped == StopReason.INTERRUPTED:
        return EXIT_SIGNAL + signal
    return EXIT_DELIVERED


def _prepare(directory: Path, threads: int) -> dict[str, str]:
    """Prepare this process and the work directory for child processes; return the children's environment variables."""
    _, hard_limit = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard_limit))  # a launch that crashes must not fill the disk
    adopt_orphans()
    (directory / "judge").mkdir()
    machine_directory = os.environ.get(MACHINE_DIRECTORY, str(directory / "machine"))
    return {**os.environ, **processors.thread_environment(threads), MACHINE_DIRECTORY: machine_directory}


def _compares_times(case: Case) -> bool:
    """Return True if the workload's protocol times the variants, to compare them; only `observe` does not."""
    workload = catalogue.find(case.workload)
    parameters = catalogue.parse_parameters(workload, case.parameters)
    return workload.measure(parameters).protocol != "observe"


def _fingerprint(case: Case, threads: int) -> dict[str, str]:
    """Return the fingerprint's entries that are known before the first launch: the host, the source and the case."""
    workload = catalogue.find(case.workload)
    parameters = catalogue.parse_parameters(workload, case.parameters).model_dump(mode="json")
    return {
        **fingerprint.of_host(threads=threads),
        **fingerprint.of_source(type(workload)),
        **fingerprint.of_case(case, parameters),
    }


def _warn_of_disturbances(supervisor: Supervisor, take_survey: preflight.TakeSurvey) -> None:
    """Survey the machine for load that would disturb measurements, and log a warning for each finding."""
    case, log = supervisor.case, supervisor.log
    try:
        survey = take_survey(supervisor.host)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        log.notice(f"the machine cannot be surveyed for other load: {error}")
        return
    if lines := preflight.warnings(survey, supervisor.host, accepts_noise=case.measurement.accept_noise):
        for line in lines:
            log.notice(f"warning: {line}")
        log.event(MachineSeen(warnings=lines))


def _termination_log() -> Path | None:
    """Return the file whose content Kubernetes shows as the container's termination message; None outside a pod."""
    path = os.environ.get("ACCELBENCH_TERMINATION_LOG")
    if path:
        return Path(path)
    default = Path("/dev/termination-log")  # Kubernetes mounts it into every container
    return default if default.exists() else None


@contextmanager
def _end_after(seconds: float) -> Iterator[None]:
    """End this process with status 1 if the `with` block takes longer than `seconds`, and print all threads' stacks.

    Without this, a supervisor that hangs would hold the device until the pod's deadline.
    """
    # A timer of Python's needs the global interpreter lock, which the hanging thread may hold.
    faulthandler.dump_traceback_later(seconds, exit=True, file=STANDARD_ERROR)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


@contextmanager
def _work_directory() -> Iterator[Path]:
    """Create a temporary directory for the case, and remove it at the end of the `with` block."""
    directory = Path(tempfile.mkdtemp(prefix="ab-", dir=os.environ.get("ACCELBENCH_WORK_DIRECTORY")))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
