"""One launch: a fresh process that runs one variant of one case, and tells the supervisor what it took.

`python -m accelbench_runner.launch` reads a `LaunchRequest` from standard input. In order: import the framework, wake
the device, set up the workload, compile and make the first call, compute what parity is judged by, warm up, measure. At
the end the program is given inputs that it has not seen. A warm probe ends after the first call; a check times nothing.
"""

import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import Any

from accelbench.catalogue import workload_checks
from accelbench.launch.fact import NOT_REPORTED
from accelbench.launch.facts import DeclaredOperations, Facts, Gradients, Meddling, OperationCounts, Threads
from accelbench.workload import Program
from accelbench_runner.devices import cpu
from accelbench_runner.frameworks.adapter import Adapter
from accelbench_runner.frameworks.work import Work
from accelbench_runner.launch import blocks, dependence, limits, meddling, observe
from accelbench_runner.launch.compilation import Compilation
from accelbench_runner.launch.failure import failure
from accelbench_runner.launch.machine import Machine
from accelbench_runner.launch.preparation import import_framework, make_first_call, set_up
from accelbench_runner.launch.reporter import Reporter
from accelbench_runner.launch.task import Task
from accelbench_runner.launch.timing import Inspect, Timing
from accelbench_runner.launch.versions import versions_of
from accelbench_runner.outputs import save
from accelbench_runner.protocol import UNDER_WAY, Done, LaunchRequest, Measured

OUTPUTS = "outputs.npz"
LEAST_PARITY_UNITS = 2
"""The second works on what the first returned: a step that ignores its state is right once."""


def carry_out(request: LaunchRequest, machine: Machine) -> int:
    """One launch on a machine, told over the request's descriptor; returns the exit status."""
    mark = Path(request.directory) / UNDER_WAY
    reporter = Reporter(request.descriptor, machine.clock, mark=mark, skip=request.skip)
    launch: Launch | Compilation | None = None
    try:
        launch = (Compilation if request.purpose == "compile" else Launch)(request, reporter, machine)
        launch.run()
    except workload_checks.RAISED as error:  # whatever the variant raises is its result
        reporter.say(failure(error, launch.adapter if launch else None))
        return 1
    reporter.say(Done())
    return 0


class Launch:
    """The stages of a launch, and what one hands to the next."""

    adapter: Adapter | None = None
    _imported_seconds = 0.0
    """What importing the compiler took."""
    _seen: Mapping[str, Any] = MappingProxyType({})
    """What was counted of calls on the inputs that the program was built from; of an episode nothing."""
    _held_bytes = 0
    """By the process before setup."""

    def __init__(self, request: LaunchRequest, reporter: Reporter, machine: Machine) -> None:
        self._functions, flags = meddling.functions(), meddling.flags()
        self._task = Task.of(request, reporter, machine)
        self._flags = meddling.changed(flags)
        self._reporter = reporter
        reporter.probe("watch", self._task.monitor.arrive)

    def run(self) -> None:
        """Everything, in order; raises what the variant raises."""
        task = self._task
        adapter, self._imported_seconds = import_framework(task)
        self.adapter = adapter
        with self._reporter.phase("device-init"):
            adapter.initialise()
        device = adapter.accounting.device_id()
        settings = self._reporter.probe("watch", lambda: task.monitor.awake(device))
        self._reporter.facts(
            Facts(
                protocol=task.measure.protocol,
                versions=versions_of(adapter, task.libraries),
                device_settings=dict(settings) if settings else NOT_REPORTED,
                emulated=adapter.accounting.emulated(),
            )
        )
        if task.request.purpose == "probe":
            self._first_call(adapter, set_up(task, adapter)[1])
            self._reporter.facts(Facts(compile_cache=adapter.accounting.compile_cache() or NOT_REPORTED))
            return
        if task.measure.protocol == "observe":
            self._observe(adapter)
        else:
            self._measure_steps(adapter)

    def _observe(self, adapter: Adapter) -> None:
        """`observe`: what every call did; nothing is timed, and no speedup will be said of it."""
        program, work = set_up(self._task, adapter)
        with self._reporter.phase("steady"):
            found = observe.observe(adapter, program, work, self._task.workload.observes)
        self._reporter.facts(found)
        self._measured(adapter)

    def _measured(self, adapter: Adapter) -> None:
        """The last of what a verdict needs; what comes after it may fail, and the measurement stands."""
        self._reporter.facts(
            Facts(
                precision=adapter.precision(),
                gradients=Gradients(wanted=self._task.measure.differentiates, found=adapter.gradients()),
                meddling=Meddling(flags=self._flags, functions=meddling.replaced(self._functions)),
                threads=Threads(
                    requested=self._task.request.threads,
                    affinity=len(os.sched_getaffinity(0)),
                    framework=adapter.accounting.threads(),
                ),
            )
        )
        self._reporter.say(Measured())

    def _measure_steps(self, adapter: Adapter) -> None:
        """The other protocols: parity's outputs, then times; then what the device can do at most."""
        task = self._task
        self._held_bytes = cpu.held_bytes()
        cpu.restart_peak()
        program, work = set_up(task, adapter)
        timing = Timing(task, adapter, self._held_bytes)
        protocol = task.measure.protocol
        if protocol == "episode":
            state, out, units = timing.measure_episode(program, work)
            with self._reporter.aside("parity"):
                self._write_outputs(adapter, program, state, out, units)
            del state, out
            self._measured(adapter)
        else:
            self._compute_outputs(adapter, program, work)
            self._count_operations(adapter, work)
            cpu.restart_peak()
            if task.timed:
                with blocks.garbage_kept() if protocol == "steady" else nullcontext():
                    calls, seen = timing.measure_blocks(program, work)
                    self._measured(adapter)
                    timing.watch_for_late_work(work, calls)
            else:
                with blocks.garbage_kept():
                    seen = self._make_checked_blocks(adapter, program, work)
                self._measured(adapter)
            self._count_calls(adapter, program, work, seen)
        if task.counts_calls:
            functions, work = (program.step, program.export), dependence.forget_inputs(work)
            del program  # two sets of inputs need not fit beside each other
            self._try_unseen_inputs(adapter, *functions, work)
        if task.timed and task.request.round <= limits.ROUNDS:
            asked = adapter, task.platform, task.monitor, task.clock, task.machine.processors
            reached = self._reporter.probe("limits", lambda: limits.measure_undisturbed(*asked))
            self._reporter.facts(Facts(limits=reached or NOT_REPORTED))

    def _first_call(self, adapter: Adapter, work: Work) -> tuple[Any, Any]:
        return make_first_call(self._task, adapter, work, self._imported_seconds)

    def _compute_outputs(self, adapter: Adapter, program: Program, work: Work) -> None:
        """The first call and as many more as parity needs, from a fresh state; writes what is compared."""
        state, out = self._first_call(adapter, work)
        self._reporter.facts(
            Facts(
                compile_cache=adapter.accounting.compile_cache() or NOT_REPORTED,
                compile_peak_memory_bytes=max(0, cpu.peak_bytes() - self._held_bytes),
            )
        )
        with self._reporter.aside("parity"):
            units = work.units
            while units < max(LEAST_PARITY_UNITS, self._task.measure.parity_units):
                state, out = work.call(state, work.batches)
                units += work.units
            self._write_outputs(adapter, program, state, out, units)

    def _write_outputs(self, adapter: Adapter, program: Program, state: Any, out: Any, units: int) -> None:
        outputs = adapter.to_numpy(workload_checks.exported(program, state, adapter.last(out)))
        save(self._task.directory / OUTPUTS, outputs)
        self._reporter.facts(Facts(parity_units=units))

    def _count_operations(self, adapter: Adapter, work: Work) -> None:
        """What was compiled; and what one call does, against what the workload declares, where it declares any."""
        declared = self._task.workload.operations(self._task.parameters)
        with self._reporter.aside("operations"):
            self._reporter.facts(Facts(executable=adapter.accounting.executable_size() or NOT_REPORTED))
            counted = adapter.accounting.operations(work) if declared else None
        if declared is None:
            return
        self._reporter.facts(
            Facts(
                operations=DeclaredOperations(
                    declared=OperationCounts(**asdict(declared * work.units)),
                    found=OperationCounts(**asdict(counted.operations)) if counted else None,
                    source=counted.source if counted else None,
                )
            )
        )

    def _make_checked_blocks(self, adapter: Adapter, program: Program, work: Work) -> dependence.Witness:
        """What one more block did, where nothing is timed."""
        with self._reporter.aside("dependence"):

            def block(calls: int, inspect: Inspect) -> float:
                return blocks.time_calls(work, calls, self._task.clock, inspect)

            block(1, lambda _: None)  # the second call may be compiled anew
            seconds, calls = block(1, lambda _: None), dependence.MOST
            return dependence.witness(adapter, program, work, block, calls, seconds, self._task.request.unseen_seed)

    def _count_calls(self, adapter: Adapter, program: Program, work: Work, seen: dependence.Witness | None) -> None:
        """What a call does that nobody times; after the blocks, for counters take memory and time."""
        if seen is None:
            return
        with self._reporter.aside("operations"):
            self._seen = dependence.retold(adapter, program, work, seen)
            self._reporter.facts(Facts(arithmetic=adapter.accounting.arithmetic(work)))

    def _try_unseen_inputs(
        self,
        adapter: Adapter,
        step: Callable[..., Any],
        export: Callable[[Any, Any], Mapping[str, Any]],
        work: Work,
    ) -> None:
        task = self._task
        subject = dependence.Subject(
            workload=task.workload,
            parameters=task.parameters,
            kind=task.kind,
            seed=task.request.case.measurement.seed,
            step=step,
            export=export,
            work=work,
        )
        with self._reporter.aside("dependence"):
            found = dependence.examine(adapter, subject, task.request.unseen_seed, task.directory, task.clock)
        self._reporter.facts(Facts(dependence=found.model_copy(update=self._seen)))
