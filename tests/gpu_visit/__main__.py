"""Visit a GPU: attempt items of the list until the time is over, and append each attempt to a file at once.

`make gpu-visit MINUTES=14` calls this through `gpu_visit.machine`, in the environment that it makes from wheels.
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from accelbench import platforms
from accelbench.document import timestamp
from accelbench.local.device import platform_of
from accelbench.local.errors import LocalError
from accelbench_runner.clock import MonotonicClock
from accelbench_runner.devices import cpu
from accelbench_runner.protocol import MACHINE_DIRECTORY
from gpu_visit import attempts, items, publish
from gpu_visit.attempts import Setting, VisitAttempt
from gpu_visit.items import Check, Item, Measurement, ProgramRun
from gpu_visit.perform import Performed, end_running, perform_check, perform_measurement, perform_program
from gpu_visit.plan import Attempt, Step, Task, is_done, next_step

END_SECONDS = 15.0
"""Seconds before the deadline in which nothing is attempted: what runs has to end and be written."""
MINIMUM_FREE_BYTES = 3 * 1024**3
"""Compilers' caches of one item, with room to spare."""
FAILURES_IN_A_ROW = 3
"""So many attempts that fail one after the other are a fault of the machine, and would spoil the others."""


class CannotVisitError(Exception):
    """Report why a visit cannot begin or continue; the message says what to do."""


class Visit:
    """Attempt items until nothing fits into the time left."""

    def __init__(self, listed: Sequence[Item], setting: Setting, file: Path, work: Path, deadline: float) -> None:
        """Create a visit.

        Args:
            listed: The items, in the order of the list.
            setting: The device and the frameworks.
            file: The file that attempts are appended to.
            work: A directory for temporary files.
            deadline: When the visit has to be over, as `time.time()` counts.
        """
        self.name = timestamp(datetime.now(UTC))
        self._items = {(item.task.name, item.task.rounds_min): item for item in listed}
        self._setting, self._file, self._work, self._deadline = setting, file, work, deadline
        known = [*publish.attempts_so_far(), *attempts.read(file)]
        # An attempt that was imported already may stand in the file, too.
        unique = {attempt.identity: attempt for attempt in known}.values()
        self.attempts: list[Attempt] = [a.planned for a in unique if a.setting.continues(setting)]

    @property
    def tasks(self) -> list[Task]:
        """Return the tasks of the list."""
        return [item.task for item in self._items.values()]

    def run(self) -> None:
        """Attempt items until nothing fits any more; raises CannotVisitError if the machine is at fault."""
        failures = 0
        while step := next_step(self.tasks, self.attempts, visit=self.name, seconds_left=self._seconds_left()):
            _require_free_disk(self._work)
            names = ", ".join(task.name for task in step.tasks)
            say(f"{self._seconds_left():.0f} s left: {names}, {step.rounds} rounds, at most {step.seconds:.0f} s")
            performed = self._perform(step)
            # One success in a group shows that the machine can do it.
            all_failed = all(each.outcome == "failed" for each in performed)
            failures = failures + 1 if all_failed else 0
            if any(each.outcome == "interrupted" for each in performed):
                raise KeyboardInterrupt
            if failures == FAILURES_IN_A_ROW:
                raise CannotVisitError(f"{failures} attempts in a row failed; the last: {performed[-1].message}")

    def _seconds_left(self) -> float:
        return self._deadline - time.time() - END_SECONDS

    def _perform(self, step: Step) -> list[Performed]:
        """Attempt the tasks of a step, those of a group at the same time, and append each when it has ended."""
        began = timestamp(datetime.now(UTC))
        chosen = [self._items[task.name, task.rounds_min] for task in step.tasks]
        if len(chosen) == 1:  # in the main thread, which alone handles signals
            return [self._store(step.tasks[0], began, self._perform_item(chosen[0], step))]
        with ThreadPoolExecutor(len(chosen)) as pool:
            futures = {pool.submit(self._perform_item, item, step): item.task for item in chosen}
            try:
                return [self._store(futures[future], began, future.result()) for future in as_completed(futures)]
            except KeyboardInterrupt:
                end_running()
                raise

    def _perform_item(self, item: Item, step: Step) -> Performed:
        """Attempt one item."""
        match item:
            case Measurement():
                directory = self._work / "results" / "".join(c if c.isalnum() else "-" for c in item.task.name)
                directory.mkdir(parents=True, exist_ok=True)
                performed = perform_measurement(item, step, directory)
                if performed.outcome == "measured":  # else its finished cases are used by the next attempt
                    shutil.rmtree(directory)
                return performed
            case ProgramRun():
                return perform_program(item, step)
            case Check():
                return perform_check(item, step)

    def _store(self, task: Task, began: str, performed: Performed) -> Performed:
        """Append an attempt to the file, and print how it ended."""
        attempt = Attempt(
            name=task.name,
            question=task.question,
            visit=self.name,
            outcome=performed.outcome,
            rounds_wanted=task.rounds_min,
            rounds=performed.rounds,
            seconds=performed.seconds,
        )
        line = VisitAttempt.of(
            attempt, setting=self._setting, began=began, message=performed.message, files=performed.files
        )
        attempts.append(self._file, line)
        self.attempts.append(attempt)
        say(f"{task.name}: {performed.outcome} in {performed.seconds:.1f} s {performed.message}".rstrip())
        return performed


def read_setting(listed: Sequence[Item]) -> Setting:
    """Return the device that is measured on, and the frameworks' versions; raises CannotVisitError without either."""
    run = next((item.run for item in listed if isinstance(item, Measurement)), None)
    if run is None:
        raise CannotVisitError("the list has no manifest")
    try:
        platform = platforms.find(platform_of(run))
    except LocalError as error:
        raise CannotVisitError(error.explanation()) from error
    monitor = platform.load_monitor()(MonotonicClock(), cpu)
    monitor.prepare()
    settings = monitor.identify(None)
    device = settings.get("name") or monitor.model()
    if not device:
        raise CannotVisitError("the driver shows no device: see nvidia-smi")
    return Setting(
        device=device,
        jax=_version("jax"),
        torch=_version("torch"),
        driver=settings.get("driver", ""),
        python=".".join(map(str, sys.version_info[:3])),
    )


def _version(package: str) -> str:
    """Return an installed package's version; raises CannotVisitError if it is missing."""
    try:
        return version(package)
    except PackageNotFoundError as error:
        advice = "prepare wheels with it: make gpu-visit-wheels FRAMEWORKS=yes"
        raise CannotVisitError(f"{package} is not installed here; {advice}") from error


def _require_free_disk(directory: Path) -> None:
    """Raise CannotVisitError unless an item's compile caches have room in `directory`."""
    free = shutil.disk_usage(directory).free
    if free < MINIMUM_FREE_BYTES:
        needed = f"{MINIMUM_FREE_BYTES / 1024**3:.0f} GiB for compilers' caches"
        raise CannotVisitError(f"{directory} has {free / 1024**3:.1f} GiB free, of {needed}: give WORK another disk")


def say(message: str) -> None:
    """Print a line of progress."""
    print(f"{datetime.now(UTC):%H:%M:%S} {message}", file=sys.stderr, flush=True)


def main() -> int:
    """Make one visit, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m gpu_visit", description=__doc__)
    parser.add_argument("--minutes", type=float, required=True, help="how long the visit may take")
    parser.add_argument("--began", type=float, default=time.time(), help="when it began, in seconds since the epoch")
    parser.add_argument("--file", type=Path, required=True, help="the file that attempts are appended to")
    parser.add_argument("--work", type=Path, required=True, help="a directory for temporary files")
    parser.add_argument("--list", type=Path, default=items.LIST, help="what to measure")
    options = parser.parse_args()
    _use_work_directory(options.work)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        setting = read_setting(items.load(options.list))
        listed = items.load(options.list, checked=publish.checked_on(setting))
        visit = Visit(listed, setting, options.file, options.work, options.began + 60 * options.minutes)
        say(f"{setting.device}, JAX {setting.jax}, PyTorch {setting.torch}")
        visit.run()
    except (CannotVisitError, items.InvalidListError, attempts.InvalidAttemptError, OSError) as error:
        say(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        say("interrupted: what was measured is kept")
        return 130
    done = sum(is_done(task, visit.attempts) for task in visit.tasks)
    say(f"{done} of {len(visit.tasks)} items are measured; import them with make gpu-visit-import FILE={options.file}")
    return 0


def _use_work_directory(work: Path) -> None:
    """Have this process and its children put temporary files into `work`, from which what a kill left is removed."""
    temporary = work / "temporary"
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    os.environ["TMPDIR"] = str(temporary.resolve())
    tempfile.tempdir = None
    os.environ[MACHINE_DIRECTORY] = str((work / "machine").resolve())


if __name__ == "__main__":
    sys.exit(main())
