"""One case in a child process: the runner, started and read exactly as in a pod.

The runner's standard output and error are the container's log; events on it drive the progress, documents on it are the
result. A log that is altered or cut short is reported as that, never believed.
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
    """What is left when a runner has ended."""

    code: int
    """Its exit status; negative: the signal that ended it."""
    result: Result | None
    """Its result; where it gave none, its last checkpoint."""
    launches: tuple[str, ...]
    """The records of its launches as JSON, block series in full."""
    problems: tuple[str, ...]
    """What was wrong with its log."""
    tail: tuple[str, ...]
    """The last lines of the log that are not ours."""


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
    """Run `case` to its end and keep its output in `log`; `on_tick` is called when nothing happens for a while.

    The runner has `environment` beside this process's, and uses so many `processors`. With `check` it times nothing.
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
            "PYTHONSAFEPATH": "1",  # a file of the user's called jax.py is not to be taken for the framework
        }
        with log.open("wb", buffering=0) as kept:
            process = subprocess.Popen(
                [sys.executable, "-m", "accelbench_runner", str(document), *options],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=complete,
                start_new_session=True,  # the terminal's Ctrl-C reaches us alone; we pass it on
            )
            signals.child_started(process.pid)
            assert process.stdout is not None  # noqa: S101 - asked for above
            with process.stdout as output:
                for line in _lines(output, on_tick, ended=lambda: process.poll() is not None):
                    kept.write(line)
                    event = parse_event(line.decode(errors="replace").rstrip("\n"))
                    if event is not None:
                        on_event(event)
            code = process.wait()
            signals.child_ended()
    return _ended(code, log)


def _lines(output: IO[bytes], on_tick: Callable[[], None], ended: Callable[[], bool]) -> Iterator[bytes]:
    """Whole lines as they come, the last one even if its end is missing."""
    held = b""
    while True:
        if not select.select([output], [], [], TICK_SECONDS)[0]:
            if ended():  # a process that it left behind holds the pipe open; nothing more of ours will come
                break
            on_tick()
            continue
        chunk = os.read(output.fileno(), 65536)
        if not chunk:
            break
        *whole, held = (held + chunk).split(b"\n")
        for line in whole:
            yield line + b"\n"
    if held:
        yield held


def _ended(code: int, log: Path) -> RunnerExit:
    with log.open(encoding="utf-8", errors="replace", newline="\n") as lines:
        delivered = read_log(lines)
    with log.open(encoding="utf-8", errors="replace", newline="\n") as lines:
        # What a library wrote past the runner is a stranger's as well.
        others = [printable(line.rstrip()) for line in lines if not line.startswith("accelbench/")]
    return RunnerExit(
        code=code,
        result=delivered.latest("result") or delivered.latest("checkpoint"),
        launches=tuple(found.text for found in delivered.documents if found.kind == "launch"),
        problems=delivered.problems,
        tail=tuple(others[-TAIL_LINES:]),
    )
