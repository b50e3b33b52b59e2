"""Prepare the first block: import the framework, build the workload's program, compile it and call it once.

A workload is a class that somebody wrote by hand, or is made from the functions of a script (`catalogue.functions`).
"""

import platform
import sys
from collections.abc import Iterable
from dataclasses import replace
from importlib import import_module
from typing import Any

from accelbench import catalogue, frameworks
from accelbench.catalogue import inputs, workload_checks
from accelbench.catalogue.workload_checks import InvalidWorkloadError
from accelbench.launch.facts import ImportedPackage, WorkingSet
from accelbench.stats.summary import has_tail
from accelbench.workload import Arrays, Program
from accelbench_runner.frameworks.adapter import Adapter, AdapterSettings, Targets, UnsupportedError
from accelbench_runner.frameworks.build import build_program
from accelbench_runner.frameworks.work import Work
from accelbench_runner.launch.task import Task
from accelbench_runner.protocol import PhaseEnded, PhaseStarted


def import_framework(task: Task) -> tuple[Adapter, float]:
    """Import the framework, the workload's libraries and the compiler.

    Returns the adapter, and the seconds that importing the compiler took: 0 if the variant needs no compiler. Raises
    UnsupportedError if a package is missing, or if the platform does not support the framework, the variant's options
    or the precision.
    """
    framework, precision = frameworks.find(task.kind.framework), task.request.case.measurement.precision
    try:
        backend = framework.backend(task.platform.name, task.platform.backends)
    except frameworks.UnsupportedPlatformError as error:
        raise UnsupportedError(str(error)) from error
    options = catalogue.parse_options(task.kind, task.variant.options)
    if reason := options.unsupported(task.platform.name):
        raise UnsupportedError(reason)
    settings = AdapterSettings(
        mode=task.kind.adapter_mode,
        options=options,
        platform=task.platform.name,
        precision=precision,
        threads=task.request.threads,
        differentiates=task.differentiates,
        backend=backend,
        model=task.monitor.model(),
    )
    if precision in task.platform.lacks:  # its values are the reasons, as ends of sentences
        raise UnsupportedError(f"precision {precision} is {task.platform.lacks[precision]}")
    with task.reporter.phase("import"):
        try:
            adapter = task.machine.adapter(framework.name)(settings)
            for library in task.libraries:
                import_module(library)
        except ModuleNotFoundError as error:
            needed = {framework.package, *map(package_of, task.libraries)}
            if error.name not in needed:
                raise  # an installed package imports a module that is missing: the installation is broken
            # The missing module may be another framework that the workload needs, which has its own extra.
            extras = {other.package: other.extra for other in frameworks.every()}
            extra = extras.get(error.name, task.workload.extra or framework.extra)
            raise UnsupportedError(frameworks.install_message(error.name, extra)) from None
    began = task.clock.seconds()
    has_compiler = adapter.import_compiler()
    compiler_seconds = task.clock.seconds() - began if has_compiler else 0.0
    return adapter, compiler_seconds


def set_up(task: Task, adapter: Adapter) -> tuple[Program, Work]:
    """Build the program from generated inputs, prepare it on the device, and report facts about it.

    Raises InvalidWorkloadError if the program does not fit the protocol, or if its names or arrays are invalid.
    """
    observes = task.measure.protocol == "observe"
    with task.reporter.phase("setup"):
        arrays = inputs.generate(task.workload, task.parameters, task.request.case.measurement.seed)
        times_calls = has_tail(task.measure.protocol)
        # A call of a script's function takes all batches, so a single batch could not be timed. A hand-written class
        # itself decides how many batches a call takes.
        if times_calls and len(arrays.batches) > 1 and not task.workload.hand_written:
            raise InvalidWorkloadError(
                f"the protocol {task.measure.protocol} times every call, and arrays() returns {len(arrays.batches)} "
                "batches, which are timed together: return one"
            )
        program = build_program(task.workload, task.kind, task.parameters, arrays, adapter)
        if not observes:  # `observe` compares no arrays with the reference, so they need no names
            workload_checks.check_names(getattr(task.workload, task.kind.method), program)
        work = adapter.prepare(program)
        if task.measure.cold:
            work = replace(work, evict=task.monitor.evictor(adapter.overwrite))
        # Wait here, so that moving the inputs to the device counts as setup.
        work.synchronise((work.fresh(), work.batches))
    evicts_caches = work.evict is not None
    task.reporter.send_facts(
        **_program_facts(task, adapter, program, work, arrays),
        inputs_digest=inputs.digest(arrays),
        cold=evicts_caches if task.measure.cold else None,  # False if the caches of this device cannot be evicted
        setup_function=task.workload.setup_function(task.kind.method),
    )
    return program, work


def set_up_to_compile(task: Task, adapter: Adapter, targets: Targets) -> tuple[Program, Work]:
    """Build the program and prepare it for compiling; use only the inputs' shapes if the workload declares them.

    So a program whose arrays do not fit into this machine can be compiled too.
    """
    shapes = task.workload.shapes(task.parameters)
    if shapes is None:
        return set_up(task, adapter)

    def build() -> tuple[Program, Work]:
        """Build and prepare the program from the inputs' shapes."""
        program = build_program(task.workload, task.kind, task.parameters, shapes, adapter)
        return program, adapter.prepare(program)

    with task.reporter.phase("setup"):
        program, work = targets.build_abstract(build)
        workload_checks.check_names(getattr(task.workload, task.kind.method), program)
    task.reporter.send_facts(**_program_facts(task, adapter, program, work, shapes))
    return program, work


def timed_units(task: Task, work: Work) -> int:
    """Return the units of work in a timed call; with protocol `arrivals`, a request is one unit."""
    return 1 if task.measure.protocol == "arrivals" else work.units


def _program_facts(task: Task, adapter: Adapter, program: Program, work: Work, arrays: Arrays) -> dict[str, object]:
    """Return facts about the units of work, the memory and the cost of a call, by field of `Facts`.

    A fact that takes long to find out is a function without arguments, which the reporter calls.
    """
    observes = task.measure.protocol == "observe"  # it times nothing, so no rate is computed from a cost
    cost = None if observes else workload_checks.cost(task.workload, task.parameters, adapter.float_bytes)
    units_per_call = timed_units(task, work)
    # The workload declares the cost of one of its own units. With protocol `arrivals`, a timed unit is a whole request.
    units_of_cost = work.units / units_per_call
    return {
        "unit": task.measure.unit,
        "units_per_call": units_per_call,
        # Only a class may declare units for each program. Functions of a script share one declaration.
        "units_per_step": program.units if task.workload.hand_written else 1,
        "flops_per_unit": cost.flops * units_of_cost if cost else None,
        "bytes_per_unit": cost.bytes * units_of_cost if cost else None,
        "working_set": lambda: WorkingSet(
            bytes=inputs.working_set(arrays, adapter.float_bytes),
            cache_bytes=adapter.accounting.cache_bytes() or task.monitor.cache_bytes(),
        ),
    }


def make_first_call(task: Task, adapter: Adapter, work: Work, import_seconds: float) -> tuple[Any, Any]:
    """Compile the call and make it for the first time; return the call's result.

    Reports two phases: `compile` consists of importing the compiler, which took `import_seconds`, of compiling before
    the call, and of compiling inside the call; `first-step` is the rest of the call.
    """
    clock, reporter = task.clock, task.reporter
    state = work.fresh()
    work.synchronise(state)
    seconds_at_start = adapter.accounting.compilations().seconds
    reporter.send(PhaseStarted(phase="compile"))
    began = clock.seconds()
    adapter.compile_ahead(work)
    mode = frameworks.find(task.kind.framework).modes.get(task.kind.mode)
    call_may_compile = mode is None or mode.compiles_in_first_call  # None: the author's own mode, which may compile
    if not call_may_compile:
        # Start the next phase now, so that a failure of the call is reported as one of `first-step`.
        reporter.send(PhaseStarted(phase="first-step"))
    call_began = clock.seconds()
    seconds_before_call = adapter.accounting.compilations().seconds
    result = work.call(state, work.batches)
    work.synchronise(result)
    ended = clock.seconds()
    seconds_after_call = adapter.accounting.compilations().seconds
    call_seconds = ended - call_began
    reported_seconds = sum(seconds_after_call.values()) - sum(seconds_before_call.values())
    compile_seconds_in_call = min(call_seconds, max(0.0, reported_seconds))  # so that no phase is negative
    parts = {part: seconds - seconds_at_start.get(part, 0.0) for part, seconds in seconds_after_call.items()}
    if import_seconds:
        parts["import"] = import_seconds
    compile_seconds = import_seconds + call_began - began + compile_seconds_in_call
    # Only now is it known how much of the call was compiling.
    reporter.send(PhaseEnded(phase="compile", seconds=compile_seconds, parts=parts))
    if call_may_compile:
        reporter.send(PhaseStarted(phase="first-step"))
    reporter.send(PhaseEnded(phase="first-step", seconds=call_seconds - compile_seconds_in_call))
    work.check(result)
    return result


def package_of(module: str) -> str:
    """Return the top-level package of a module: `flax` of `flax.nnx`."""
    return module.partition(".")[0]


def versions_of(adapter: Adapter, libraries: Iterable[str]) -> dict[str, str]:
    """Return the versions of Python, NumPy, the framework and `libraries`."""
    import numpy as np

    packages = {package_of(library): _version_of(library) for library in sorted(libraries)}
    return {"python": platform.python_version(), "numpy": np.__version__, **adapter.versions(), **packages}


def imported_packages(task: Task) -> dict[str, ImportedPackage]:
    """Return the version and the file of NumPy, of the framework, and of its libraries, as far as they are imported."""
    framework = frameworks.find(task.kind.framework)
    names = {"numpy", framework.package, *framework.own, *task.libraries}
    imported = {name: sys.modules[name] for name in sorted(names & sys.modules.keys())}
    return {
        name: ImportedPackage(
            version=str(getattr(module, "__version__", "")), file=getattr(module, "__file__", "") or ""
        )
        for name, module in imported.items()
    }


def _version_of(library: str) -> str:
    """Return the version of an imported module or else of its top-level package; `unknown` if neither has one."""
    for module in (library, package_of(library)):  # `orbax.checkpoint` has a version, but `orbax` has none
        version = getattr(sys.modules[module], "__version__", None)
        if version:
            return str(version)
    return "unknown"
