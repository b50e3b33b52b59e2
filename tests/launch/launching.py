"""Start launches, and collect their messages."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import forks
from accelbench.api.case import Case, CaseAccelerator, CaseMeasurement, CaseOrigin, CaseVariant
from accelbench_runner.launch import blocks
from accelbench_runner.launch.limits import ROUNDS as LIMITS_ROUNDS
from accelbench_runner.launch.stages import run_launch
from accelbench_runner.launch.synchronisation import LONG_ROUNDS
from accelbench_runner.launch.task import Machine
from accelbench_runner.protocol import (
    ActivityEnded,
    BlockTimed,
    FactsReported,
    Failed,
    LaunchRequest,
    Message,
    PhaseEnded,
    parse_message,
)
from accelbench_runner.supervisor.launcher import launch_environment
from launch import odd_products, odd_workloads

PROGRAM = """
import sys
from accelbench_runner.launch import blocks
from accelbench_runner.launch.__main__ import main
blocks.WARM_UP_SECONDS, blocks.BUDGET_SECONDS, blocks.LONG_BUDGET_SECONDS = 0.05, 0.1, 0.3
status = main()
print("imported:", *sorted({"jax", "torch"} & sys.modules.keys()))
sys.exit(status)
"""
"""Runs a launch with as few blocks as possible, and prints which frameworks it has imported."""


LATER = max(LIMITS_ROUNDS, LONG_ROUNDS) + 1
"""A round without the extra measurements of the first rounds."""


@dataclass(frozen=True)
class LaunchOutput:
    """Hold the messages of a launch, in order."""

    messages: tuple[Message, ...]
    output: str
    status: int

    @property
    def facts(self) -> dict[str, Any]:
        facts = (message.values for message in self.messages if isinstance(message, FactsReported))
        return {name: value for values in facts for name, value in values.items()}

    @property
    def asides(self) -> dict[str, float]:
        return {message.name: message.seconds for message in self.messages if isinstance(message, ActivityEnded)}

    @property
    def phases(self) -> dict[str, PhaseEnded]:
        return {message.phase: message for message in self.messages if isinstance(message, PhaseEnded)}

    @property
    def blocks(self) -> list[BlockTimed]:
        return [message for message in self.messages if isinstance(message, BlockTimed)]

    @property
    def failure(self) -> Failed | None:
        return next((message for message in self.messages if isinstance(message, Failed)), None)


def case(workload: str, use: str, parameters: dict[str, Any] | None = None, **choices: Any) -> Case:
    return Case(
        name="all",
        origin=CaseOrigin(run="test", series="test"),
        workload=workload,
        parameters=parameters or {},
        variants=(CaseVariant(name=use, use=use, options=choices.get("options", {})),),
        baseline=use,
        measurement=CaseMeasurement(precision=choices.get("precision", "float32"), seed=choices.get("seed", 0)),
        accelerator=CaseAccelerator(platform=choices.get("platform", "cpu")),
    )


def requested(
    directory: Path, asked: Case, threads: int, *, number: int = LATER, probe: bool = False, **more: Any
) -> LaunchRequest:
    """Build the supervisor's request, but for the descriptor."""
    return LaunchRequest(
        case=asked,
        variant=asked.baseline,
        round=number,
        directory=str(directory),
        descriptor=0,
        threads=threads,
        **{"purpose": "probe" if probe else "measure", **more},
    )


@contextmanager
def started(
    directory: Path, asked: Case, threads: int = 1, *, number: int = LATER, **more: Any
) -> Iterator[tuple[subprocess.Popen[str], Iterator[Message]]]:
    """Start a launch that finds `odd_workloads`; yield its process and its messages."""
    environment = install_odd_workloads(directory)
    reading, writing = os.pipe()
    request = requested(directory, asked, threads, number=number, **more).model_copy(update={"descriptor": writing})
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=[writing],
        env=environment,
        text=True,
    )
    os.close(writing)
    with process, os.fdopen(reading, "rb") as pipe:
        assert process.stdin is not None
        process.stdin.write(request.to_json())
        process.stdin.close()
        yield process, (parse_message(line) for line in pipe)


def launch_anew(directory: Path, asked: Case, threads: int = 1, *, number: int = LATER, **more: Any) -> LaunchOutput:
    """Run a launch in a new process; `more` are further fields of the request."""
    with started(directory, asked, threads, number=number, **more) as (process, messages):
        launched = tuple(messages)
        assert process.stdout is not None
        output = process.stdout.read()
        return LaunchOutput(messages=launched, output=output, status=process.wait())


def launch(
    directory: Path, asked: Case, threads: int = 1, *, number: int = LATER, probe: bool = False, **more: Any
) -> LaunchOutput:
    """Run a launch, or a warm probe, in a fork of a process that has imported the frameworks."""
    environment = install_odd_workloads(directory)
    request = requested(directory, asked, threads, number=number, probe=probe, **more)
    process, receiving = forks.start(_run, (request, environment))
    with os.fdopen(os.dup(receiving.fileno()), "rb") as pipe:
        launched = tuple(parse_message(line) for line in pipe)
    receiving.close()
    process.join()
    return LaunchOutput(messages=launched, output=(directory / "output").read_text(), status=process.exitcode or 0)


def _run(given: tuple[LaunchRequest, dict[str, str]], sending: Connection) -> None:
    """Run in a fork what `PROGRAM` runs."""
    request, environment = given
    output = Path(request.directory) / "output"
    forks.become(environment, output=output, errors=output)
    blocks.WARM_UP_SECONDS, blocks.BUDGET_SECONDS, blocks.LONG_BUDGET_SECONDS = 0.05, 0.1, 0.3
    sys.exit(run_launch(request.model_copy(update={"descriptor": sending.fileno()}), Machine()))


def install_odd_workloads(directory: Path) -> dict[str, str]:
    """Declare `odd_workloads` as entry points of a distribution in `directory`; return the environment to find it."""
    about = directory / "odd_workloads-1.dist-info"
    about.mkdir(exist_ok=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: odd-workloads\nVersion: 1\n")
    kinds = [*odd_workloads.ALL, odd_products.Declaring]
    points = [f"{kind.name} = {kind.__module__}:{kind.__name__}" for kind in kinds]
    (about / "entry_points.txt").write_text("\n".join(["[accelbench.workloads]", *points]))
    tests = str(Path(__file__).parents[1])
    path = [str(directory), tests, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, **launch_environment(directory), "PYTHONPATH": os.pathsep.join(path)}
