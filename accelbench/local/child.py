"""Run one case in a child process: start the runner and read its log exactly as in a pod.

The runner's standard output and error are the log. Its events drive the progress display, its documents are the result.
A log that was altered or cut short is reported as a problem and yields no result.
"""

import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import IO

from accelbench.api.case import Case
from accelbench.api.result import Result
from accelbench.delivery.log import Event, parse_event, read_log
from accelbench.document import escape_unprintable
from accelbench.local.interrupt import Signals

TICK_SECONDS = 1.0
"""Time without output after which the progress display is drawn again."""
TAIL_LINES = 12
"""Number of the log's last messages that are shown if a runner fails."""
CHUNK_BYTES = 65536
"""Maximum number of bytes to read at a time: what a Linux pipe holds."""


@dataclass(frozen=True)
class RunnerExit:
    """Hold the exit status of a runner and the content of its log."""

    code: int
    """Exit status; if a signal ended the runner, the signal's number as a negative number."""
    result: Result | None
    """The result. If there is none, the last checkpoint."""
    launches: tuple[str, ...]
    """Launch records as JSON, with all blocks."""
    problems: tuple[str, ...]
    """Faults of the log, such as a document that was altered."""
    tail: tuple[str, ...]
    """The last lines of the log that are not accelbench's."""


def run_case(
    case: Case,
    log: Path,
    *,
    signals: Signals,
    on_event: Callable[[Event], None],
    on_tick: Callable[[], None],
    environment: Mapping[str, str] = MappingProxyType({}),
    processors: int | None = None,
    check: bool = False,
) -> RunnerExit:
    """Run a case in a child process until it ends, and write its output to `log`; return how it ended.

    Args:
        case: The case to run.
        log: The file for the runner's output.
        signals: The handler that forwards Ctrl-C and SIGTERM to the runner.
        on_event: Called with each event of the log.
        on_tick: Called after each second without output.
        environment: Environment variables for the runner, in addition to this process's variables.
        processors: Number of CPUs for the runner; None for all.
        check: True to run only the checks, and time nothing.
    """
    options = []
    if check:
        options.append("--check")
    if processors:
        options += ["--processors", str(processors)]
    with tempfile.TemporaryDirectory(prefix="accelbench-", ignore_cleanup_errors=True) as temporary:
        work_directory = Path(temporary, "work")
        work_directory.mkdir()
        case_file = Path(temporary, "case.json")
        case_file.write_text(case.to_json(), encoding="utf-8")
        runner_environment = {
            **os.environ,
            **environment,
            "ACCELBENCH_WORK_DIRECTORY": str(work_directory),
            "ACCELBENCH_TERMINATION_LOG": str(Path(temporary, "termination-log")),
            "ACCELBENCH_ENDS_WITH": str(os.getpid()),  # the runner ends when this process has ended
            "PYTHONSAFEPATH": "1",  # a jax.py in the working directory must not hide the framework
        }
        with log.open("wb", buffering=0) as log_file:
            process = subprocess.Popen(
                [sys.executable, "-m", "accelbench_runner", str(case_file), *options],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=runner_environment,
                start_new_session=True,  # the terminal sends Ctrl-C to this process only, which forwards it
            )
            signals.child_started(process.pid)  # in a new session, this is also the number of its process group
            assert process.stdout is not None  # noqa: S101 - stdout is a pipe
            with process.stdout as output:
                for line in _read_lines(output, on_tick, has_ended=lambda: process.poll() is not None):
                    log_file.write(line)
                    event = parse_event(line.decode(errors="replace").rstrip("\n"))
                    if event is not None:
                        on_event(event)
            code = process.wait()
            signals.child_ended()
    return _read_exit(code, log)


def _read_lines(output: IO[bytes], on_tick: Callable[[], None], has_ended: Callable[[], bool]) -> Iterator[bytes]:
    """Yield the lines of `output` until the pipe closes or the process ends.

    `on_tick` is called after each second without output.
    """
    incomplete_line = b""
    while True:
        readable, _, _ = select.select([output], [], [], TICK_SECONDS)
        if not readable:
            if has_ended():  # a grandchild can keep the pipe open after the runner has ended
                break
            on_tick()
            continue
        chunk = os.read(output.fileno(), CHUNK_BYTES)
        if not chunk:
            break
        *lines, incomplete_line = (incomplete_line + chunk).split(b"\n")
        for line in lines:
            yield line + b"\n"
    if incomplete_line:
        yield incomplete_line


def _read_exit(code: int, log: Path) -> RunnerExit:
    """Return the exit of a runner, from its exit status `code` and from the documents and messages in its log."""
    with log.open(encoding="utf-8", errors="replace", newline="\n") as lines:
        log_content = read_log(lines)
    # Lines that begin with `accelbench/` are events and documents, not messages.
    with log.open(encoding="utf-8", errors="replace", newline="\n") as lines:
        messages = [escape_unprintable(line.rstrip()) for line in lines if not line.startswith("accelbench/")]
    return RunnerExit(
        code=code,
        result=log_content.latest("result") or log_content.latest("checkpoint"),
        launches=tuple(document.text for document in log_content.documents if document.kind == "launch"),
        problems=log_content.problems,
        tail=tuple(messages[-TAIL_LINES:]),
    )
