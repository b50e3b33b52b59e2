"""Run one launch: measure one variant of one case in this process, and report to the supervisor.

The stages in order: import the framework, initialise the device, set up the workload, compile and make the first call,
compute the outputs for parity, warm up, measure, and run the program on unseen inputs. A warm probe ends after the
first call; a check times nothing.

Unseen inputs are those that the program gets only after it was timed. An extra block is one more block, made by the
same functions as the timed ones, whose operations are counted and whose outputs are compared with those of untimed
calls. `out` is what a step returns besides the new state.
"""

import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from accelbench.catalogue import workload_checks
from accelbench.launch.fact import value_or_none
from accelbench.launch.facts import (
    MAXIMUM_OUTPUTS,
    DeclaredOperations,
    FormulaRun,
    Gradients,
    Meddling,
    OperationCounts,
    Threads,
)
from accelbench.workload import Program
from accelbench_runner.devices import cpu
from accelbench_runner.frameworks.adapter import Adapter, export_numbers
from accelbench_runner.frameworks.work import Work
from accelbench_runner.launch import blocks, dependence, formula, limits, meddling, observe, profiling
from accelbench_runner.launch.compilation import Compilation
from accelbench_runner.launch.preparation import (
    import_framework,
    imported_packages,
    make_first_call,
    set_up,
    versions_of,
)
from accelbench_runner.launch.reporter import Reporter, describe_failure, ensure_formattable, read_fact
from accelbench_runner.launch.task import Machine, Task
from accelbench_runner.launch.timing import Inspect, Timing
from accelbench_runner.outputs import save, type_name
from accelbench_runner.protocol import PROBE_FILE, Done, LaunchRequest, Measured, NeedsGradients

OUTPUTS = "outputs.npz"
MINIMUM_PARITY_UNITS = 2
"""Minimum units after which outputs are compared: after one unit, a step that ignores its state is still right."""


def run_launch(request: LaunchRequest, machine: Machine) -> int:
    """Run a launch, report its result to the supervisor, and return the exit status of this process."""
    probe_file = Path(request.directory) / PROBE_FILE
    reporter = Reporter(request.descriptor, machine.clock, probe_file=probe_file, skip=request.skip)
    launch: Launch | Compilation | None = None
    try:
        if request.purpose == "compile":
            launch = Compilation(request, reporter, machine)
        else:
            launch = Launch(request, reporter, machine)
        launch.run()
    except KeyboardInterrupt:  # a signal from outside of this process, so the variant has not failed
        raise
    except BaseException as raised:  # noqa: BLE001 - any exception of the variant is its result
        error = ensure_formattable(raised)
        adapter = launch.adapter if launch else None
        if adapter is not None and adapter.needs_gradients(error):
            reporter.send(NeedsGradients())  # the supervisor launches the variant again, with gradients
            return 0
        reporter.send(describe_failure(error, adapter))
        return 1
    reporter.send(Done())
    return 0


class Launch:
    """Run the stages of a launch."""

    adapter: Adapter | None = None
    _import_seconds = 0.0
    """Seconds to import the compiler."""
    _counts: Mapping[str, Any] = MappingProxyType({})
    """Operations of calls on the inputs that the program was built from, as fields of `Dependence`.

    Empty for an episode.
    """
    _bytes_before_setup = 0
    """Resident memory of the process before setup, without mapped files."""

    def __init__(self, request: LaunchRequest, reporter: Reporter, machine: Machine) -> None:
        """Load the task and prepare the device's monitor."""
        # The workload's file may replace functions of accelbench, or change environment variables that frameworks read.
        self._functions = meddling.imported_functions()
        flags_before = meddling.flags()
        self._task = Task.load(request, reporter, machine)  # executes the workload's file
        self._changed_flags = meddling.changed_flags(flags_before)
        self._reporter = reporter
        reporter.run_probe("watch", self._task.monitor.prepare)

    def run(self) -> None:
        """Import and initialise the framework, then measure by the workload's protocol.

        A launch for another purpose ends after its first call (`probe`), or profiles calls (`explain`).
        """
        task = self._task
        adapter, self._import_seconds = import_framework(task)
        self.adapter = adapter
        with self._reporter.phase("device-init"):
            adapter.initialise()
        settings = self._reporter.run_probe("watch", lambda: task.monitor.identify(adapter.accounting.device_id()))
        self._reporter.send_facts(
            protocol=task.measure.protocol,
            versions=lambda: versions_of(adapter, task.libraries),
            device_settings=dict(settings) if settings else None,
            emulated=adapter.accounting.describe_emulation,
        )
        if task.request.purpose == "probe":
            _, work = set_up(task, adapter)
            make_first_call(task, adapter, work, self._import_seconds)
            self._reporter.send_facts(compile_cache=adapter.accounting.compile_cache)
            return
        if task.request.purpose == "explain":
            self._explain(adapter)
        elif task.measure.protocol == "observe":
            self._observe(adapter)
        else:
            self._measure_steps(adapter)

    def _explain(self, adapter: Adapter) -> None:
        """Make calls under the framework's profiler, and report which operations take most of their time."""
        task = self._task
        _, work = set_up(task, adapter)
        make_first_call(task, adapter, work, self._import_seconds)
        with self._reporter.outside_phases("explain"):
            self._reporter.send_facts(
                profiled_calls=lambda: profiling.profile_calls(adapter.profiler, work, task.directory, task.clock)
            )
        self._reporter.send(Measured())

    def _observe(self, adapter: Adapter) -> None:
        """Make the calls of the protocol `observe`, which times nothing, and report the facts about them."""
        program, work = set_up(self._task, adapter)
        with self._reporter.phase("steady"):
            facts = observe.observe(adapter, program, work, self._task.workload.observes)
        self._reporter.send_facts(**facts)
        self._report_measured(adapter)

    def _report_measured(self, adapter: Adapter) -> None:
        """Report the last facts that a verdict needs, and then that everything is measured.

        After this, a probe that crashes the process does not undo the measurement.
        """
        self._reporter.send_facts(
            imported=lambda: imported_packages(self._task),
            precision=adapter.precision,
            gradients=lambda: Gradients(
                wanted=self._task.measure.differentiates,
                actual=adapter.gradients(),
                needed=self._task.request.needs_gradients,
            ),
            meddling=Meddling(flags=self._changed_flags, functions=meddling.replaced_functions(self._functions)),
            threads=lambda: Threads(
                requested=self._task.request.threads,
                affinity=len(os.sched_getaffinity(0)),
                framework=adapter.accounting.threads(),
            ),
        )
        self._reporter.send(Measured())

    def _measure_steps(self, adapter: Adapter) -> None:
        """Measure by any protocol but `observe`: compute the outputs, and time calls unless the launch is a check.

        The first rounds also try unseen inputs, measure the device's limits, and run the program in float64.
        """
        task = self._task
        self._bytes_before_setup = cpu.resident_bytes()
        cpu.restart_peak()
        program, work = set_up(task, adapter)
        timing = Timing(task, adapter, self._bytes_before_setup)
        if task.measure.protocol == "episode":
            state, out, units = timing.measure_episode(program, work)
            with self._reporter.outside_phases("parity"):
                self._write_outputs(adapter, program, state, work.last_out(out), units)
            del state, out  # frees their memory
            self._report_measured(adapter)
        else:
            self._compute_outputs(adapter, program, work)
            self._count_operations(adapter, work)
            cpu.restart_peak()  # leave the compiler's memory out of the program's peak
            if task.timed:
                extra = self._time_blocks(adapter, program, work, timing)
            else:
                with blocks.garbage_collection_paused():
                    extra = self._make_extra_block(adapter, program, work)
                self._report_measured(adapter)
            self._count_calls(adapter, program, work, extra)
        if task.counts_calls:  # the first rounds, which also try unseen inputs
            step, export = program.step, program.export
            work = dependence.without_inputs(work)
            del program  # frees its inputs before others are made
            self._try_unseen_inputs(adapter, step, export, work)
        if task.timed and task.request.round <= limits.ROUNDS:
            self._measure_limits(adapter)
        if task.request.round <= formula.ROUNDS and task.request.case.measurement.precision != "float64":
            self._run_in_float64(adapter)

    def _time_blocks(
        self, adapter: Adapter, program: Program, work: Work, timing: Timing
    ) -> dependence.ExtraBlock | None:
        """Time blocks, and measure the work that continues after a block.

        In the first rounds, return one more block, which is later compared with untimed calls; None in later rounds.
        """
        # The protocol `latency` leaves garbage collection to Python, as in production.
        is_steady = self._task.measure.protocol == "steady"
        with blocks.garbage_collection_paused() if is_steady else nullcontext():
            calls, extra = timing.measure_blocks(program, work)
            self._report_measured(adapter)
            timing.measure_late_work(work, calls)
        return extra

    def _measure_limits(self, adapter: Adapter) -> None:
        """Measure the highest FLOP/s and bytes/s that the device reaches, and report them."""
        task = self._task
        measure = partial(
            limits.measure_undisturbed,
            adapter,
            platform=task.platform,
            monitor=task.monitor,
            clock=task.clock,
            processors=task.machine.processors,
        )
        measured_limits = self._reporter.run_probe("limits", measure)
        self._reporter.send_facts(limits=measured_limits)

    def _run_in_float64(self, adapter: Adapter) -> None:
        """Run the variant's program once in float64, where rounding is too small to hide a wrong formula; report it."""
        task = self._task
        float64_program = formula.Formula(
            workload=task.workload,
            parameters=task.parameters,
            kind=task.kind,
            seed=task.request.case.measurement.seed,
            units=max(MINIMUM_PARITY_UNITS, task.measure.parity_units),
            directory=task.directory,
        )

        def run() -> FormulaRun:
            """Run the program in float64, or return the reason why that is not possible."""
            if reason := task.platform.lacks.get("float64"):
                return FormulaRun(unable=f"float64 is {reason}")
            adapter.restore_captured()  # earlier calls may have changed what the program captures
            adapter_for_float64 = adapter.in_float64()
            if adapter_for_float64 is None:
                return FormulaRun(unable="the framework's adapter has no float64")
            return float64_program.run(adapter_for_float64)

        self._reporter.send_facts(formula=self._reporter.run_probe("formula", run))

    def _compute_outputs(self, adapter: Adapter, program: Program, work: Work) -> None:
        """Make calls until there are enough units of work for the parity check, and write the last call's outputs."""
        state, out = make_first_call(self._task, adapter, work, self._import_seconds)
        self._reporter.send_facts(
            compile_cache=adapter.accounting.compile_cache,
            compile_peak_memory_bytes=lambda: max(0, cpu.peak_bytes() - self._bytes_before_setup),
        )
        with self._reporter.outside_phases("parity"):
            units = work.units
            while units < max(MINIMUM_PARITY_UNITS, self._task.measure.parity_units):
                state, out = work.call(state, work.batches)
                units += work.units
            self._write_outputs(adapter, program, state, work.last_out(out), units)

    def _write_outputs(self, adapter: Adapter, program: Program, state: Any, out: Any, units: int) -> None:
        """Write the outputs that the program exports from the state and the last `out`, for the judge to compare.

        Report their types and shapes, and which captured arrays have changed. `units` is the number of units of work
        after which the outputs were computed.
        """
        exported = workload_checks.call_export(program, state, out)
        outputs = export_numbers(adapter, program.export, exported)
        save(self._task.directory / OUTPUTS, outputs)
        names = list(outputs)[:MAXIMUM_OUTPUTS]
        self._reporter.send_facts(
            parity_units=units,
            output_types=lambda: {name: type_name(exported[name]) for name in names},
            output_shapes=lambda: {name: list(outputs[name].shape) for name in names},
            changed=lambda: adapter.changed_captured()[:MAXIMUM_OUTPUTS],
        )

    def _count_operations(self, adapter: Adapter, work: Work) -> None:
        """Report the executable's size and, if the workload declares operations, these and the framework's count."""
        declared = workload_checks.operations(self._task.workload, self._task.parameters)
        with self._reporter.outside_phases("operations"):
            self._reporter.send_facts(executable=adapter.accounting.executable_size)
            counted = value_or_none(read_fact(lambda: adapter.accounting.operations(work))) if declared else None
        if declared is None:
            return  # there is nothing to compare the counted operations with
        self._reporter.send_facts(
            operations=DeclaredOperations(
                declared=OperationCounts(**asdict(declared * work.units)),
                counted=OperationCounts(**asdict(counted.operations)) if counted else None,
                source=counted.source if counted else None,
            )
        )

    def _make_extra_block(self, adapter: Adapter, program: Program, work: Work) -> dependence.ExtraBlock:
        """Make the extra block of a launch that times no blocks, such as a check.

        The block's operations and outputs are later compared with those of plain calls, as after timed blocks.
        """
        with self._reporter.outside_phases("dependence"):

            def block(calls: int, inspect: Inspect) -> float:
                """Make one block of `calls` calls; return its seconds."""
                return blocks.time_calls(work, calls, self._task.clock, inspect)

            # The program may be compiled again in one of its first calls, so the time of this block is not used, and a
            # second block gives the seconds of a call.
            block(1, blocks.ignore_result)
            seconds_per_call = block(1, blocks.ignore_result)
            unseen_seed = self._task.request.unseen_seed
            return dependence.make_extra_block(
                adapter, program, work, block, dependence.MAXIMUM_CALLS, seconds_per_call, unseen_seed
            )

    def _count_calls(self, adapter: Adapter, program: Program, work: Work, extra: dependence.ExtraBlock | None) -> None:
        """Compare the outputs of the extra block with those of untimed calls, and report the operations of a call.

        Counting takes memory and time, so it runs after the timed blocks.
        """
        if extra is None:
            return  # operations are counted in the first rounds only
        with self._reporter.outside_phases("operations"):
            self._counts = dependence.replay_block(adapter, program, work, extra)
            with adapter.autograd_required():
                self._reporter.send_facts(arithmetic=lambda: adapter.accounting.arithmetic(work))

    def _try_unseen_inputs(
        self,
        adapter: Adapter,
        step: Callable[..., Any],
        export: Callable[[Any, Any], Mapping[str, Any]],
        work: Work,
    ) -> None:
        """Run the timed program on inputs that it was not built from; report how its outputs depend on its inputs."""
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
        with self._reporter.outside_phases("dependence"):
            result = dependence.examine(adapter, subject, task.request.unseen_seed, task.directory, task.clock)
        # `_counts` holds the fields of `Dependence` that `_count_calls` has found.
        self._reporter.send_facts(dependence=result.model_copy(update=self._counts))
