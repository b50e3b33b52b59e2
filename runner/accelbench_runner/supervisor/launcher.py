"""One launch, from its request to its record."""

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
from accelbench_runner.supervisor.children import Ending, Interruption, UnkillableError, run_child
from accelbench_runner.supervisor.endings import End, MemoryTold, explain, under_way
from accelbench_runner.supervisor.listening import Forward, LaunchListener, own
from accelbench_runner.supervisor.processors import ProcessorUse

MOST_COMPILER_BYTES = 8 * 1024**3
"""The largest compiler that was measured took 1.55 GiB, for 256 chips (docs/adr/0043)."""
LEAST_COMPILER_BYTES = 1024**3
COMPILER_SHARE = 0.8
"""A compiler gets this share of the available memory, so that the supervisor survives it."""


def compiler_memory_limit() -> int:
    """Return the bytes of data that a launch may hold while it compiles for a target."""
    available = memory.available()
    if available is None:
        return MOST_COMPILER_BYTES
    return max(LEAST_COMPILER_BYTES, min(MOST_COMPILER_BYTES, int(COMPILER_SHARE * available)))


@dataclass(frozen=True)
class Launcher:
    """What all launches of a case have in common."""

    case: Case
    command: Sequence[str]
    environment: Mapping[str, str]
    threads: int
    interruption: Interruption
    unseen_seed: int
    """Of the inputs that programs are given once they have been timed."""
    probe_seconds: float = PROBE_SECONDS
    purpose: Purpose = "measure"
    memory_bytes: int | None = None
    """What a launch may hold of data; None: as much as it likes."""

    def launch(
        self,
        variant: str,
        *,
        number: int,
        position: int,
        directory: Path,
        limit: Limit,
        case_seconds: float,
        skip: Mapping[Probe, str],
        forward: Forward,
        phase_reached: Callable[[Phase], None],
    ) -> LaunchRecord:
        """Measure `variant` once in a fresh process, within its `limit` and the case's; it always yields a record.

        Probes to `skip` are not made; why is kept with the record.
        """
        request = self._request(variant, number, directory, tuple(skip))
        listener = self._listener(limit, case_seconds, forward, phase_reached)
        ending, end = self._run(listener, request)
        unchecked = {**skip, **listener.unchecked, **end.unchecked}
        return LaunchRecord(
            variant=variant,
            round=number,
            position=position,
            wall_seconds=ending.wall_seconds,
            phases=tuple(listener.phases),
            blocks=tuple(listener.blocks),
            asides=listener.asides,
            facts=Facts.parse(listener.facts, unchecked),
            printed_bytes=listener.printed_bytes,
            failure=end.failure,
            unfinished=end.unfinished,
            unchecked=unchecked,
            ended_by=end.ended_by,
            probe_seconds=listener.allowance.probed,
        )

    def probe(
        self,
        variant: str,
        *,
        number: int,
        directory: Path,
        limit: Limit,
        case_seconds: float,
        forward: Forward,
        phase_reached: Callable[[Phase], None],
    ) -> WarmProbe | None:
        """Start `variant` once more on the caches that its launch has left in `directory`, up to its first step.

        None where we ended it, at a signal or at the end of the case's time.
        """
        request = self._request(variant, number, directory, PROBES).model_copy(update={"purpose": "probe"})
        listener = self._listener(limit, case_seconds, forward, phase_reached)
        ending, end = self._run(listener, request)
        if end.unfinished:
            return None
        return WarmProbe(
            phases=tuple(listener.phases),
            cache=Facts.parse(listener.facts).compile_cache,
            failure=f"{end.failure.reason}: {end.failure.message}" if end.failure else None,
            wall_seconds=ending.wall_seconds,
        )

    def _request(self, variant: str, number: int, directory: Path, skip: tuple[Probe, ...]) -> LaunchRequest:
        return LaunchRequest(
            case=self.case,
            variant=variant,
            round=number,
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
        before = ProcessorUse.read()
        allowance = Allowance(
            own=limit,
            case_seconds=case_seconds,
            probe_seconds=self.probe_seconds,
            others_share=lambda: ProcessorUse.read().others_share_since(before),
        )
        return LaunchListener(forward=forward, phase_reached=phase_reached, allowance=allowance)

    def _run(self, listener: LaunchListener, request: LaunchRequest) -> tuple[Ending, End]:
        reading, writing = os.pipe()
        directory = Path(request.directory)
        request_file = directory / "request.json"
        request_file.write_text(request.model_copy(update={"descriptor": writing}).to_json())
        memory_before = MemoryTold.read()
        try:
            ending = run_child(
                self.command,
                request=request_file,
                environment={**self.environment, **launch_environment(directory)},
                listener=listener,
                interruption=self.interruption,
                messages=(reading, writing),
            )
        except UnkillableError as error:
            if probe := under_way(listener, directory):
                raise UnkillableError(f"{own(probe)} hangs: {error}") from error
            raise
        told, others = MemoryTold.read().since(memory_before), listener.allowance.others_share()
        return ending, explain(listener, ending, request, told, others)


def launch_environment(directory: Path) -> dict[str, str]:
    """Where a launch keeps what it writes: all of it in its own directory, so that every launch starts cold.

    Inductor's precompiled headers follow TMPDIR alone.
    """
    known = frameworks.every()
    caches = [each.caches for each in known] + [each.caches for each in platforms.every()]
    places = {
        "HOME": "home",
        "XDG_CACHE_HOME": "cache",
        "TMPDIR": "tmp",
        **{name: place for each in caches for name, place in each.items()},
    }
    for place in places.values():
        (directory / place).mkdir(exist_ok=True)
    return {
        **{name: str(directory / place) for name, place in places.items()},
        **{name: value for framework in known for name, value in framework.environment.items()},
        "PYTHONFAULTHANDLER": "1",  # a launch that hangs or crashes says where
    }
