"""The supervisor in simulated time, with launches that behave as their variants' names say: nothing waits here."""

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from accelbench.api.case import Case
from accelbench.api.result import Phase, Result, VariantResult
from accelbench.delivery.log import Event, parse_event, read_log
from accelbench.document import Document
from accelbench.launch.record import LaunchRecord
from accelbench_runner.judge_protocol import Assessment, JudgeRequest
from accelbench_runner.protocol import (
    PROBE_FILE,
    AsideEnded,
    AsideStarted,
    BlockTimed,
    Done,
    LaunchRequest,
    Measured,
    PhaseStarted,
)
from accelbench_runner.supervisor.allowance import Allowance, Limit
from accelbench_runner.supervisor.children import ChildExit, Interruption
from accelbench_runner.supervisor.experiment import Supervisor
from accelbench_runner.supervisor.launcher import Launcher
from accelbench_runner.supervisor.listener import Forward, LaunchListener
from accelbench_runner.supervisor.log_writer import LogWriter, TerminationMessage
from accelbench_runner.supervisor.outcome import MemoryEvents, Outcome, interpret
from runner.scripted_judge import assess

LAUNCH_SECONDS = 1.0
JUDGE_SECONDS = 0.5
BLOCKS = [PhaseStarted(phase="steady"), *[BlockTimed(units=10, seconds=0.01)] * 20, Measured()]
HANGS = None
"""The launch does nothing more until it is killed."""


def script(variant: str, request: LaunchRequest) -> Iterator[Document | None]:
    """The messages of a launch, LAUNCH_SECONDS before the last of them."""
    kind, _, how = variant.partition("_")[0].partition("-")
    if kind == "hangs" and (how != "in-round-2" or request.round == 2):
        yield PhaseStarted(phase="setup")
        yield HANGS
    if kind == "parity":
        yield AsideStarted(name="parity")
        yield HANGS
    if kind == "watch" and "watch" not in request.skip:
        yield AsideStarted(name="watch", alone=True)
        yield HANGS
    if kind == "glance" and "watch" not in request.skip:
        yield PhaseStarted(phase="steady")
        Path(request.directory, PROBE_FILE).write_text("watch")
        yield HANGS
    yield from BLOCKS
    if kind == "limits" and "limits" not in request.skip:
        yield AsideStarted(name="limits", alone=True)
        yield HANGS
        yield AsideEnded(name="limits", seconds=0)
    yield Done()


@dataclass
class Clock:
    seconds: float = 0.0

    def __call__(self) -> float:
        return self.seconds


@dataclass(frozen=True, kw_only=True)
class SimulatedLauncher(Launcher):
    clock: Clock

    def _listener(
        self, limit: Limit, case_seconds: float, forward: Forward, phase_reached: Callable[[Phase], None]
    ) -> LaunchListener:
        allowance = Allowance(limit, case_seconds, probe_seconds=self.probe_seconds, clock=self.clock)
        return LaunchListener(forward=forward, phase_reached=phase_reached, allowance=allowance)

    def _run(self, listener: LaunchListener, request: LaunchRequest) -> tuple[ChildExit, Outcome]:
        began = self.clock.seconds
        child_exit = ChildExit(status=0, killed_for=None, wall_seconds=LAUNCH_SECONDS)
        for message in script(request.variant, request):
            if message is HANGS:
                while (left := listener.seconds_left(self.clock.seconds - began)) > 0:
                    self.clock.seconds += left
                child_exit = ChildExit(status=-6, killed_for="limit", wall_seconds=self.clock.seconds - began)
                break
            listener.received("messages", message.to_json().encode() + b"\n")
        else:
            self.clock.seconds += LAUNCH_SECONDS
        listener.closed("messages")
        return child_exit, interpret(listener, child_exit, request, MemoryEvents(None, 0, 0))


@dataclass(frozen=True)
class SimulatedJudge:
    directory: Path
    clock: Clock

    def assess(
        self, case: Case, launches: Sequence[LaunchRecord], outputs: Mapping[str, Path], *, limit_seconds: float
    ) -> Assessment:
        assert limit_seconds > 0
        self.clock.seconds += JUDGE_SECONDS
        directories = {key: str(directory) for key, directory in outputs.items()}
        request = JudgeRequest(case=case, launches=tuple(launches), outputs=directories, directory=str(self.directory))
        return Assessment.model_validate_json(json.dumps(assess(json.loads(request.to_json()))))


@dataclass(frozen=True)
class Simulated:
    """What the supervisor left behind."""

    result: Result
    log: tuple[str, ...]

    def variant(self, name: str) -> VariantResult:
        return next(variant for variant in self.result.variants if variant.name == name)

    @property
    def events(self) -> list[Event]:
        return [event for line in self.log if (event := parse_event(line))]

    @property
    def launches(self) -> list[LaunchRecord]:
        documents = read_log(self.log).documents
        return [LaunchRecord.model_validate_json(found.text) for found in documents if found.kind == "launch"]


@dataclass
class Simulation:
    """Runs cases below a directory."""

    directory: Path
    count: int = field(default=0)

    def __call__(self, case: Case, *, probe_seconds: float = 20.0) -> Simulated:
        self.count += 1
        directory = self.directory / f"simulated-{self.count}"
        (directory / "judge").mkdir(parents=True)
        clock, interruption = Clock(), Interruption()
        with contextlib.closing((directory / "log").open("wb")) as log:
            writer = LogWriter(log.fileno())
            result = Supervisor(
                case=case,
                launcher=SimulatedLauncher(
                    case=case,
                    command=(),
                    environment={},
                    threads=1,
                    interruption=interruption,
                    unseen_seed=0,
                    probe_seconds=probe_seconds,
                    clock=clock,
                ),
                judge=SimulatedJudge(directory / "judge", clock),  # type: ignore[arg-type]
                log=writer,
                termination=TerminationMessage(None, complain=writer.notice),
                interruption=interruption,
                directory=directory,
                host={},
                clock=clock,
            ).run()
        return Simulated(result, tuple((directory / "log").read_text().split("\n")))
