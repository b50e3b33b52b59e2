"""Starts supervisors, real and simulated ones; tests look at what they leave behind, not at their insides."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from accelbench.api.case import Case
from cluster.wait import HANG_SECONDS
from runner.simulation import Simulation
from runner.supervision import SCRIPTED_JUDGE, SCRIPTED_LAUNCH, SUPERVISE, Ended, Supervised, processes_below

Start = Callable[..., Supervised]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts the supervisor; whatever the test does, it is ended afterwards."""
    started: list[Supervised] = []

    def start(
        case: Case | str, *, judge: str = "agrees", launch: list[str] | None = None, path: str = "", **options: Any
    ) -> Supervised:
        directory = tmp_path / str(len(started))
        work = options.pop("work", directory / "work")
        work.mkdir(parents=True, exist_ok=True)
        directory.mkdir(exist_ok=True)
        (directory / "case.json").write_text(case if isinstance(case, str) else case.to_json())
        judge_command = options.pop("judge_command", [*SCRIPTED_JUDGE, judge])
        command = [json.dumps(launch or SCRIPTED_LAUNCH), json.dumps(judge_command)]
        command += [str(options.pop("probe_seconds"))] if "probe_seconds" in options else []
        options.setdefault("stdout", subprocess.PIPE)
        wrapper = [word.replace("WORK", str(work)) for word in options.pop("wrapper", [])]
        environment = {
            **os.environ,
            "ACCELBENCH_WORK_DIRECTORY": str(work),
            "ACCELBENCH_TERMINATION_LOG": str(directory / "termination-log"),
            **options.pop("environment", {}),
        }
        process = subprocess.Popen(
            [*wrapper, *SUPERVISE, path or str(directory / "case.json"), *command],
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,
            **options,
        )
        started.append(Supervised(process, directory))
        return started[-1]

    yield start
    for supervised in started:
        if supervised.process.poll() is None:
            supervised.process.kill()
        supervised.process.communicate()
        for process in processes_below(supervised.directory / "work"):
            process.kill()


@pytest.fixture
def run(start: Start) -> Callable[..., Ended]:
    """Runs the supervisor to its end."""

    def run(*arguments: Any, timeout: float = HANG_SECONDS, **options: Any) -> Ended:
        return start(*arguments, **options).end(timeout)

    return run


@pytest.fixture
def simulate(tmp_path: Path) -> Simulation:
    """Runs a case in simulated time, with scripted launches and a scripted judge."""
    return Simulation(tmp_path)
