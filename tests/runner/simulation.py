"""Run the supervisor in simulated time, with launches that behave as their variants' names say; nothing waits."""

import contextlib
import json
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from accelbench.api.case import Case
from accelbench.api.reasons import FailureReason
from accelbench.api.result import Phase, Result, VariantResult
from accelbench.delivery.log import Event, parse_event, read_log
from accelbench.document import Document
from accelbench.launch.record import LaunchRecord
from accelbench_runner.judge_protocol import Assessment, JudgeRequest
from accelbench_runner.protocol import (
    PROBE_FILE,
    ActivityStarted,
    BlockTimed,
    Done,
    FactsReported,
    Failed,
    LaunchRequest,
    Measured,
    NeedsGradients,
    PhaseEnded,
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


class Hangs:
    """Hang until the launch is killed."""


@dataclass(frozen=True)
class Exits:
    """End the process, with this on standard error."""

    status: int
    stderr: bytes = b""


class Interrupted:
    """Send SIGTERM to the supervisor."""


Step = Document | bytes | Exits | type[Hangs] | type[Interrupted]
"""Bytes are written where messages are expected."""
PRINTED = b"x" * 2_000_000


def script(variant: str, request: LaunchRequest) -> Iterator[Step]:  # noqa: C901, PLR0912, PLR0915 - a table
    """Yield what a launch does in LAUNCH_SECONDS."""
    kind = variant.partition("_")[0]
    second = request.round == 2
    match kind:
        case "hangs" | "hangs-in-round-2" if kind == "hangs" or second:
            yield PhaseStarted(phase="setup")
            yield Hangs
        case "parity-hangs":
            yield ActivityStarted(name="parity")
            yield Hangs
        case "watch-hangs" if "watch" not in request.skip:
            yield ActivityStarted(name="watch", alone=True)
            yield Hangs
        case "glance-hangs" if "watch" not in request.skip:
            yield PhaseStarted(phase="steady")
            Path(request.directory, PROBE_FILE).write_text("watch")
            yield Hangs
        case "computes-gradients" if not request.needs_gradients:
            yield PhaseStarted(phase="first-step")
            yield NeedsGradients()
            return
        case "interrupted-in-round-2" if second:
            yield Interrupted
        case "raises" | "raises-in-round-2" if kind == "raises" or second:
            yield PhaseStarted(phase="setup")
            yield Failed(reason=FailureReason.RAISED, message="ValueError: no such shape", trace="theirs.py, line 7")
            return
        case "crashes-in-steady":
            yield PhaseStarted(phase="steady")
            yield Exits(-signal.SIGSEGV)
        case "killed":
            yield Exits(-signal.SIGKILL)
        case "says-nothing":
            yield Exits(0)
        case "exits":
            yield Exits(7, b"cannot go on\n")
        case "cut-off":
            yield b'{"type": "blo'
            yield Exits(0)
        case "nan-block":
            yield b'{"type": "block", "units": 1, "seconds": NaN}\n'
        case "times-nothing":
            yield Done()
            return
        case "observes":
            observations = {"calls": 4, "compilations": request.round}
            yield FactsReported(values={"protocol": "observe", "observations": observations})
            yield Done()
            return
    if request.purpose == "explain":
        yield from _explain(kind)
        return
    if request.purpose == "probe":
        for phase, seconds in (("import", 0.01), ("compile", 0.002), ("first-step", 0.001)):
            yield PhaseEnded(phase=phase, seconds=seconds)
        yield FactsReported(values={"compileCache": {"hits": 1, "misses": 0}})
        yield Done()
        return
    if kind == "compiles":
        yield FactsReported(values={"compileCache": {"hits": 0, "misses": 1}})
    if kind == "absurd-facts":
        yield b'{"type": "facts", "values": {"flopsPerUnit": NaN, "peakMemoryBytes": Infinity, "unit": 3}}\n'
    yield from BLOCKS
    if kind == "limits-hangs" and "limits" not in request.skip:
        yield ActivityStarted(name="limits", alone=True)
        yield Hangs
    yield Done()


def _explain(kind: str) -> Iterator[Step]:
    """Yield what a launch does under the profiler."""
    match kind:
        case "profiled":
            sort = {"name": "sort", "runs": 1.0, "seconds": 0.009}
            calls = {"seconds_per_call": 0.01, "calls": 10, "operations": [sort]}
            yield FactsReported(values={"profiledCalls": calls})
        case "profiler-forges":
            forged = {"name": "x", "runs": 1e300, "seconds": 1e-300}
            yield FactsReported(values={"profiledCalls": {"secondsPerCall": 1, "calls": 1, "operations": [forged]}})
        case "profiler-shows-nothing":
            reason = {"why": "ProfilerError: the profiler's trace has no operations"}
            yield FactsReported(values={"profiledCalls": reason})
        case "profiler-raises":
            yield Failed(reason=FailureReason.RAISED, message="ValueError: no such shape")
            return
        case "profiler-crashes":
            yield Exits(-signal.SIGSEGV)
        case "profiler-hangs":
            yield Hangs
    yield Done()


@dataclass
class Clock:
    seconds: float = 0.0

    def __call__(self) -> float:
        return self.seconds


@dataclass(frozen=True, kw_only=True)
class SimulatedLauncher(Launcher):
    clock: Clock
    requests: list[LaunchRequest] = field(default_factory=list)
    """Every request, in the order of the launches."""

    def _listener(
        self, limit: Limit, case_seconds: float, forward: Forward, phase_reached: Callable[[Phase], None]
    ) -> LaunchListener:
        allowance = Allowance(limit, case_seconds, probe_limit_seconds=self.probe_seconds, clock=self.clock)
        return LaunchListener(forward=forward, phase_reached=phase_reached, allowance=allowance)

    def _run(self, listener: LaunchListener, request: LaunchRequest) -> tuple[ChildExit, Outcome]:
        self.requests.append(request)
        began = self.clock.seconds
        child_exit = ChildExit(status=0, killed_for=None, wall_seconds=LAUNCH_SECONDS)
        for step in script(request.variant, request):
            if step is Hangs:
                while (left := listener.seconds_left(self.clock.seconds - began)) > 0:
                    self.clock.seconds += left
                child_exit = ChildExit(status=-6, killed_for="limit", wall_seconds=self.clock.seconds - began)
                break
            if step is Interrupted:
                self.interruption.signal = signal.SIGTERM
                child_exit = replace(child_exit, killed_for="interrupted", status=-signal.SIGKILL)
                break
            if isinstance(step, Exits):
                listener.received("stderr", step.stderr)
                child_exit = replace(child_exit, status=step.status)
                break
            assert isinstance(step, Document | bytes)
            listener.received("messages", step if isinstance(step, bytes) else step.to_json().encode() + b"\n")
            if isinstance(step, PhaseStarted) and request.variant.startswith(f"prints-in-{step.phase}"):
                listener.received("stdout", PRINTED)
        if child_exit.killed_for != "limit":
            self.clock.seconds += LAUNCH_SECONDS
        listener.closed("messages")
        return child_exit, interpret(listener, child_exit, request, MemoryEvents(None, 0, 0))


@dataclass(frozen=True)
class SimulatedJudge:
    directory: Path
    clock: Clock
    behaviour: str

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
        self.clock.seconds += JUDGE_SECONDS
        directories = {key: str(directory) for key, directory in outputs.items()}
        request = JudgeRequest(case=case, launches=tuple(launches), outputs=directories, directory=str(self.directory))
        return Assessment.model_validate_json(json.dumps(assess(json.loads(request.to_json()), self.behaviour)))


@dataclass(frozen=True)
class Simulated:
    """Hold what the supervisor left behind."""

    result: Result
    log: tuple[str, ...]
    requests: tuple[LaunchRequest, ...] = ()

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
    """Run cases below a directory."""

    directory: Path
    count: int = field(default=0)

    def __call__(self, case: Case, *, judge: str = "agrees", probe_seconds: float = 20.0) -> Simulated:
        self.count += 1
        directory = self.directory / f"simulated-{self.count}"
        (directory / "judge").mkdir(parents=True)
        clock, interruption = Clock(), Interruption()
        with contextlib.closing((directory / "log").open("wb")) as log:
            writer = LogWriter(log.fileno())
            launcher = SimulatedLauncher(
                case=case,
                command=(),
                environment={},
                threads=1,
                interruption=interruption,
                unseen_seed=0,
                probe_seconds=probe_seconds,
                clock=clock,
            )
            result = Supervisor(
                case=case,
                launcher=launcher,
                judge=SimulatedJudge(directory / "judge", clock, judge),  # type: ignore[arg-type]
                log=writer,
                termination=TerminationMessage(None, complain=writer.notice),
                interruption=interruption,
                directory=directory,
                host={},
                clock=clock,
            ).run()
        return Simulated(result, tuple((directory / "log").read_text().split("\n")), tuple(launcher.requests))
