"""Start one launch of a variant in a fresh process, and return its record.

A probe is work of accelbench's own within a launch: if it fails, the variant has not failed. A warm probe is a second
start of a variant, with the compile caches of its launch.
"""

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from accelbench import frameworks, platforms
from accelbench.api.case import Case
from accelbench.api.result import Phase
from accelbench.launch.facts import PROBES, Facts, Probe
from accelbench.launch.record import LaunchRecord, WarmProbe
from accelbench.machine import memory
from accelbench_runner.protocol import LaunchRequest, NeedsGradients, Purpose
from accelbench_runner.supervisor.allowance import PROBE_SECONDS, Allowance, Limit
from accelbench_runner.supervisor.children import ChildExit, Interruption, UnkillableError, run_child
from accelbench_runner.supervisor.environments import LAUNCH_MODULE, Python
from accelbench_runner.supervisor.listener import Forward, LaunchListener, describe_probe
from accelbench_runner.supervisor.outcome import MemoryEvents, Outcome, interpret, running_probe
from accelbench_runner.supervisor.processors import CpuUse

MAXIMUM_COMPILER_BYTES = 8 * 1024**3
"""Maximum data of a compiler; the largest that was measured took 1.55 GiB, for 256 chips (docs/adr/0043)."""
MINIMUM_COMPILER_BYTES = 1024**3
MAXIMUM_COMPILER_SHARE = 0.8
"""Maximum share of the available memory for a compiler, so that the supervisor survives."""


def compiler_memory_limit() -> int:
    """Return how many bytes a compiler may allocate: a share of the available memory, within fixed bounds."""
    available_bytes = memory.available_bytes()
    if available_bytes is None:
        return MAXIMUM_COMPILER_BYTES
    share_bytes = int(MAXIMUM_COMPILER_SHARE * available_bytes)
    return max(MINIMUM_COMPILER_BYTES, min(MAXIMUM_COMPILER_BYTES, share_bytes))


@dataclass(frozen=True)
class Launcher:
    """Start launches of one case."""

    case: Case
    command: Sequence[str]
    environment: Mapping[str, str]
    """Environment variables of launches, except those of variants in `pythons`."""
    threads: int
    interruption: Interruption
    unseen_seed: int
    """Seed of the unseen inputs, which programs get only after they were timed."""
    probe_seconds: float = PROBE_SECONDS
    purpose: Purpose = "measure"
    memory_bytes: int | None = None
    """Limit of a launch's data; None: no limit."""
    pythons: Mapping[str, Python] = field(default_factory=dict)
    """The Python of each variant that has an environment of its own; the others run `command`."""
    computing_gradients: set[str] = field(default_factory=set)
    """Variants that needed autograd in an earlier launch, although the workload does not declare it."""

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
        purpose: Purpose | None = None,
    ) -> LaunchRecord:
        """Launch `variant` in a new process, and return the record of the launch, even if the variant fails.

        `limit` is the launch's time limit; `case_seconds` is what is left of the case's time limit. `skip` maps each
        probe that the launch must not run to the reason. If the step turns out to compute gradients, the variant is
        launched again with autograd: its first call has to be timed in a process that has made no other call.
        `purpose` is the launcher's own by default.
        """
        request = self._make_request(variant, round_number, directory, tuple(skip), purpose or self.purpose)
        listener = self._make_listener(limit, case_seconds, forward, phase_reached)
        child_exit, outcome = self._run(listener, request)
        if isinstance(listener.final_message, NeedsGradients) and variant not in self.computing_gradients:
            self.computing_gradients.add(variant)
            shutil.rmtree(directory)  # its compile caches must be empty again
            directory.mkdir()
            return self.launch(
                variant,
                round_number=round_number,
                position=position,
                directory=directory,
                limit=limit,
                case_seconds=case_seconds - child_exit.wall_seconds,
                skip=skip,
                forward=forward,
                phase_reached=phase_reached,
                purpose=purpose,
            )
        unchecked = {**skip, **listener.unchecked, **outcome.unchecked}
        return LaunchRecord(
            variant=variant,
            round=round_number,
            position=position,
            wall_seconds=child_exit.wall_seconds,
            phases=tuple(listener.phases),
            blocks=tuple(listener.blocks),
            asides=listener.activity_seconds,
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
        """Start `variant` again with the compile caches in `directory`, and measure the start up to the first step.

        Returns None if a signal or the case's time limit ended the process.
        """
        # The start runs none of accelbench's own probes, and `probe` is the purpose of a warm probe.
        request = self._make_request(variant, round_number, directory, PROBES, "probe")
        listener = self._make_listener(limit, case_seconds, forward, phase_reached)
        child_exit, outcome = self._run(listener, request)
        if outcome.unfinished:
            return None
        return WarmProbe(
            phases=tuple(listener.phases),
            cache=Facts.parse(listener.facts).compile_cache,
            failure=f"{outcome.failure.reason}: {outcome.failure.message}" if outcome.failure else None,
            wall_seconds=child_exit.wall_seconds,
        )

    def _make_request(
        self, variant: str, round_number: int, directory: Path, skip: tuple[Probe, ...], purpose: Purpose
    ) -> LaunchRequest:
        """Return the request for a launch; `_run` fills in the file descriptor for the launch's messages.

        The request leaves out whether the case will be explained, so that no timed launch depends on it.
        """
        measurement = self.case.measurement.model_copy(update={"explain": None})
        return LaunchRequest(
            case=self.case.model_copy(update={"measurement": measurement}),
            variant=variant,
            round=round_number,
            directory=str(directory),
            descriptor=-1,
            threads=self.threads,
            purpose=purpose,
            memory_bytes=self.memory_bytes,
            skip=skip,
            unseen_seed=self.unseen_seed,
            needs_gradients=variant in self.computing_gradients,
        )

    def _make_listener(
        self, limit: Limit, case_seconds: float, forward: Forward, phase_reached: Callable[[Phase], None]
    ) -> LaunchListener:
        """Return the listener that collects the messages of a launch.

        The caller must start the launch right after this call, from which on CPU time of other processes counts.
        `case_seconds` is what is left of the case's time limit.
        """
        before = CpuUse.read()
        allowance = Allowance(
            launch_limit=limit,
            case_seconds=case_seconds,
            probe_limit_seconds=self.probe_seconds,
            others_share=lambda: CpuUse.read().others_share_since(before),
        )
        return LaunchListener(forward=forward, phase_reached=phase_reached, allowance=allowance)

    def _run(self, listener: LaunchListener, request: LaunchRequest) -> tuple[ChildExit, Outcome]:
        """Run the process of a launch to its end; return how the process ended, and the outcome of the launch.

        Raises UnkillableError if the process cannot be killed.
        """
        read_end, write_end = os.pipe()
        directory = Path(request.directory)
        request_file = directory / "request.json"
        request_file.write_text(request.model_copy(update={"descriptor": write_end}).to_json())
        python = self.pythons.get(request.variant)
        memory_before = MemoryEvents.read()
        try:
            child_exit = run_child(
                python.command(LAUNCH_MODULE) if python else self.command,
                request=request_file,
                environment={
                    **(python.variables if python else self.environment),
                    **launch_environment(directory),
                    **(profiling_environment() if request.purpose == "explain" else {}),
                },
                listener=listener,
                interruption=self.interruption,
                messages=(read_end, write_end),
            )
        except UnkillableError as error:
            probe = running_probe(listener, directory)
            if probe is None:
                raise
            # Name the probe of accelbench's own in which the process hangs.
            raise UnkillableError(f"{describe_probe(probe)} hangs: {error}") from error
        memory_events = MemoryEvents.read().since(memory_before)
        others_share = listener.allowance.others_share()
        return child_exit, interpret(listener, child_exit, request, memory_events, others_share)


def profiling_environment() -> dict[str, str]:
    """Return the environment variables with which frameworks let their profilers see more, or print less."""
    variables: dict[str, str] = {}
    for framework in frameworks.every():
        variables |= framework.profiling
    return variables


def launch_environment(directory: Path) -> dict[str, str]:
    """Create the folders of a launch in `directory`, and return the environment variables that name them.

    In new folders all caches are cold; a start with warm caches uses the folders of an earlier launch again.
    """
    folders = {"HOME": "home", "XDG_CACHE_HOME": "cache", "TMPDIR": "tmp"}  # Inductor caches headers below TMPDIR
    settings: dict[str, str] = {}
    for framework in frameworks.every():
        folders |= framework.caches
        settings |= framework.environment
    for platform in platforms.every():
        folders |= platform.caches
    for folder in folders.values():
        (directory / folder).mkdir(exist_ok=True)
    return {
        **{name: str(directory / folder) for name, folder in folders.items()},
        **settings,
        "PYTHONFAULTHANDLER": "1",  # writes the stacks of a launch that hangs or crashes
    }
