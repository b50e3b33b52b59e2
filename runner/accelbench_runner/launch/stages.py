"""One launch: a fresh process that runs one variant of one case, and tells the supervisor what it took.

`python -m accelbench_runner.launch` reads a `LaunchRequest` from standard input. In order: import the framework, wake
the device, set up the workload, compile and make the first call, compute what parity is judged by, warm up, measure. At
the end the program is given inputs that it has not seen. A warm probe ends after the first call; a check times nothing.
"""

import os
import statistics
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import asdict, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any

from accelbench import catalogue, frameworks
from accelbench.catalogue import inputs, workload_checks
from accelbench.launch.fact import UNTOLD
from accelbench.launch.facts import (
    Clock,
    DeclaredOperations,
    Device,
    Facts,
    Gradients,
    HostOverDevice,
    Meddling,
    OperationCounts,
    Threads,
    WorkingSet,
)
from accelbench.workload import Measure, Program
from accelbench_runner.clock import Drift, reading_seconds, resolution
from accelbench_runner.devices import cpu
from accelbench_runner.devices.watch import Watch
from accelbench_runner.launch import blocks, dependence, limits, meddling, observe, synchronisation
from accelbench_runner.launch.failure import MAXIMUM_MESSAGE_CHARACTERS, failure
from accelbench_runner.launch.frameworks.adapter import Adapter, RecompiledError, Settings, UnsupportedError
from accelbench_runner.launch.machine import Machine
from accelbench_runner.launch.reporter import Reporter
from accelbench_runner.launch.versions import package_of, versions_of
from accelbench_runner.protocol import (
    UNDER_WAY,
    BlockTimed,
    Done,
    LaunchRequest,
    Measured,
    PhaseEnded,
    PhaseStarted,
)

OUTPUTS = "outputs.npz"
LEAST_PARITY_UNITS = 2
"""The second works on what the first returned: a step that ignores its state is right once."""
Inspect = Callable[[Any], None]
"""Is shown what a block's last call returned, once the clock has stopped."""


def carry_out(request: LaunchRequest, machine: Machine) -> int:
    """One launch on a machine, told over the request's descriptor; returns the exit status."""
    clock = machine.clock
    mark = Path(request.directory) / UNDER_WAY
    reporter = Reporter(request.descriptor, clock, mark=mark, skip=request.skip)
    launch = None
    try:
        launch = Launch(request, reporter, machine)
        launch.run()
    except workload_checks.RAISED as error:  # whatever the variant raises is its result
        reporter.say(failure(error, launch.adapter if launch else None))
        return 1
    reporter.say(Done())
    return 0


class Launch:
    """The stages of a launch, and what one hands to the next."""

    adapter: Adapter | None = None
    _compiler_import_seconds = 0.0
    _seen: Mapping[str, Any] = MappingProxyType({})
    """What was counted of calls on the inputs that the program was built from; of an episode nothing."""
    _held_bytes = 0
    """By the process before setup."""

    def __init__(self, request: LaunchRequest, reporter: Reporter, machine: Machine) -> None:
        self._request = request
        self._reporter = reporter
        self._machine = machine
        self._clock = machine.clock
        case = request.case
        self._variant = next(variant for variant in case.variants if variant.name == request.variant)
        self._functions, flags = meddling.functions(), meddling.flags()
        self._workload = catalogue.find(case.workload)
        self._flags = meddling.changed(flags)
        self._parameters = catalogue.parse_parameters(self._workload, case.parameters)
        self._kind = self._workload.variants()[self._variant.use]
        self._measure: Measure = self._workload.measure(self._parameters)
        self._libraries = self._workload.libraries.get(self._kind.framework, ())
        self._causes: list[str] = []
        self._watch = Watch(case.accelerator.platform, machine.clock, machine.processors)
        reporter.probe("watch", self._watch.arrive)

    def run(self) -> None:
        """Everything, in order; raises what the variant raises."""
        protocol = self._measure.protocol
        adapter = self.adapter = self._import()
        with self._reporter.phase("device-init"):
            adapter.initialise()
        gpu = adapter.gpu()
        settings = self._reporter.probe("watch", lambda: self._watch.awake(gpu))
        self._reporter.facts(
            Facts(
                protocol=protocol,
                versions=versions_of(adapter, self._libraries),
                gpu_settings=settings or UNTOLD,
                emulated=adapter.emulated(),
            )
        )
        if self._request.purpose == "probe":
            self._first_call(adapter, self._set_up(adapter)[1])
            self._reporter.facts(Facts(compile_cache=adapter.compile_cache() or UNTOLD))
            return
        if protocol == "observe":
            self._observe(adapter)
        else:
            self._measure_steps(adapter)

    def _observe(self, adapter: Adapter) -> None:
        """`observe`: what every call did; nothing is timed, and no speedup will be said of it."""
        program, work = self._set_up(adapter)
        with self._reporter.phase("steady"):
            found = observe.look(adapter, program, work, self._workload.observes)
        self._reporter.facts(found)
        self._measured(adapter)

    def _measured(self, adapter: Adapter) -> None:
        """The last of what a verdict needs; what comes after it may fail, and the measurement stands."""
        self._reporter.facts(
            Facts(
                precision=adapter.precision(),
                gradients=Gradients(wanted=self._measure.differentiates, found=adapter.gradients()),
                meddling=Meddling(flags=self._flags, functions=meddling.replaced(self._functions)),
                threads=Threads(
                    requested=self._request.threads,
                    affinity=len(os.sched_getaffinity(0)),
                    framework=adapter.threads(),
                ),
            )
        )
        self._reporter.say(Measured())

    def _measure_steps(self, adapter: Adapter) -> None:
        """The other protocols: parity's outputs, then times; then what the device can do at most."""
        self._held_bytes = cpu.held_bytes()
        cpu.restart_peak()
        program, work = self._set_up(adapter)
        protocol = self._measure.protocol
        if protocol == "episode":
            self._measure_episode(adapter, program, work)
            self._measured(adapter)
        else:
            self._compute_outputs(adapter, program, work)
            self._count_operations(adapter, work)
            cpu.restart_peak()
            if self._request.purpose == "measure":
                with blocks.garbage_kept() if protocol == "steady" else nullcontext():
                    calls, seen = self._measure_blocks(adapter, program, work)
                    self._measured(adapter)
                    self._look_behind(adapter, work, calls)
            else:
                with blocks.garbage_kept():
                    seen = self._make_checked_blocks(adapter, program, work)
                self._measured(adapter)
            self._count_calls(adapter, program, work, seen)
        if self._request.round <= dependence.ROUNDS:
            functions, work = (program.step, program.export), dependence.forget_inputs(work)
            del program  # two sets of inputs need not fit beside each other
            self._try_unseen_inputs(adapter, *functions, work)
        if self._request.purpose == "measure" and self._request.round <= limits.ROUNDS:
            asked = adapter, self._request.case.accelerator.platform, self._clock, self._machine.processors
            reached = self._reporter.probe("limits", lambda: limits.measure_undisturbed(*asked))
            self._reporter.facts(Facts(limits=reached or UNTOLD))

    def _try_unseen_inputs(
        self,
        adapter: Adapter,
        step: Callable[..., Any],
        export: Callable[[Any, Any], Mapping[str, Any]],
        work: blocks.Work,
    ) -> None:
        request = self._request
        subject = dependence.Subject(
            workload=self._workload,
            parameters=self._parameters,
            kind=self._kind,
            seed=request.case.measurement.seed,
            step=step,
            export=export,
            work=work,
        )
        with self._reporter.aside("dependence"):
            directory = Path(request.directory)
            found = dependence.examine(adapter, subject, request.unseen_seed, directory, self._clock)
        self._reporter.facts(Facts(dependence=found.model_copy(update=self._seen)))

    def _import(self) -> Adapter:
        case = self._request.case
        settings = Settings(
            mode=self._kind.mode,
            options=catalogue.parse_options(self._kind, self._variant.options),
            platform=case.accelerator.platform,
            precision=case.measurement.precision,
            threads=self._request.threads,
            differentiates=self._measure.differentiates,
        )
        framework = frameworks.find(self._kind.framework)
        with self._reporter.phase("import"):
            try:
                adapter = self._machine.adapter(framework.name)(settings)
                for library in self._libraries:
                    import_module(library)
            except ModuleNotFoundError as error:
                if error.name in {framework.package, *map(package_of, self._libraries)}:
                    raise UnsupportedError(frameworks.not_installed(error.name, framework.extra)) from None
                raise
        began = self._clock.seconds()
        if adapter.import_compiler():
            self._compiler_import_seconds = self._clock.seconds() - began
        return adapter

    def _set_up(self, adapter: Adapter) -> tuple[Program, blocks.Work]:
        with self._reporter.phase("setup"):
            arrays = inputs.generate(self._workload, self._parameters, self._request.case.measurement.seed)
            build = getattr(self._workload, self._kind.method)
            program = workload_checks.returned(build, Program, self._parameters, arrays, adapter)
            if self._measure.protocol != "observe":
                workload_checks.check_names(build, program)
            work = adapter.prepare(program)
            if self._measure.cold:
                work = replace(work, evict=adapter.evictor())
            work.synchronise((work.fresh(), work.batches))
        timed = self._measure.protocol != "observe"
        cost = workload_checks.cost(self._workload, self._parameters, adapter.float_bytes) if timed else None
        self._reporter.facts(
            Facts(
                inputs_digest=inputs.digest(arrays),
                unit=self._measure.unit,
                units_per_call=work.units,
                units_per_step=program.units,
                flops_per_unit=cost.flops if cost else UNTOLD,
                bytes_per_unit=cost.bytes if cost else UNTOLD,
                working_set=WorkingSet(
                    bytes=inputs.working_set(arrays, adapter.float_bytes), cache_bytes=adapter.cache_bytes()
                ),
                cold=work.evict is not None if self._measure.cold else UNTOLD,
            )
        )
        return program, work

    def _compute_outputs(self, adapter: Adapter, program: Program, work: blocks.Work) -> None:
        """The first call and as many more as parity needs, from a fresh state; writes what is compared."""
        state, out = self._first_call(adapter, work)
        self._reporter.facts(
            Facts(
                compile_cache=adapter.compile_cache() or UNTOLD,
                compile_peak_memory_bytes=max(0, cpu.peak_bytes() - self._held_bytes),
            )
        )
        with self._reporter.aside("parity"):
            units = work.units
            while units < max(LEAST_PARITY_UNITS, self._measure.parity_units):
                state, out = work.call(state, work.batches)
                units += work.units
            self._write_outputs(adapter, program, state, out, units)

    def _write_outputs(self, adapter: Adapter, program: Program, state: Any, out: Any, units: int) -> None:
        import numpy as np

        outputs = adapter.to_numpy(workload_checks.exported(program, state, adapter.last(out)))
        np.savez(Path(self._request.directory) / OUTPUTS, allow_pickle=False, **outputs)
        self._reporter.facts(Facts(parity_units=units))

    def _count_operations(self, adapter: Adapter, work: blocks.Work) -> None:
        """What was compiled; and what one call does, against what the workload declares, where it declares any."""
        declared = self._workload.operations(self._parameters)
        with self._reporter.aside("operations"):
            self._reporter.facts(Facts(executable=adapter.executable_size() or UNTOLD))
            counted = adapter.operations(work) if declared else None
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

    def _count_calls(
        self, adapter: Adapter, program: Program, work: blocks.Work, seen: dependence.Witness | None
    ) -> None:
        """What a call does that nobody times; after the blocks, for counters take memory and time."""
        if seen is None:
            return
        with self._reporter.aside("operations"):
            self._seen = dependence.retold(adapter, program, work, seen)
            self._reporter.facts(Facts(arithmetic=adapter.arithmetic(work)))

    def _first_call(self, adapter: Adapter, work: blocks.Work) -> tuple[Any, Any]:
        """`compile` is what compiling took: its imports, ahead, inside the first call; `first-step` is the rest.

        A call that fails and has nothing left to compile has failed in its first step.
        """
        state = work.fresh()
        work.synchronise(state)
        before = adapter.compilations().seconds
        self._reporter.say(PhaseStarted(phase="compile"))
        began = self._clock.seconds()
        adapter.compile_ahead(work)
        mode = frameworks.find(self._kind.framework).modes.get(self._kind.mode)
        compiled = mode is not None and not mode.compiles_in_first_call
        if compiled:
            self._reporter.say(PhaseStarted(phase="first-step"))
        called = self._clock.seconds()
        ahead = adapter.compilations().seconds
        result = work.call(state, work.batches)
        work.synchronise(result)
        ended = self._clock.seconds()
        after = adapter.compilations().seconds
        within = min(ended - called, sum(after.values()) - sum(ahead.values()))
        parts = {part: seconds - before.get(part, 0.0) for part, seconds in after.items()}
        imported = self._compiler_import_seconds
        if imported:
            parts["import"] = imported
        seconds = imported + called - began + within
        self._reporter.say(PhaseEnded(phase="compile", seconds=seconds, parts=parts))
        if not compiled:
            self._reporter.say(PhaseStarted(phase="first-step"))
        self._reporter.say(PhaseEnded(phase="first-step", seconds=ended - called - within))
        work.check(result)
        return result

    def _measure_blocks(
        self, adapter: Adapter, program: Program, work: blocks.Work
    ) -> tuple[int, dependence.Witness | None]:
        """`steady`: blocks of many calls, planned; `latency`: every call a block of its own.

        Returns the calls of a block, and in the first rounds what one more block did.
        """
        with self._reporter.phase("warm-up"):
            if self._measure.protocol == "latency":
                seconds_per_call = blocks.warm_up(work, self._clock, longest=0.0)
                planned = blocks.LATENCY
            else:
                seconds_per_call = blocks.warm_up(work, self._clock)
                planned = blocks.plan(seconds_per_call, blocks.overhead_seconds(work, self._clock))

        def measure(planned: blocks.Plan, inspect: Inspect) -> blocks.Measured:
            try:
                with adapter.forbid_compiling():
                    return blocks.measure_as_planned(work, planned, self._clock, inspect)
            except RecompiledError as error:
                # What it costs is worth knowing even so; nobody can take it for a steady state.
                self._causes.append(str(error))
                return blocks.measure_as_planned(work, planned, self._clock, inspect)

        measured = self._time(adapter, partial(measure, planned))
        calls = measured.units // work.units
        seen = None
        if self._request.round <= dependence.ROUNDS:
            with self._reporter.aside("dependence"):

                def block(calls: int, inspect: Inspect) -> object:
                    return measure(blocks.Plan(calls=calls, blocks=1), inspect)

                seed = self._request.unseen_seed
                seen = dependence.witness(adapter, program, work, block, calls, seconds_per_call, seed)
        return calls, seen

    def _make_checked_blocks(self, adapter: Adapter, program: Program, work: blocks.Work) -> dependence.Witness:
        """The same where nothing is timed."""
        with self._reporter.aside("dependence"):

            def block(calls: int, inspect: Inspect) -> float:
                return blocks.time_calls(work, calls, self._clock, inspect)

            block(1, lambda _: None)  # the second call may be compiled anew
            seconds, calls = block(1, lambda _: None), dependence.MOST
            return dependence.witness(adapter, program, work, block, calls, seconds, self._request.unseen_seed)

    def _look_behind(self, adapter: Adapter, work: blocks.Work, calls: int) -> None:
        with self._reporter.aside("synchronisation"):
            long = self._request.round <= synchronisation.LONG_ROUNDS
            found = self._aftermath(adapter).look(work, calls=calls, long=long)
        self._reporter.facts(Facts(synchronisation=found or UNTOLD))

    def _measure_episode(self, adapter: Adapter, program: Program, work: blocks.Work) -> None:
        """`episode`: one pass over the batches in order, the first calls and their compiling included."""
        batches = program.batches if program.inner == 1 else (work.batches,)

        state: Any = None
        out: Any = None

        def measure(inspect: Inspect) -> blocks.Measured:
            nonlocal state, out
            timed, (state, out) = blocks.episode(work, batches, self._clock)
            inspect((state, out))
            return timed

        with self._reporter.aside("synchronisation"):
            aftermath = self._aftermath(adapter)
        last = self._time(adapter, measure).seconds[-1]
        with self._reporter.aside("synchronisation"):
            found = aftermath.look_behind((state, out), last)
        self._reporter.facts(Facts(synchronisation=found or UNTOLD))
        self._reporter.facts(Facts(compile_cache=adapter.compile_cache() or UNTOLD))
        with self._reporter.aside("parity"):
            self._write_outputs(adapter, program, state, out, work.units * len(batches))

    def _aftermath(self, adapter: Adapter) -> synchronisation.Aftermath:
        probe = partial(self._reporter.probe, "synchronisation")
        return synchronisation.Aftermath(adapter, self._clock, self._machine.processors.burnt_elsewhere, probe)

    def _time(self, adapter: Adapter, measure: Callable[[Inspect], blocks.Measured]) -> blocks.Measured:
        """Has `measure` time its blocks, and reports what else happened meanwhile."""
        devices: list[Device] = []
        resolved, reading, drift = resolution(self._clock), reading_seconds(self._clock), Drift(self._clock)
        compiled = adapter.compilations()
        compared = len(adapter.host_over_device())

        def inspect(result: Any) -> None:
            devices.append(adapter.device(result))
            if self._watch.gpu:
                self._reporter.glance("watch", self._watch.look)

        self._reporter.probe("watch", self._watch.begin)
        with self._reporter.phase("steady") as parts:
            measured = measure(inspect)
            for part, seconds in adapter.compilations().seconds.items():
                if (more := seconds - compiled.seconds.get(part, 0.0)) > 0:
                    parts[part] = more
        watched = self._reporter.probe("watch", self._watch.end)
        on_device = adapter.peak_memory_bytes()
        peak = max(0, cpu.peak_bytes() - self._held_bytes) if on_device is None else on_device
        ratios = adapter.host_over_device()[compared:]
        for seconds in measured.seconds:
            self._reporter.say(BlockTimed(units=measured.units, seconds=seconds))
        causes = self._causes + adapter.compilations().causes[len(compiled.causes) :]
        if watched:
            self._reporter.facts(watched)
        self._reporter.facts(
            Facts(
                device=devices[-1],
                recompilations=len(causes),
                recompilation_causes=[cause[:MAXIMUM_MESSAGE_CHARACTERS] for cause in causes[:20]],
                peak_memory_bytes=peak,
                reserved_memory_bytes=adapter.reserved_memory_bytes() or UNTOLD,
                host_over_device=HostOverDevice(least=min(ratios), median=statistics.median(ratios))
                if ratios
                else UNTOLD,
                clock=Clock(resolution_seconds=resolved, reading_seconds=reading, drift=drift.read()),
                replanned=measured.replanned,
            )
        )
        return measured
