"""Prepare the first block: import the framework, build the workload's program, compile it and call it once."""

import platform
import sys
from collections.abc import Iterable
from dataclasses import replace
from importlib import import_module
from typing import Any

from accelbench import catalogue, frameworks
from accelbench.catalogue import inputs, workload_checks
from accelbench.launch.fact import NOT_REPORTED
from accelbench.launch.facts import Facts, WorkingSet
from accelbench.workload import Arrays, Program
from accelbench_runner.frameworks.adapter import Adapter, AdapterSettings, Targets, UnsupportedError
from accelbench_runner.frameworks.work import Work
from accelbench_runner.launch.task import Task
from accelbench_runner.protocol import PhaseEnded, PhaseStarted


def import_framework(task: Task) -> tuple[Adapter, float]:
    """Return the adapter, not yet initialised, and the seconds to import its compiler; raise UnsupportedError."""
    framework, precision = frameworks.find(task.kind.framework), task.request.case.measurement.precision
    try:
        backend = framework.backend(task.platform.name, task.platform.backends)
    except frameworks.UnsupportedPlatformError as error:
        raise UnsupportedError(str(error)) from error
    settings = AdapterSettings(
        mode=task.kind.mode,
        options=catalogue.parse_options(task.kind, task.variant.options),
        platform=task.platform.name,
        precision=precision,
        threads=task.request.threads,
        differentiates=task.measure.differentiates,
        backend=backend,
        model=task.monitor.model(),
    )
    if precision in task.platform.lacks:
        raise UnsupportedError(f"precision {precision} is {task.platform.lacks[precision]}")
    with task.reporter.phase("import"):
        try:
            adapter = task.machine.adapter(framework.name)(settings)
            for library in task.libraries:
                import_module(library)
        except ModuleNotFoundError as error:
            if error.name in {framework.package, *map(package_of, task.libraries)}:
                raise UnsupportedError(frameworks.install_message(error.name, framework.extra)) from None
            raise
    began = task.clock.seconds()
    imported = adapter.import_compiler()
    return adapter, task.clock.seconds() - began if imported else 0.0


def set_up(task: Task, adapter: Adapter) -> tuple[Program, Work]:
    """Build the workload's program on its inputs, and prepare it on the device."""
    observes = task.measure.protocol == "observe"
    with task.reporter.phase("setup"):
        arrays = inputs.generate(task.workload, task.parameters, task.request.case.measurement.seed)
        build = getattr(task.workload, task.kind.method)
        program = workload_checks.call_method(build, Program, task.parameters, arrays, adapter)
        if not observes:
            workload_checks.check_names(build, program)
        work = adapter.prepare(program)
        if task.measure.cold:
            work = replace(work, evict=task.monitor.evictor(adapter.overwrite))
        work.synchronise((work.fresh(), work.batches))
    facts = _program_facts(task, adapter, program, work, arrays)
    task.reporter.facts(
        facts.model_copy(
            update={
                "inputs_digest": inputs.digest(arrays),
                "cold": work.evict is not None if task.measure.cold else NOT_REPORTED,
            }
        )
    )
    return program, work


def set_up_to_compile(task: Task, adapter: Adapter, targets: Targets) -> tuple[Program, Work]:
    """Build and prepare the program for a target; no numbers are drawn if the workload declares its shapes."""
    shapes = task.workload.shapes(task.parameters)
    if shapes is None:
        return set_up(task, adapter)
    build = getattr(task.workload, task.kind.method)

    def build_program() -> tuple[Program, Work]:
        program = workload_checks.call_method(build, Program, task.parameters, shapes, adapter)
        return program, adapter.prepare(program)

    with task.reporter.phase("setup"):
        program, work = targets.build_abstract(build_program)
        workload_checks.check_names(build, program)
    task.reporter.facts(_program_facts(task, adapter, program, work, shapes))
    return program, work


def _program_facts(task: Task, adapter: Adapter, program: Program, work: Work, arrays: Arrays) -> Facts:
    """Describe what a call of the program has to do; only the shapes of `arrays` matter."""
    observes = task.measure.protocol == "observe"
    cost = None if observes else workload_checks.cost(task.workload, task.parameters, adapter.float_bytes)
    return Facts(
        unit=task.measure.unit,
        units_per_call=work.units,
        units_per_step=program.units,
        flops_per_unit=cost.flops if cost else NOT_REPORTED,
        bytes_per_unit=cost.bytes if cost else NOT_REPORTED,
        working_set=WorkingSet(
            bytes=inputs.working_set(arrays, adapter.float_bytes),
            cache_bytes=adapter.accounting.cache_bytes() or task.monitor.cache_bytes(),
        ),
    )


def make_first_call(task: Task, adapter: Adapter, work: Work, imported_seconds: float) -> tuple[Any, Any]:
    """Compile, make the first call and return its result.

    The phase `compile` covers imports, compiling ahead and compiling inside the call; `first-step` is the rest. If the
    call has nothing left to compile, `first-step` starts before it, so that a failure is one of the first step.
    """
    clock, reporter = task.clock, task.reporter
    state = work.fresh()
    work.synchronise(state)
    before = adapter.accounting.compilations().seconds
    reporter.send(PhaseStarted(phase="compile"))
    began = clock.seconds()
    adapter.compile_ahead(work)
    mode = frameworks.find(task.kind.framework).modes.get(task.kind.mode)
    is_compiled = mode is not None and not mode.compiles_in_first_call
    if is_compiled:
        reporter.send(PhaseStarted(phase="first-step"))
    call_began = clock.seconds()
    seconds_ahead_of_call = adapter.accounting.compilations().seconds
    result = work.call(state, work.batches)
    work.synchronise(result)
    ended = clock.seconds()
    after = adapter.accounting.compilations().seconds
    compile_seconds_in_call = min(ended - call_began, sum(after.values()) - sum(seconds_ahead_of_call.values()))
    parts = {part: seconds - before.get(part, 0.0) for part, seconds in after.items()}
    if imported_seconds:
        parts["import"] = imported_seconds
    seconds = imported_seconds + call_began - began + compile_seconds_in_call
    reporter.send(PhaseEnded(phase="compile", seconds=seconds, parts=parts))
    if not is_compiled:
        reporter.send(PhaseStarted(phase="first-step"))
    reporter.send(PhaseEnded(phase="first-step", seconds=ended - call_began - compile_seconds_in_call))
    work.check(result)
    return result


def package_of(module: str) -> str:
    """Return the top-level package of a module: `flax` of `flax.nnx`."""
    return module.partition(".")[0]


def versions_of(adapter: Adapter, libraries: Iterable[str]) -> dict[str, str]:
    """Return the versions of Python, NumPy, the framework, and the packages of the workload's libraries."""
    import numpy as np

    packages = {package_of(library): _version_of(library) for library in sorted(libraries)}
    return {"python": platform.python_version(), "numpy": np.__version__, **adapter.versions(), **packages}


def _version_of(library: str) -> str:
    """Return the module's version, else its package's: orbax.checkpoint has one, orbax has none."""
    versions = (getattr(sys.modules[module], "__version__", None) for module in (library, package_of(library)))
    return next((str(version) for version in versions if version), "unknown")
