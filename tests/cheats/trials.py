"""Runs a program as `accelbench run` does, at its smallest: one launch of each variant, and the judge.

Launches are forked from a process that has imported the frameworks, and so is the judge, which executes the program's
file, from one that has imported what it needs.
"""

import os
import secrets
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from pydantic import BaseModel

import forks
from accelbench.api.case import Case, CaseMeasurement, CaseOrigin, CaseVariant, ParameterValue, workload_name_from_file
from accelbench.api.result import Check, Comparison
from accelbench.catalogue import script
from accelbench.launch.facts import Neighbours, Throttling
from accelbench.launch.record import LaunchRecord
from accelbench_runner.judge.assessment import judge
from accelbench_runner.judge_protocol import Assessment, JudgeRequest
from accelbench_runner.launch import blocks, stages, synchronisation
from accelbench_runner.launch.task import Machine
from accelbench_runner.protocol import LaunchRequest
from accelbench_runner.supervisor.allowance import Limit
from accelbench_runner.supervisor.children import ChildExit, Interruption
from accelbench_runner.supervisor.launcher import Launcher, launch_environment
from accelbench_runner.supervisor.listener import LaunchListener
from accelbench_runner.supervisor.outcome import MemoryEvents, Outcome, interpret
from accelbench_runner.supervisor.processors import thread_environment

PROGRAMS = Path(__file__).parent / "programs"
ROUNDS = 5
LIMIT_SECONDS = 100.0
PATIENCE_SECONDS = 5.0
"""Time for a launch to exit after its last message, as it may be waiting for work that is no longer needed."""
QUIET: Mapping[str, Any] = {
    "throttling": Throttling(periods=0, seconds=0.0),
    "neighbours": Neighbours(busy_seconds=0.0, offered_seconds=1.0),
}
"""In place of what others did to the machine meanwhile: no test's outcome hangs on them, nor on blocks that differ."""


@dataclass(frozen=True)
class Asked:
    """Describe a program and how it is run."""

    program: str
    uses: tuple[str, ...]
    """Its variants; the first is the baseline."""
    parameters: tuple[tuple[str, ParameterValue], ...] = ()
    precision: str = "float32"
    folder: Path = PROGRAMS

    @property
    def file(self) -> Path:
        """Return the path of the program."""
        return self.folder / f"{self.program}.py"


class Trial(BaseModel):
    """Hold the launches and the assessment of a program's variants."""

    launches: dict[str, LaunchRecord]
    """By `use`, of the first round."""
    assessment: Assessment

    def checks(self, use: str) -> dict[str, Check]:
        """Return the certificate's checks of a variant, by name."""
        return {check.name: check for check in self.assessment.certificate.checks if check.variant in {None, use}}

    def comparison(self, use: str) -> Comparison | None:
        """Return the comparison of the variant."""
        found = (each for each in self.assessment.comparisons if use in {each.variant, each.baseline})
        return next(found, None)


@contextmanager
def trials() -> Iterator[Callable[[Asked], Trial]]:
    """Yield a function that runs a program in a process that has imported what the judge needs."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=import_for_the_judge) as pool:
        yield lambda asked: pool.submit(run, asked).result()


def run(asked: Asked) -> Trial:
    """Every round goes as the first did: its record stands for all of them, as the judge must see several.

    The process that calls has no threads.
    """
    uses = asked.uses
    case = Case(
        name="all",
        origin=CaseOrigin(run="cheats", series="cheats"),
        workload=workload_name_from_file(asked.file.name),
        parameters=dict(asked.parameters),
        variants=tuple(CaseVariant(name=use, use=use) for use in uses),
        baseline=uses[0],
        measurement=CaseMeasurement.model_validate({"precision": asked.precision, "rounds_min": ROUNDS}),
    )
    unseen_seed = secrets.randbits(63)
    with tempfile.TemporaryDirectory() as directory:
        directories = {use: Path(directory) / str(position) for position, use in enumerate(uses)}
        launcher = ForkingLauncher(
            case, (), {}, threads=1, interruption=Interruption(), unseen_seed=unseen_seed, file=asked.file
        )
        launches = {use: _launched(launcher, use, place) for use, place in directories.items()}
        rounds = range(1, ROUNDS + 1)
        request = JudgeRequest(
            case=case,
            launches=tuple(
                each.model_copy(update={"round": number}) for number in rounds for each in launches.values()
            ),
            outputs={
                f"{number}/{use}": str(place)
                for number in rounds
                for use, place in directories.items()
                if launches[use].failure is None
            },
            directory=directory,
            unseen_seed=unseen_seed,
        )
        with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
            return Trial(launches=launches, assessment=pool.submit(_judged, request, asked.file).result())


def import_for_the_judge() -> None:
    """Once, before judges are forked; without threads, of which a fork would take none along.

    Those of a crowded machine would wait for each other at every operation of the reference.
    """
    os.environ |= thread_environment(1)
    for module in ("numpy", "scipy.special", "accelbench_runner.judge.parity", "accelbench_runner.judge.reference"):
        import_module(module)


def _judged(request: JudgeRequest, file: Path) -> Assessment:
    with script.use(file):
        return judge(request)


@dataclass(frozen=True)
class ForkingLauncher(Launcher):
    """Starts launches that have imported their framework already."""

    file: Path = PROGRAMS
    """Of the program that is launched."""

    def _run(self, listener: LaunchListener, request: LaunchRequest) -> tuple[ChildExit, Outcome]:
        (Path(request.directory) / "request.json").write_text(request.to_json())
        process, receiving = forks.start(_launch, (request, self.file))
        began = time.monotonic()
        late = False
        while not listener.final_message:
            ready = wait([receiving, process.sentinel], began + LIMIT_SECONDS - time.monotonic())
            late = not ready
            if not (data := os.read(receiving.fileno(), 65536) if receiving in ready else b""):
                break
            listener.received("messages", data)
        process.join(0 if late else PATIENCE_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(process.pid or 0, signal.SIGKILL)
        process.join()
        listener.received("stderr", (Path(request.directory) / "stderr").read_bytes())
        ending = ChildExit(
            status=process.exitcode or 0,
            killed_for="limit" if late else None,
            wall_seconds=time.monotonic() - began,
        )
        return ending, interpret(listener, ending, request, MemoryEvents(None, 0, 0))


def _launched(launcher: Launcher, use: str, directory: Path) -> LaunchRecord:
    directory.mkdir()
    found = launcher.launch(
        use,
        round_number=1,
        position=0,
        directory=directory,
        limit=Limit(LIMIT_SECONDS, "its limit"),
        case_seconds=LIMIT_SECONDS,
        skip={"limits": "what a machine can do decides no test"},
        forward=lambda _channel, _data: None,
        phase_reached=lambda _phase: None,
    )
    seconds = statistics.median(block.seconds for block in found.blocks) if found.blocks else 0.0
    same = tuple(block.model_copy(update={"seconds": seconds}) for block in found.blocks)
    return found.model_copy(update={"facts": found.facts.model_copy(update=QUIET), "blocks": same})


def _launch(given: tuple[LaunchRequest, Path], sending: Connection) -> None:
    """`python -m accelbench_runner.launch`, with as few blocks as it may."""
    request, file = given
    os.setsid()
    os.sched_setaffinity(0, {secrets.choice(sorted(os.sched_getaffinity(0)))})
    directory = Path(request.directory)
    environment = {**launch_environment(directory), script.SCRIPT_VARIABLE: str(file)}
    forks.become(environment, output=None, errors=directory / "stderr")
    blocks.WARM_UP_SECONDS, blocks.MINIMUM_BLOCKS = 0.05, 5
    blocks.BUDGET_SECONDS, blocks.LONG_BUDGET_SECONDS = 0.05, 0.15
    synchronisation.LONG_SECONDS = 0.1
    sys.exit(stages.run_launch(request.model_copy(update={"descriptor": sending.fileno()}), Machine()))
