"""The processes of one cluster, remembered in a directory, so that they can be ended by whoever finds it.

Each is the leader of its own process group. A record holds its id and its start time: an id alone may since belong to a
stranger.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from cluster.errors import ComponentError, DeadlineError
from cluster.wait import wait_until

__all__ = ["Processes", "end_processes", "is_running", "start_time"]

LOG_TAIL_LINES = 25


class Processes:
    """Starts the processes of one cluster, and says when one of them has ended."""

    def __init__(self, directory: Path, *, die_with_parent: bool) -> None:
        self._records = directory / "processes"
        self._logs = directory / "logs"
        self._die_with_parent = die_with_parent
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._records.mkdir(parents=True, exist_ok=True)
        self._logs.mkdir(exist_ok=True)

    def start(self, name: str, command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> int:
        """Start a process whose output goes to its own log; return its id."""
        # The kernel ends it when the test process dies, however that dies; nothing in Python would run then.
        guard = ("setpriv", "--pdeathsig", "KILL") if self._die_with_parent and shutil.which("setpriv") else ()
        with (self._logs / f"{name}.log").open("wb") as log:
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
        return process.pid

    def wait_for(self, name: str, ready: Callable[[], object], *, what: str, seconds: float = 60) -> None:
        """Return once what the process was started for is there.

        Raises `ComponentError` with the log of any process that has ended, or of this one when time is up.
        """

        def all_run_and_ready() -> object:
            self._check()
            return ready()

        try:
            wait_until(all_run_and_ready, what=what, seconds=seconds)
        except DeadlineError as error:
            raise ComponentError(f"{error}; the log of {name} ends:\n{self._tail(name)}") from error

    def reap(self) -> None:
        """Collect those that have been ended, so that none stays as a zombie."""
        for process in self._running.values():
            process.wait(timeout=30)
        self._running.clear()

    def _check(self) -> None:
        for name, process in self._running.items():
            if process.poll() is not None:
                raise ComponentError(f"{name} ended with status {process.returncode}; its log ends:\n{self._tail(name)}")

    def _tail(self, name: str) -> str:
        lines = (self._logs / f"{name}.log").read_text(errors="replace").splitlines()
        return "\n".join(lines[-LOG_TAIL_LINES:])


def end_processes(directory: Path) -> None:
    """End every process recorded in the directory, with all of its group; do nothing where none is left.

    They are killed outright: what they hold is thrown away with the cluster, and a clean end takes a minute.
    """
    for path in sorted((directory / "processes").glob("*.json")):
        record = json.loads(path.read_text())
        if is_running(record["id"], record["started"]):
            os.killpg(record["id"], signal.SIGKILL)
            wait_until(
                lambda record=record: not is_running(record["id"], record["started"]),  # type: ignore[misc]
                what=f"the end of {path.stem} (process {record['id']})",
            )
        path.unlink(missing_ok=True)


def is_running(process_id: int, started: int | None) -> bool:
    """Say whether the process is the one that started then, and more than a zombie."""
    return started is not None and start_time(process_id) == started


def start_time(process_id: int) -> int | None:
    """Return when a process started, in clock ticks since boot; None when it has ended.

    Source: proc_pid_stat(5); the command's name is in parentheses and may itself hold any character.
    """
    try:
        fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in {"Z", "X"} else int(fields[19])
