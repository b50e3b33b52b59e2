"""Run cases through the real runner, as `accelbench run` does, and keep their results."""

import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from scipy.stats import beta

from accelbench.api.case import Case, CaseMeasurement, CaseOrigin, CaseVariant, ParameterValue
from accelbench.api.result import Result
from accelbench.delivery.log import MARK, Event, parse_event, read_log
from accelbench.launch.record import LaunchRecord
from accelbench.machine.fingerprint import of_host

Listener = Callable[[Event, int], None]
"""Function that is called with every event and the process ID of the supervisor."""


@dataclass(frozen=True)
class MeasuredCase:
    """Hold a measured case."""

    result: Result
    launches: tuple[LaunchRecord, ...]
    wall_seconds: float
    """Seconds from the start of the process to its end."""


def make_case(
    workload: str, parameters: dict[str, ParameterValue], variants: dict[str, str], **measurement: Any
) -> Case:
    """Make a case; `variants` gives each name its framework and mode, and the first is the baseline."""
    return Case(
        name="all",
        origin=CaseOrigin(run="benchmark", series="benchmark"),
        workload=workload,
        parameters=parameters,
        variants=tuple(CaseVariant(name=name, use=use) for name, use in variants.items()),
        baseline=next(iter(variants)),
        measurement=CaseMeasurement.model_validate(measurement),
    )


def _ignore(_event: Event, _process: int) -> None:
    """Ignore an event."""


def run(case: Case, listener: Listener = _ignore) -> MeasuredCase:
    """Measure the case; raises RuntimeError if there is no result."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "case.json")
        path.write_text(case.to_json())
        environment = {
            **os.environ,
            "ACCELBENCH_WORK_DIRECTORY": directory,
            "ACCELBENCH_TERMINATION_LOG": str(Path(directory, "termination-log")),
        }
        began = time.monotonic()
        lines: list[str] = []
        command = [sys.executable, "-m", "accelbench_runner", str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
            assert process.stdout is not None
            for line in process.stdout:
                lines.append(line.rstrip("\n"))
                if event := parse_event(lines[-1]):
                    listener(event, process.pid)
        wall_seconds = time.monotonic() - began
    log = read_log(lines)
    result = log.latest("result")
    if result is None:
        raise RuntimeError("\n".join([line for line in lines if not line.startswith(MARK)][-20:]))
    launches = [LaunchRecord.model_validate_json(item.text) for item in log.documents if item.kind == "launch"]
    return MeasuredCase(result, tuple(launches), wall_seconds)


def environment() -> str:
    """Describe the machine in a line."""
    host = of_host()
    packages = ("accelbench", "torch", "jax", "pyperf", "asv", "numpy")
    versions_by_name = {"Python": platform.python_version()}
    for name in packages:
        try:
            versions_by_name[name] = version(name)
        except PackageNotFoundError:
            versions_by_name[name] = "not installed"
    versions = ", ".join(f"{name} {number}" for name, number in versions_by_name.items())
    return f"{host.get('cpu')}, {len(os.sched_getaffinity(0))} processors, Linux {host.get('kernel')}; {versions}."


def upper_bound(hits: int, trials: int) -> float:
    """Return the 99 % upper bound of a share (Clopper and Pearson, 1934)."""
    return float(beta.ppf(0.99, hits + 1, trials - hits)) if hits < trials else 1.0


class RecordFile:
    """Keep a benchmark's records as JSON lines; with a file, it continues where it was stopped."""

    def __init__(self, path: Path | None) -> None:
        """Read the records of an existing file; with None, records are kept in memory only."""
        self._path = path
        self.records: list[dict[str, Any]] = []
        if path is not None and path.exists():
            self.records = [json.loads(line) for line in path.read_text().splitlines()]

    def add(self, record: dict[str, Any]) -> None:
        """Append a record."""
        self.records.append(record)
        if self._path:
            with self._path.open("a") as file:
                file.write(json.dumps(record) + "\n")
