"""`python -m accelbench_runner CASE`: measures one case and delivers one result.

Exit status: 0 a result was delivered, failed variants included; 2 the case document cannot be run; 3 an error of
accelbench's own; 130 or 143 after SIGINT or SIGTERM, with a partial result. The log goes to standard output, the
headline to the file that ACCELBENCH_TERMINATION_LOG names, and nothing is written outside the work directory
(ACCELBENCH_WORK_DIRECTORY, or a temporary one).
"""

import argparse
import os
import resource
import shutil
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from accelbench import catalogue, fingerprint
from accelbench.api.case import Case
from accelbench.delivery import Headline
from accelbench_runner import processors
from accelbench_runner.children import Interruption, UnkillableError, adopt_orphans
from accelbench_runner.deliver import LogWriter, TerminationMessage
from accelbench_runner.judging import Judge, JudgeError
from accelbench_runner.launches import Launcher
from accelbench_runner.supervisor import Supervisor

EXIT_DELIVERED = 0
EXIT_INVALID_CASE = 2
EXIT_INTERNAL = 3
EXIT_SIGNAL = 128
STANDARD_OUTPUT = 1

LAUNCH = (sys.executable, "-m", "accelbench_runner.launch")
JUDGE = (sys.executable, "-m", "accelbench_runner.judge")


class InvalidCaseError(ValueError):
    """The case document cannot be run."""


def main(
    arguments: Sequence[str] | None = None,
    *,
    launch_command: Sequence[str] = LAUNCH,
    judge_command: Sequence[str] = JUDGE,
) -> int:
    """Run one case; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m accelbench_runner", description="Measure one case.")
    parser.add_argument("case", type=Path, help="the case document, JSON")
    path: Path = parser.parse_args(arguments).case
    interruption = Interruption()
    interruption.listen()
    log = LogWriter(STANDARD_OUTPUT)
    termination = TerminationMessage(_termination_log(), complain=log.notice)
    try:
        case = read_case(path)
    except InvalidCaseError as error:
        log.notice(f"error: {error}")
        termination.write(Headline(case="", attempt=0, state="failed", message=str(error)))
        return EXIT_INVALID_CASE
    with _work_directory() as directory:
        supervisor = _supervisor(case, directory, log, termination, interruption, launch_command, judge_command)
        try:
            return _run(supervisor, log)
        except BrokenPipeError:
            supervisor.headline("failed", message="nobody reads the log any more")
            return EXIT_INTERNAL


def _run(supervisor: Supervisor, log: LogWriter) -> int:
    try:
        supervisor.run()
    except BrokenPipeError:
        raise
    except (JudgeError, UnkillableError) as error:
        supervisor.give_up(f"internal error: {error}")
        return EXIT_INTERNAL
    except Exception as error:  # noqa: BLE001 - whatever it is, what was measured is delivered
        log.notice(traceback.format_exc())
        supervisor.give_up(f"internal error: {type(error).__name__}: {error}")
        return EXIT_INTERNAL
    interrupted = supervisor.interruption.signal
    return EXIT_DELIVERED if interrupted is None else EXIT_SIGNAL + interrupted


def read_case(path: Path) -> Case:
    """The case document; raises InvalidCaseError."""
    try:
        case = Case.model_validate_json(path.read_bytes())
    except OSError as error:
        raise InvalidCaseError(f"{path}: the case document cannot be read: {error.strerror}") from error
    except ValidationError as error:
        details = "; ".join(
            f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}" for detail in error.errors(include_url=False)
        )
        raise InvalidCaseError(f"{path}: this is no case document: {details}") from error
    names = [variant.name for variant in case.variants]
    if len(set(names)) != len(names):
        raise InvalidCaseError(f"{path}: two variants have the same name: {', '.join(sorted(names))}")
    if case.baseline not in names:
        raise InvalidCaseError(f'{path}: the baseline "{case.baseline}" is none of the variants: {", ".join(names)}')
    return case


def _supervisor(
    case: Case,
    directory: Path,
    log: LogWriter,
    termination: TerminationMessage,
    interruption: Interruption,
    launch_command: Sequence[str],
    judge_command: Sequence[str],
) -> Supervisor:
    resource.setrlimit(
        resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1])
    )  # a crash must not fill a disk
    adopt_orphans()
    threads = len(processors.settle())
    environment = {**os.environ, **processors.thread_environment(threads)}
    judge_directory = directory / "judge"
    judge_directory.mkdir()
    return Supervisor(
        case=case,
        launcher=Launcher(
            case=case, command=launch_command, environment=environment, threads=threads, interruption=interruption
        ),
        judge=Judge(
            command=judge_command,
            environment=environment,
            directory=judge_directory,
            interruption=interruption,
            log=log,
        ),
        log=log,
        termination=termination,
        interruption=interruption,
        directory=directory,
        host={**fingerprint.of_host(threads=threads), **_source(case)},
    )


def _source(case: Case) -> dict[str, str]:
    try:
        return fingerprint.of_source(type(catalogue.find(case.workload)))
    except catalogue.UnknownWorkloadError:
        return {}


def _termination_log() -> Path | None:
    named = os.environ.get("ACCELBENCH_TERMINATION_LOG")
    if named:
        return Path(named)
    default = Path("/dev/termination-log")
    return default if default.exists() else None


@contextmanager
def _work_directory() -> Iterator[Path]:
    """A fresh directory inside the one that was given, or a temporary one; removed at the end."""
    given = os.environ.get("ACCELBENCH_WORK_DIRECTORY")
    directory = Path(tempfile.mkdtemp(prefix="ab-", dir=given))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
