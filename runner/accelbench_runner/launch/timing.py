"""Run the timed phases, and report what happened to the machine and the device during them."""

import statistics
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from itertools import zip_longest
from typing import Any, TypeVar

from accelbench.document import shorten
from accelbench.launch.facts import ClockQuality, HostOverDevice, Lateness
from accelbench.stats.summary import has_tail, quantile
from accelbench.workload import Program
from accelbench_runner.clock import ClockDrift, reading_seconds, resolution
from accelbench_runner.devices import cpu
from accelbench_runner.devices.monitor import Watch
from accelbench_runner.frameworks.adapter import Adapter, RecompiledError, inputs_of_calls
from accelbench_runner.frameworks.work import Work
from accelbench_runner.launch import blocks, dependence, open_loop
from accelbench_runner.launch.reporter import MAXIMUM_MESSAGE_CHARACTERS, read_fact
from accelbench_runner.launch.synchronisation import LONG_ROUNDS, LateWork
from accelbench_runner.launch.task import Task
from accelbench_runner.protocol import BlockTimed

Inspect = Callable[[Any], None]
"""Receives the last call's result of a block once the clock has stopped."""
Measured = TypeVar("Measured")
MAXIMUM_CAUSES = 20
"""Maximum number of causes of recompilations that are reported."""


class Timing:
    """Time a launch by its protocol."""

    def __init__(self, task: Task, adapter: Adapter, bytes_before_setup: int) -> None:
        """Prepare to time a launch.

        `bytes_before_setup` is the process's memory before setup; it is subtracted from the host's peak memory.
        """
        self._task, self._adapter, self._clock, self._reporter = task, adapter, task.clock, task.reporter
        self._bytes_before_setup = bytes_before_setup
        self._watch = Watch(task.monitor, task.clock, task.machine.processors)
        self._causes: list[str] = []
        """Why blocks that were then measured again would have compiled."""

    def measure_blocks(self, program: Program, work: Work) -> tuple[int, dependence.ExtraBlock | None]:
        """Time blocks of many calls (protocol `steady`) or single calls (`latency`, `arrivals`), and report them.

        Returns the number of calls in a block. In the first rounds it also returns an extra block, which is compared
        with calls that are not timed; None in later rounds.
        """
        task, adapter = self._task, self._adapter
        if has_tail(task.measure.protocol):
            block_plan = blocks.LATENCY
            with self._reporter.phase("warm-up"):
                # With a longest run of 0 s, every run is a single call, as the blocks to come are.
                seconds_per_call = blocks.warm_up(work, self._clock, longest_run=0.0)
        else:
            seconds_per_call, block_plan = self._plan_steady(work)

        def measure(planned: blocks.BlockPlan, inspect: Inspect) -> blocks.MeasuredBlocks:
            """Time the planned blocks."""
            return self._without_compiling(lambda: blocks.measure_as_planned(work, planned, self._clock, inspect))

        arrivals = task.arrival_times()
        if arrivals:
            calls = 1
            self._serve(work, arrivals)
        else:
            measured_blocks = self._time_and_report(partial(measure, block_plan))
            calls = measured_blocks.units // work.units  # not as in `block_plan` if that was voided
        if not task.counts_calls:
            return calls, None
        with self._reporter.outside_phases("dependence"):

            def make_block(block_calls: int, inspect: Inspect) -> object:
                """Make one block of `block_calls` calls with the functions that make the timed blocks."""
                if arrivals:  # let all requests arrive at once
                    return open_loop.serve(work, [0.0] * block_calls, self._clock, inspect)
                return measure(blocks.BlockPlan(calls=block_calls, blocks=1), inspect)

            unseen_seed = task.request.unseen_seed
            extra_block = dependence.make_extra_block(
                adapter, program, work, make_block, calls, seconds_per_call, unseen_seed
            )
            return calls, extra_block

    def _without_compiling(self, measure: Callable[[], Measured]) -> Measured:
        """Return the result of `measure`; if the framework compiles during the call, measure all again."""
        try:
            with self._adapter.forbid_compiling():
                return measure()
        except RecompiledError as error:
            # Measure again and allow compiling: the check `recompiled` then fails, and the times include its cost.
            self._causes.append(str(error))
            return measure()

    def _serve(self, work: Work, arrivals: Sequence[float]) -> None:
        """Serve a request at each of the times `arrivals`, in seconds after the start, and report the requests."""
        requests: tuple[open_loop.Request, ...] = ()

        def measure(inspect: Inspect) -> blocks.MeasuredBlocks:
            """Serve the requests, and store them in `requests` of the enclosing function."""
            nonlocal requests
            requests = self._without_compiling(lambda: open_loop.serve(work, arrivals, self._clock, inspect))
            return blocks.MeasuredBlocks(
                units=1,
                seconds=tuple(request.service_seconds for request in requests),
                response_seconds=tuple(request.response_seconds for request in requests),
            )

        self._time_and_report(measure)
        late_seconds = [request.late_seconds for request in requests]
        self._reporter.send_facts(
            lateness=Lateness(median_seconds=quantile(late_seconds, 50), p99_seconds=quantile(late_seconds, 99))
        )

    def _plan_steady(self, work: Work) -> tuple[float, blocks.BlockPlan]:
        """Warm up for the protocol `steady`; return the seconds per call, and a plan of the blocks to time.

        The plan allows for late work, which continues after a block's clock has stopped.
        """
        with self._reporter.phase("warm-up"):
            seconds_per_call = blocks.warm_up(work, self._clock)
            overhead = blocks.overhead_seconds(work, self._clock)
        block_plan = blocks.plan(seconds_per_call, overhead)
        if block_plan.calls >= blocks.ENOUGH_CALLS:
            return seconds_per_call, block_plan
        # In a block of few calls, the work that its last call leaves unfinished matters: measure it, and plan again,
        # with longer blocks if necessary (docs/method/block-length.md).
        with self._reporter.outside_phases("synchronisation"):
            measured = self._late_work.measure(work, calls=block_plan.calls, with_long_run=False, maximum_runs=1)
        cpu.restart_peak()  # leaves the memory of these runs out of the program's peak
        # The first run is as long as a block; there is a longer one only if `with_long_run`.
        late_seconds = measured.runs[0].late_seconds if measured else 0.0
        return seconds_per_call, blocks.plan(seconds_per_call, overhead, late_seconds)

    def measure_episode(self, program: Program, work: Work) -> tuple[Any, Any, int]:
        """Time one pass over the batches (protocol `episode`).

        Returns the final state, the last call's `out`, and the number of units of work.
        """
        batches = inputs_of_calls(program, work)
        state: Any = None
        out: Any = None

        def measure(inspect: Inspect) -> blocks.MeasuredBlocks:
            """Time the pass, and store its final state and the last call's `out` in the enclosing function."""
            nonlocal state, out
            measured_blocks, (state, out) = blocks.episode(work, batches, self._clock)
            inspect((state, out))
            return measured_blocks

        with self._reporter.outside_phases("synchronisation"):
            late_work = self._late_work  # created here, because that may compile: outside the timed phase
        seconds_of_last_call = self._time_and_report(measure).seconds[-1]
        with self._reporter.outside_phases("synchronisation"):
            synchronisation = late_work.measure_after((state, out), seconds_of_last_call)
        self._reporter.send_facts(synchronisation=synchronisation, compile_cache=self._adapter.accounting.compile_cache)
        return state, out, work.units * len(batches)

    def measure_late_work(self, work: Work, calls: int) -> None:
        """Report for how long work continues after a block of `calls` calls, when the block's clock has stopped."""
        with self._reporter.outside_phases("synchronisation"):
            in_first_rounds = self._task.request.round <= LONG_ROUNDS
            synchronisation = self._late_work.measure(work, calls=calls, with_long_run=in_first_rounds)
        self._reporter.send_facts(synchronisation=synchronisation)

    @cached_property
    def _late_work(self) -> LateWork:
        """Return the object that measures work which continues after a clock has stopped; create it on first use."""
        probe = partial(self._reporter.run_probe, "synchronisation")
        return LateWork(self._adapter, self._clock, self._task.machine.processors.other_threads_seconds, probe)

    def _time_and_report(self, measure: Callable[[Inspect], blocks.MeasuredBlocks]) -> blocks.MeasuredBlocks:
        """Time blocks by calling `measure`; report the blocks, and the state of the machine and the device during them.

        `measure` has to call its argument with the last result of each block, when the block's clock has stopped.
        """
        adapter, monitor = self._adapter, self._task.monitor
        devices: list[object] = []
        clock_resolution, clock_reading_seconds = resolution(self._clock), reading_seconds(self._clock)
        drift = ClockDrift(self._clock)
        compilations_before = adapter.accounting.compilations()
        ratios_before = len(adapter.accounting.host_to_device_ratios())

        def inspect(result: Any) -> None:
            """Read between two blocks on which device the block's result is, and sample the device's clocks."""
            devices.append(read_fact(lambda: adapter.device(result)))
            if monitor.watches_blocks:
                self._reporter.run_probe_between_blocks("watch", monitor.sample)

        self._reporter.run_probe("watch", self._watch.begin)
        with self._reporter.phase("steady") as parts:
            measured_blocks = measure(inspect)
            # The parts of this phase are the seconds that compiling took during the blocks.
            parts.update(adapter.accounting.compilations().seconds_since(compilations_before))
        machine_facts = self._reporter.run_probe("watch", self._watch.end)
        host_peak_bytes = max(0, cpu.peak_bytes() - self._bytes_before_setup)
        ratios = adapter.accounting.host_to_device_ratios()[ratios_before:]  # only those of these blocks
        self._report_blocks(measured_blocks)
        causes = self._causes + adapter.accounting.compilations().causes[len(compilations_before.causes) :]
        if machine_facts:
            self._reporter.send_facts(**machine_facts)
        clock_drift = drift.read()
        # A fact is a function if computing or validating it may raise: then it is sent as unreadable.
        self._reporter.send_facts(
            device=devices[-1],  # that of the last block
            recompilations=len(causes),
            recompilation_causes=[shorten(cause, MAXIMUM_MESSAGE_CHARACTERS) for cause in causes[:MAXIMUM_CAUSES]],
            peak_memory_bytes=partial(self._peak_bytes, host_peak_bytes),
            reserved_memory_bytes=lambda: adapter.accounting.reserved_memory_bytes() or None,
            host_over_device=partial(_summarise_ratios, ratios),
            clock=partial(
                ClockQuality,
                resolution_seconds=clock_resolution,
                reading_seconds=clock_reading_seconds,
                drift=clock_drift,
            ),
            replanned=measured_blocks.voided_plans,
        )
        return measured_blocks

    def _report_blocks(self, measured_blocks: blocks.MeasuredBlocks) -> None:
        """Report each block; with the protocol `arrivals`, each request with its response time."""
        # Without that protocol there are no response times, and `zip_longest` gives None for each.
        for block_seconds, response in zip_longest(measured_blocks.seconds, measured_blocks.response_seconds):
            self._reporter.send(
                BlockTimed(units=measured_blocks.units, seconds=block_seconds, response_seconds=response)
            )

    def _peak_bytes(self, host_peak_bytes: int) -> int | None:
        """Return the framework's peak of device memory or, on a CPU, the host's peak; None if it is unknown."""
        peak = self._adapter.accounting.peak_memory_bytes()
        if peak is None:
            peak = self._task.monitor.peak_bytes(host_peak_bytes)
        return peak or None  # a peak of 0 means that it was not measured


def _summarise_ratios(ratios: Sequence[float]) -> HostOverDevice | None:
    """Return the least and the median of the blocks' host seconds over device seconds; None without ratios."""
    return HostOverDevice(least=min(ratios), median=statistics.median(ratios)) if ratios else None
