"""Compile a variant for a target and run nothing; report facts about the program and its compilation.

The kernel enforces a memory limit for this process. If a compiler needs more memory, only this process fails.
"""

import resource

from accelbench.launch.fact import value_or_none
from accelbench.targets import find as find_target
from accelbench_runner.devices import cpu
from accelbench_runner.frameworks.adapter import Adapter, Targets, UnsupportedError
from accelbench_runner.launch.preparation import import_framework, set_up_to_compile, versions_of
from accelbench_runner.launch.reporter import Reporter, read_fact
from accelbench_runner.launch.task import Machine, Task
from accelbench_runner.protocol import LaunchRequest, Measured

NO_TARGETS = "this framework compiles only for the device that it runs on"


class Compilation:
    """Compile one variant of one case for the case's target."""

    adapter: Adapter | None = None

    def __init__(self, request: LaunchRequest, reporter: Reporter, machine: Machine) -> None:
        """Limit this process's memory to the request's maximum, and load the task."""
        if request.memory_bytes is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (request.memory_bytes, request.memory_bytes))
        self._task = Task.load(request, reporter, machine)
        self._reporter = reporter
        self._target = find_target(request.case.accelerator.target or "")  # a request to compile has a target

    def run(self) -> None:
        """Import the framework, then build and compile the program.

        Raises UnsupportedError if the framework cannot compile for the target.
        """
        task, reporter = self._task, self._reporter
        adapter, _ = import_framework(task)
        self.adapter = adapter
        if adapter.targets is None:
            raise UnsupportedError(NO_TARGETS)
        # This raises UnsupportedError for an unsupported target before the framework is initialised.
        for_target = adapter.targets.for_target(self._target)
        with reporter.phase("device-init"):
            adapter.initialise()
        reporter.send_facts(protocol="compile", versions=lambda: versions_of(adapter, task.libraries))
        with for_target:
            self._compile(adapter, adapter.targets)
        reporter.send(Measured())

    def _compile(self, adapter: Adapter, targets: Targets) -> None:
        """Build the program, compile it for the target, and report the compiler's findings, time and memory."""
        task, reporter = self._task, self._reporter
        bytes_before = cpu.resident_bytes()
        program, work = set_up_to_compile(task, adapter, targets)
        cpu.restart_peak()
        compilations_before = adapter.accounting.compilations()
        with reporter.phase("compile") as parts:
            compiled, executable = targets.compile(program, work, self._target)
            parts.update(adapter.accounting.compilations().seconds_since(compilations_before))
        # None if the framework cannot count the operations: then the number of FLOP is unknown.
        arithmetic = value_or_none(read_fact(lambda: adapter.accounting.arithmetic(work)))
        # `written` counts the operations of the program as its author wrote it, before the compiler's optimisations.
        flops = None if arithmetic is None or arithmetic.written is None else round(arithmetic.written)
        reporter.send_facts(
            compiled=compiled,
            executable=executable.model_copy(update={"flops_per_call": flops}),
            compile_peak_memory_bytes=lambda: max(0, cpu.peak_bytes() - bytes_before),
        )
