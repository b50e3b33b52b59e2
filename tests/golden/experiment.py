"""A case on simulated machines: the real supervisor, launches and judge, in this process and in simulated time."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelbench.api.case import Case, CaseAccelerator, CaseMeasurement, CaseOrigin, CaseVariant
from accelbench.api.environment import CaseEnvironment
from accelbench.api.result import CheckOutcome, Result
from accelbench.delivery.log import Headline, read_log
from accelbench.launch.record import LaunchRecord
from accelbench_runner.judge.assessment import judge
from accelbench_runner.judge_protocol import Assessment, JudgeRequest
from accelbench_runner.protocol import LaunchRequest
from accelbench_runner.supervisor.children import ChildExit, Interruption
from accelbench_runner.supervisor.experiment import Supervisor
from accelbench_runner.supervisor.launcher import Launcher
from accelbench_runner.supervisor.listener import LaunchListener
from accelbench_runner.supervisor.log_writer import LogWriter, TerminationMessage
from accelbench_runner.supervisor.outcome import MemoryEvents, Outcome, interpret
from golden.adapter import EndedError
from golden.launch import command, launch
from golden.truth import Truth
from runner.supervision import SUPERVISE

BASELINE, VARIANT = "pytorch/eager", "jax/jit"
CRASHES_AFTER_SECONDS = 5.0
NO_EVENTS = MemoryEvents(None, 0, 0)
TruthOf = Callable[[str, int], Truth]
"""Of a variant's launch in a round."""
Around = Callable[[str, int], AbstractContextManager[None]]
"""Where a variant's launch in a round is carried out."""


def case(*others: str, platform: str = "cpu", environment: CaseEnvironment | None = None, **measurement: Any) -> Case:
    """The baseline and a variant, which should run in `environment`; four products of 8 x 8 matrices a call."""
    measurement = {"rounds_min": 3, "rounds_max": 3, "time_limit_seconds": 10**6, **measurement}
    variants = [BASELINE, *(others or [VARIANT])]
    own = {VARIANT: environment.name} if environment else {}
    return Case(
        name="golden",
        origin=CaseOrigin(run="golden", series="golden"),
        workload="matmul-chain",
        parameters={"size": 8, "length": 4},
        variants=tuple(
            CaseVariant(name=name, use=name if "/" in name else VARIANT, environment=own.get(name)) for name in variants
        ),
        environments=(environment,) if environment else (),
        baseline=BASELINE,
        measurement=CaseMeasurement.model_validate(measurement),
        accelerator=CaseAccelerator(platform=platform),
    )


UNSEEN_SEED = 7


@dataclass(frozen=True, kw_only=True)
class SimulatedLauncher(Launcher):
    """Carries launches out here; time is what they truly took."""

    truth: TruthOf
    around: Around
    passed: list[float]

    def _run(self, listener: LaunchListener, request: LaunchRequest) -> tuple[ChildExit, Outcome]:
        with tempfile.TemporaryFile() as messages:
            variant, number = request.variant, request.round
            try:
                with self.around(variant, number):
                    took = launch(
                        request.model_copy(update={"descriptor": messages.fileno()}), self.truth(variant, number)
                    )
                ending = ChildExit(status=0, killed_for=None, wall_seconds=took)
            except EndedError as ended:
                hung = listener.allowance.launch_limit.seconds
                ending = {
                    "crashes": ChildExit(status=-signal.SIGSEGV, killed_for=None, wall_seconds=CRASHES_AFTER_SECONDS),
                    "hangs": ChildExit(status=-signal.SIGABRT, killed_for="limit", wall_seconds=hung),
                }[str(ended)]
            messages.seek(0)
            listener.received("messages", messages.read())
            listener.closed("messages")
        self.passed.append(ending.wall_seconds)
        return ending, interpret(listener, ending, request, NO_EVENTS)


@dataclass(frozen=True)
class JudgeHere:
    """The judge, in this process; what goes in and out is what a pipe would carry."""

    directory: Path

    def assess(
        self,
        case: Case,
        launches: Sequence[LaunchRecord],
        outputs: Mapping[str, Path],
        *,
        limit_seconds: float,
        last_try: bool,
    ) -> Assessment:
        assert limit_seconds > 0
        del last_try  # this judge answers at once
        directories = {key: str(directory) for key, directory in outputs.items()}
        request = JudgeRequest(
            case=case,
            launches=tuple(launches),
            outputs=directories,
            directory=str(self.directory),
            unseen_seed=UNSEEN_SEED,
        )
        return Assessment.model_validate_json(judge(JudgeRequest.model_validate_json(request.to_json())).to_json())


def _nowhere_else(_variant: str, _number: int) -> AbstractContextManager[None]:
    return nullcontext()


def measure(asked: Case, truth: TruthOf, directory: Path, *, around: Around = _nowhere_else) -> Result:
    """The case's result, from the real supervisor, whose log is `directory/log`."""
    passed = [0.0]
    interruption = Interruption()
    with (directory / "log").open("wb") as log:
        return Supervisor(
            case=asked,
            launcher=SimulatedLauncher(
                case=asked,
                command=(),
                environment={},
                threads=len(os.sched_getaffinity(0)),
                interruption=interruption,
                unseen_seed=UNSEEN_SEED,
                truth=truth,
                around=around,
                passed=passed,
            ),
            judge=JudgeHere(directory),  # type: ignore[arg-type]
            log=LogWriter(log.fileno()),
            termination=TerminationMessage(directory / "termination-log", complain=print),
            interruption=interruption,
            directory=directory,
            host={},
            clock=lambda: sum(passed),
        ).run()


def in_processes(asked: Case, truths: Mapping[str, Truth], directory: Path, *, probe_seconds: float = 60.0) -> Result:
    """The case's result where supervisor, launches and judge are processes; truths by variant."""
    (directory / "case.json").write_text(asked.to_json())
    judge = [sys.executable, "-m", "accelbench_runner.judge"]
    path = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    with (directory / "log").open("wb") as log:
        subprocess.run(
            [
                *SUPERVISE,
                str(directory / "case.json"),
                json.dumps(command(truths)),
                json.dumps(judge),
                str(probe_seconds),
            ],
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(path),
                "ACCELBENCH_WORK_DIRECTORY": str(directory),
                "ACCELBENCH_TERMINATION_LOG": str(directory / "termination-log"),
            },
            stdout=log,
            check=True,
        )
    headline = Headline.model_validate_json((directory / "termination-log").read_text())
    result = read_log((directory / "log").read_text().split("\n")).latest("result", headline.digest)
    assert result is not None, (directory / "log").read_text()[-3000:]
    return result


def records(directory: Path) -> list[LaunchRecord]:
    """Every launch of the case that was measured in `directory`, as its log has them."""
    documents = read_log((directory / "log").read_text().split("\n")).documents
    return [LaunchRecord.model_validate_json(found.text) for found in documents if found.kind == "launch"]


def outcomes(result: Result) -> dict[tuple[str, str], CheckOutcome]:
    """By check and variant; a reading for all of them alike is one for each."""
    return {
        (check.name, variant): check.outcome
        for variant in (each.name for each in result.case.variants)
        for check in sorted(result.certificate.checks, key=lambda check: check.outcome == "failed")
        if check.variant in {None, variant}
    }
