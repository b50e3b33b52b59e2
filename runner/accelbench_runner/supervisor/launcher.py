"""Start one launch of a variant in a fresh process, and return its record."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from accelbench import frameworks, platforms
from accelbench.api.case import Case
from accelbench.api.result import Phase
from accelbench.launch.facts import PROBES, Facts, Probe
from accelbench.launch.record import LaunchRecord, WarmProbe
from accelbench.machine import memory
from accelbench_runner.protocol import LaunchRequest, Purpose
from accelbench_runner.supervisor.allowance import PROBE_SECONDS, Allowance, Limit
from accelbench_runner.supervisor.children import ChildExit, Interruption, UnkillableError, run_child
from accelbench_runner.supervisor.listener import Forward, LaunchListener, describe
from accelbench_runner.supervisor.outcome import MemoryEvents, Outcome, interpret, running_probe
from accelbench_runner.supervisor.processors import ProcessorUse

MAXIMUM_COMPILER_BYTES = 8 * 1024**3
"""Maximum data of a compiler; the largest that was measured took 1.55 GiB, for 256 chips (docs/adr/0043)."""
MINIMUM_COMPILER_BYTES = 1024**3
COMPILER_SHARE = 0.8
"""Maximum share of the available memory for a compiler, so that the supervisor survives."""


def compiler_memory_limit() -> int:
    """Return the maximum bytes of data of a launch that compiles for a target."""
    available = memory.available()
    if available is None:
        return MAXIMUM_COMPILER_BYTES
    return max(MINIMUM_COMPILER_BYTES, min(MAXIMUM_COMPILER_BYTES, int(COMPILER_SHARE * available)))


@dataclass(frozen=True)
class Launcher:
    """Start launches of one case."""

    case: Case
    command: Sequence[str]
    environment: Mapping[str, str]
    threads: int
    interruption: Interruption
    unseen_seed: int
    """Seed of the inputs that programs get after they were timed."""
    probe_seconds: float = PROBE_SECONDS
    purpose: Purpose = "measure"
    memory_bytes: int | None = None
    """Limit of a launch's data; None: no limit."""

    def launch(
        self,
        variant: str,
        *,
        round_number: int,
        position: int,
        directory: Path,
        limit: Limit,
        case_seconds: float,
        skip: Mapping[Probe, str],
        forward: Forward,
        phase_reached: Callable[[Phase], None],
    ) -> LaunchRecord:
        """Measure `variant` once; every launch gives a record, however it ends.

        `case_seconds` are left of the case's time limit; `skip` has the reason for each probe to leave out.
        """
        request = self._request(variant, round_number, directory, tuple(skip))
        listener = self._listener(limit, case_seconds, forward, phase_reached)
        child_exit, outcome = self._run(listener, request)
        unchecked = {**skip, **listener.unchecked, **outcome.unchecked}
        return LaunchRecord(
            variant=variant,
            round=round_number,
            position=position,
            wall_seconds=child_exit.wall_seconds,
            phases=tuple(listener.phases),
            blocks=tuple(listener.blocks),
            asides=listener.asides,
            facts=Facts.parse(listener.facts, unchecked),
            printed_bytes=listener.printed_bytes,
            failure=outcome.failure,
            unfinished=outcome.unfinished,
            unchecked=unchecked,
            ended_by=outcome.ended_by,
            probe_seconds=listener.allowance.total_probe_seconds,
        )

    def warm_probe(
        self,
        variant: str,
        *,
        round_number: int,
        directory: Path,
        limit: Limit,
        case_seconds: float,
        forward: Forward,
        phase_reached: Callable[[Phase], None],
    ) -> WarmProbe | None:
        """Start `variant` again with the caches that its launch left in `directory`, and stop after its first step.

        None if a signal or the case's time limit ended it.
        """
        request = self._request(variant, round_number, directory, PROBES).model_copy(update={"purpose": "probe"})
        listener = self._listener(limit, case_seconds, forward, phase_reached)
        child_exit, outcome = self._run(listener, request)
        if outcome.unfinished:
            return None
        return WarmProbe(
            phases=tuple(listener.phases),
            cache=Facts.parse(listener.facts).compile_cache,
            failure=f"{outcome.failure.reason}: {outcome.failure.message}" if outcome.failure else None,
            wall_seconds=child_exit.wall_seconds,
        )

    def _request(self, variant: str, round_number: int, directory: Path, skip: tuple[Probe, ...]) -> LaunchRequest:
        return LaunchRequest(
            case=self.case,
            variant=variant,
            round=round_number,
            directory=str(directory),
            descriptor=-1,
            threads=self.threads,
            purpose=self.purpose,
            memory_bytes=self.memory_bytes,
            skip=skip,
            unseen_seed=self.unseen_seed,
        )

    def _listener(
        self, limit: Limit, case_seconds: float, forward: Forward, phase_reached: Callable[[Phase], None]
    ) -> LaunchListener:
        """Return a listener that counts the processor time of others from now on."""
        before = ProcessorUse.read()
        allowance = Allowance(
            launch_limit=limit,
            case_seconds=case_seconds,
            probe_limit_seconds=self.probe_seconds,
            others_share=lambda: ProcessorUse.read().others_share_since(before),
        )
        return LaunchListener(forward=forward, phase_reached=phase_reached, allowance=allowance)

    def _run(self, listener: LaunchListener, request: LaunchRequest) -> tuple[ChildExit, Outcome]:
        """Run a launch to its end, and interpret the end."""
        read_end, write_end = os.pipe()
        directory = Path(request.directory)
        request_file = directory / "request.json"
        request_file.write_text(request.model_copy(update={"descriptor": write_end}).to_json())
        memory_before = MemoryEvents.read()
        try:
            child_exit = run_child(
                self.command,
                request=request_file,
                environment={**self.environment, **launch_environment(directory)},
                listener=listener,
                interruption=self.interruption,
                messages=(read_end, write_end),
            )
        except UnkillableError as error:
            if probe := running_probe(listener, directory):
                raise UnkillableError(f"{describe(probe)} hangs: {error}") from error
            raise
        memory_events, others_share = MemoryEvents.read().since(memory_before), listener.allowance.others_share()
        return child_exit, interpret(listener, child_exit, request, memory_events, others_share)


def launch_environment(directory: Path) -> dict[str, str]:
    """Create folders for all caches and files in the launch's directory, and return the variables that name them.

    So every launch starts cold. Inductor's precompiled headers follow TMPDIR alone.
    """
    folders = {"HOME": "home", "XDG_CACHE_HOME": "cache", "TMPDIR": "tmp"}
    for caches in [
        *(extension.caches for extension in frameworks.every()),
        *(extension.caches for extension in platforms.every()),
    ]:
        folders |= caches
    for folder in folders.values():
        (directory / folder).mkdir(exist_ok=True)
    return {
        **{name: str(directory / folder) for name, folder in folders.items()},
        **{name: value for framework in frameworks.every() for name, value in framework.environment.items()},
        "PYTHONFAULTHANDLER": "1",  # writes the stacks of a launch that hangs or crashes
    }
