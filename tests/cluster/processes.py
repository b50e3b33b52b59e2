"""The processes of one cluster, remembered in a directory, so that they can be ended by whoever finds it.

Each is the leader of its own process group. A record holds its id and its start time: an id alone may since belong to a
stranger.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from cluster.errors import ComponentError, DeadlineError
from cluster.wait import HANG_SECONDS, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

__all__ = ["Processes", "end_processes", "is_running", "start_time"]

LOG_TAIL_LINES = 25
# Places among the fields that `_status` returns.
GROUP, START_TIME = 2, 19


class Processes:
    """Starts the processes of one cluster, and says when one of them has ended."""

    def __init__(self, directory: Path, *, die_with_parent: bool) -> None:
        self._records = directory / "processes"
        self._logs = directory / "logs"
        self._die_with_parent = die_with_parent
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._commands: dict[str, tuple[Sequence[str | Path], Mapping[str, str] | None]] = {}
        self._records.mkdir(parents=True, exist_ok=True)
        self._logs.mkdir(exist_ok=True)

    def start(self, name: str, command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> int:
        """Start a process whose output goes to its own log; return its id."""
        # The kernel ends it when the test process dies, however that dies; nothing in Python would run then.
        guard = ("setpriv", "--pdeathsig", "KILL") if self._die_with_parent and shutil.which("setpriv") else ()
        with (self._logs / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                [*guard, *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, **(environment or {})},
            )
        record = {"id": process.pid, "started": start_time(process.pid)}
        (self._records / f"{name}.json").write_text(json.dumps(record))
        self._running[name] = process
        self._commands[name] = (command, environment)
        return process.pid

    def restart(self, name: str) -> None:
        """Kill a process, and start another as it was."""
        process = self._running.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(timeout=HANG_SECONDS)
        self.start(name, *self._commands[name])

    def option(self, name: str, option: str) -> str:
        """What a process was given as `--option=`."""
        command, _ = self._commands[name]
        return next(str(each).partition("=")[2] for each in command if str(each).startswith(f"--{option}="))

    def wait_for(self, name: str, ready: Callable[[], object], *, what: str) -> None:
        """Return once what the process was started for is there.

        Raises `ComponentError` with the log of any process that has ended, or of this one when time is up.
        """

        def all_run_and_ready() -> object:
            self._check()
            return ready()

        try:
            wait_until(all_run_and_ready, what=what)
        except DeadlineError as error:
            raise ComponentError(f"{error}; the log of {name} ends:\n{self._tail(name)}") from error

    def reap(self) -> None:
        """Collect those that have been ended, so that none stays as a zombie."""
        for process in self._running.values():
            process.wait(timeout=HANG_SECONDS)
        self._running.clear()

    def _check(self) -> None:
        for name, process in self._running.items():
            if process.poll() is not None:
                raise ComponentError(
                    f"{name} ended with status {process.returncode}; its log ends:\n{self._tail(name)}"
                )

    def _tail(self, name: str) -> str:
        lines = (self._logs / f"{name}.log").read_text(errors="replace").splitlines()
        return "\n".join(lines[-LOG_TAIL_LINES:])


def end_processes(directory: Path) -> None:
    """End every process recorded in the directory, with all of its group; do nothing where none is left.

    They are killed outright: what they hold is thrown away with the cluster, and a clean end takes a minute.
    """
    for path in sorted((directory / "processes").glob("*.json")):
        record = json.loads(path.read_text())
        # No process is given the id of a group that still has members: only a stranger's start time forbids.
        if start_time(record["id"]) in {record["started"], None}:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(record["id"], signal.SIGKILL)
            wait_until(functools.partial(_group_has_ended, record["id"]), what=f"the end of {path.stem}")
        path.unlink(missing_ok=True)


def is_running(process_id: int, started: int | None) -> bool:
    """Say whether the process is the one that started then, and more than a zombie."""
    return started is not None and start_time(process_id) == started


def start_time(process_id: int) -> int | None:
    """Return when a process started, in clock ticks since boot; None when it has ended."""
    fields = _status(Path(f"/proc/{process_id}/stat"))
    return int(fields[START_TIME]) if fields else None


def _group_has_ended(group: int) -> bool:
    return not any(_status(path)[GROUP : GROUP + 1] == [str(group)] for path in Path("/proc").glob("[0-9]*/stat"))


def _status(path: Path) -> list[str]:
    """Return the fields of a process's status from the third on; none when it has ended, be it as a zombie.

    Source: proc_pid_stat(5); the second is the command's name in parentheses, which may itself hold any character.
    """
    try:
        fields = path.read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
    return [] if fields[0] in {"Z", "X"} else fields
