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
from accelbench.document import printable
from accelbench.local.interrupt import Signals

TICK_SECONDS = 1.0
TAIL_LINES = 12


@dataclass(frozen=True)
class RunnerExit:
    """Hold the exit status of a runner and the content of its log."""

    code: int
    """Exit status; negative: the signal that ended it."""
    result: Result | None
    """The result, or else the last checkpoint."""
    launches: tuple[str, ...]
    """Launch records as JSON, with all blocks."""
    problems: tuple[str, ...]
    """Faults of the log."""
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
    """Run a case to its end, and keep its output in a file.

    Args:
        case: The case to run.
        log: The file for the runner's output.
        signals: The handler that forwards Ctrl-C and SIGTERM to the runner.
        on_event: Called with each event of the log.
        on_tick: Called after each second without output.
        environment: Variables that are added to this process's.
        processors: How many processors the runner uses; None: all.
        check: Run the checks only, and time nothing.
    """
    options = [*(["--check"] if check else []), *(["--processors", str(processors)] if processors else [])]
    with tempfile.TemporaryDirectory(prefix="accelbench-", ignore_cleanup_errors=True) as temporary:
        work = Path(temporary, "work")
        work.mkdir()
        document = Path(temporary, "case.json")
        document.write_text(case.to_json(), encoding="utf-8")
        complete = {
            **os.environ,
            **environment,
            "ACCELBENCH_WORK_DIRECTORY": str(work),
            "ACCELBENCH_TERMINATION_LOG": str(Path(temporary, "termination-log")),
            "ACCELBENCH_ENDS_WITH": str(os.getpid()),
            "PYTHONSAFEPATH": "1",  # a jax.py in the working directory must not hide the framework
        }
        with log.open("wb", buffering=0) as kept:
            process = subprocess.Popen(
                [sys.executable, "-m", "accelbench_runner", str(document), *options],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=complete,
                start_new_session=True,  # the terminal sends Ctrl-C to this process only, which forwards it
            )
            signals.child_started(process.pid)
            assert process.stdout is not None  # noqa: S101 - stdout is a pipe
            with process.stdout as output:
                for line in _lines(output, on_tick, ended=lambda: process.poll() is not None):
                    kept.write(line)
                    event = parse_event(line.decode(errors="replace").rstrip("\n"))
                    if event is not None:
                        on_event(event)
            code = process.wait()
            signals.child_ended()
    return _read_exit(code, log)


def _lines(output: IO[bytes], on_tick: Callable[[], None], ended: Callable[[], bool]) -> Iterator[bytes]:
    """Yield lines as they arrive, the last one even if it is incomplete."""
    rest = b""
    while True:
        if not select.select([output], [], [], TICK_SECONDS)[0]:
            if ended():  # a grandchild can keep the pipe open after the runner has ended
                break
            on_tick()
            continue
        chunk = os.read(output.fileno(), 65536)
        if not chunk:
            break
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line + b"\n"
    if rest:
        yield rest


def _read_exit(code: int, log: Path) -> RunnerExit:
    with log.open(encoding="utf-8", errors="replace", newline="\n") as lines:
        delivered = read_log(lines)
    with log.open(encoding="utf-8", errors="replace", newline="\n") as lines:
        others = [printable(line.rstrip()) for line in lines if not line.startswith("accelbench/")]
    return RunnerExit(
        code=code,
        result=delivered.latest("result") or delivered.latest("checkpoint"),
        launches=tuple(document.text for document in delivered.documents if document.kind == "launch"),
        problems=delivered.problems,
        tail=tuple(others[-TAIL_LINES:]),
    )
