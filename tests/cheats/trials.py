"""Runs a program as `accelbench run` does, at its smallest: one launch of each variant, and the judge."""

import os
import secrets
import statistics
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from accelbench import script
from accelbench.api.case import Case, CaseMeasurement, CaseOrigin, CaseVariant, ParameterValue
from accelbench.api.result import Check, Comparison
from accelbench_runner.children import Interruption, adopt_orphans
from accelbench_runner.judge import judge
from accelbench_runner.launches import Launcher
from accelbench_runner.records import Assessment, JudgeRequest, LaunchRecord

PROGRAMS = Path(__file__).parent / "programs"
ROUNDS = 5
LIMIT_SECONDS = 100.0
COMMAND = """
import sys
from accelbench_runner import blocks, limits
from accelbench_runner.launch import main
blocks.WARM_UP_SECONDS, blocks.BUDGET_SECONDS, limits.ROUNDS = 0.05, 0.1, 0
sys.exit(main())
"""
"""`python -m accelbench_runner.launch`, with as few blocks as it may. No test hangs on what a machine can do."""
QUIET: Mapping[str, Any] = {
    "throttling": {"periods": 0, "seconds": 0.0},
    "neighbours": {"busy_seconds": 0.0, "offered_seconds": 1.0},
}
"""In place of what others did to the machine meanwhile: no test's outcome hangs on them, nor on blocks that differ."""


@dataclass(frozen=True)
class Asked:
    """A program, and how it is run."""

    program: str
    uses: tuple[str, ...]
    """Its variants; the first is the baseline."""
    parameters: tuple[tuple[str, ParameterValue], ...] = ()
    precision: str = "float32"


class Trial(BaseModel):
    """What came of a program's variants."""

    launches: dict[str, LaunchRecord]
    """By `use`, of the first round."""
    assessment: Assessment

    def checks(self, use: str) -> dict[str, Check]:
        """The certificate's lines on a variant, by name."""
        return {check.name: check for check in self.assessment.certificate.checks if check.variant in {None, use}}

    def comparison(self, use: str) -> Comparison | None:
        """The one that the variant takes part in."""
        found = (each for each in self.assessment.comparisons if use in {each.variant, each.baseline})
        return next(found, None)


def run(asked: Asked) -> Trial:
    """In a process of its own: the judge executes the program's file, and launches end with all that descends from us.

    The process that calls has no other children, nor threads.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
        return pool.submit(_run, asked).result()


def _run(asked: Asked) -> Trial:
    """Every round goes as the first did: its record stands for all of them, as the judge must see several."""
    adopt_orphans()
    processor = min(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {processor})
    file, uses = PROGRAMS / f"{asked.program}.py", asked.uses
    case = Case(
        name="all",
        origin=CaseOrigin(run="cheats", series="cheats"),
        workload=script.name_of(file.name),
        parameters=dict(asked.parameters),
        variants=tuple(CaseVariant(name=use, use=use) for use in uses),
        baseline=uses[0],
        measurement=CaseMeasurement.model_validate({"precision": asked.precision, "rounds_min": ROUNDS}),
    )
    path = os.pathsep.join(filter(None, [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH")]))
    unseen_seed = secrets.randbits(63)
    with tempfile.TemporaryDirectory() as directory, script.used(file):
        launcher = Launcher(
            case=case,
            command=(sys.executable, "-c", COMMAND),
            environment={**os.environ, "PYTHONPATH": path},
            threads=1,
            interruption=Interruption(),
            unseen_seed=unseen_seed,
        )
        directories = {use: Path(directory) / str(position) for position, use in enumerate(uses)}
        launches = {use: _launched(launcher, use, place) for use, place in directories.items()}
        request = JudgeRequest(
            case=case,
            launches=tuple(
                launch.model_copy(update={"round": number})
                for number in range(1, ROUNDS + 1)
                for launch in launches.values()
            ),
            outputs={
                f"{number}/{use}": str(place)
                for number in range(1, ROUNDS + 1)
                for use, place in directories.items()
                if launches[use].failure is None
            },
            directory=directory,
            unseen_seed=unseen_seed,
        )
        return Trial(launches=launches, assessment=judge(request))


def _launched(launcher: Launcher, use: str, directory: Path) -> LaunchRecord:
    directory.mkdir()
    launch = launcher.launch(
        use,
        number=1,
        position=0,
        directory=directory,
        limit_seconds=LIMIT_SECONDS,
        forward=lambda _channel, _data: None,
        phase_reached=lambda _phase: None,
    )
    seconds = statistics.median(block.seconds for block in launch.blocks) if launch.blocks else 0.0
    blocks = tuple(block.model_copy(update={"seconds": seconds}) for block in launch.blocks)
    return launch.model_copy(update={"facts": {**launch.facts, **QUIET}, "blocks": blocks})
