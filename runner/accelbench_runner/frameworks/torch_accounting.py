"""Report PyTorch's compilations, operations and use of memory, from Dynamo, its profiler and its allocator."""

import math
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch
from torch import distributed

from accelbench.frameworks.pytorch import CUDA, CompileOptions
from accelbench.launch.facts import Arithmetic, CompileCache
from accelbench.workload import Operations
from accelbench_runner.frameworks.adapter import (
    Accounting,
    AdapterSettings,
    Compilations,
    CountedOperations,
    count_cached_files,
)
from accelbench_runner.frameworks.torch_backends import CACHE, HostBackend
from accelbench_runner.frameworks.torch_operations import (
    CONVOLUTIONS,
    MOVING,
    PRODUCTS,
    DispatchCounter,
    compile_disabled,
    count_recorded,
)
from accelbench_runner.frameworks.torch_values import ValueCounter
from accelbench_runner.frameworks.work import Work

COMPILED = ("Torch-Compiled Region", "CompiledFunction")
"""Prefixes of the profiler's events for compiled regions; a compiled backward pass has the second."""
DISPATCHED = ("aten::", COMPILED[0])
"""Prefixes of the profiler's events for ATen operations and for compiled regions."""

BACKWARD = "autograd::engine::evaluate_function"
"""Prefix of the profiler's events for operations that a backward pass differentiates."""


@dataclass
class Placement:
    """Describe where tensors are created: on the device, or for a simulated device without numbers."""

    device: torch.device
    simulation: DispatchCounter | None = None
    """Counts the operations on a simulated device; None on a real one."""
    placed: bool = False
    """True if the author's program runs as it is, outside the variant's mode."""


def replays_graphs(settings: AdapterSettings) -> bool:
    """Return True if the variant's compiled functions replay CUDA graphs, which only a GPU has."""
    options = settings.options
    return isinstance(options, CompileOptions) and options.replays_graphs and settings.backend == CUDA


def _is_in_compiled_region(event: Any) -> bool:
    """Return True if a compiled region, forward or backward, contains the profiler's event."""
    parent = event.cpu_parent
    while parent is not None:
        if str(parent.name).startswith(COMPILED):
            return True
        parent = parent.cpu_parent
    return False


class TorchAccounting(Accounting):
    """Read Dynamo's counters, PyTorch's profiler and the backend's allocator."""

    def __init__(self, settings: AdapterSettings, backend: HostBackend, placement: Placement) -> None:
        self._settings, self._backend, self._placement = settings, backend, placement
        # An author's own mode, such as `compile-step`, compiles too.
        self._compiles = settings.mode.partition("-")[0] == "compile"
        self._cached_before = count_cached_files(CACHE)
        """Number of files in the compile cache before this process compiles."""
        self._causes: list[str] = []
        self._graphs: Any = None
        """Counter of the operations in Inductor's graphs; None if the variant does not compile."""

    def register_callbacks(self) -> None:
        """Import Dynamo and Inductor, and make them report compilations and optimised graphs to this object."""
        callbacks = import_module("torch._dynamo.callback")
        callbacks.callback_handler.register_start_callback(self._record_compilation)
        import_module("torch._inductor.compile_fx")
        self._graphs = import_module("accelbench_runner.frameworks.torch_graphs").GraphCounter()
        inductor: Any = import_module("torch._inductor.config")
        inductor.post_grad_custom_post_pass = self._graphs

    def _record_compilation(self, arguments: Any) -> None:
        """Store the cause of a compilation; Dynamo calls this when it compiles."""
        self._causes.append(f"{arguments.callback_trigger.name.lower()} {arguments.compile_id} was compiled")

    def compilations(self) -> Compilations:
        """Return the seconds that Dynamo and its backend, Inductor, took so far, and the cause of each compilation.

        Both are empty for a variant that compiles nothing.
        """
        if not self._compiles:
            return Compilations()
        metrics = import_module("torch._dynamo.utils").compilation_time_metrics
        seconds_by_timer = {name: sum(times) for name, times in metrics.items()}
        forward_seconds = seconds_by_timer.get("OutputGraph.call_user_compiler", 0.0)
        backward_seconds = seconds_by_timer.get("compile_fx.<locals>.bw_compiler", 0.0)
        frame_seconds = seconds_by_timer.get("_compile.compile_inner", 0.0)
        # Dynamo's timer includes its backend's time for the forward graph.
        seconds = {"dynamo": frame_seconds - forward_seconds, "backend": forward_seconds + backward_seconds}
        return Compilations(seconds=seconds, causes=list(self._causes))

    def compile_cache(self) -> CompileCache | None:
        """Return the hits and misses of Inductor's cache and of AOTAutograd's cache, added up.

        None if the variant compiles nothing. A hit in AOTAutograd's cache can skip the lookup in Inductor's.
        """
        if not self._compiles:
            return None
        counters = import_module("torch._dynamo.utils").counters
        graphs, autograd = counters["inductor"], counters["aot_autograd"]
        return CompileCache(
            hits=graphs["fxgraph_cache_hit"] + autograd["autograd_cache_hit"],
            misses=graphs["fxgraph_cache_miss"] + autograd["autograd_cache_miss"],
            before=self._cached_before,
        )

    def operations(self, work: Work) -> CountedOperations | None:
        """Make another call, and count its matrix products and convolutions; None if the profiler would miss some."""
        options = self._settings.options
        if isinstance(options, CompileOptions) and options.mode != "default":
            # The profiler misses products that Inductor generates from templates, and those of a replayed CUDA graph.
            return None
        state = work.fresh()
        profile = import_module("torch.autograd.profiler_legacy").profile  # without Kineto, which writes to stderr
        # Not a TorchDispatchMode: compiled functions run eagerly under one.
        with profile() as profiled:
            work.call(state, work.batches)
        self._backend.synchronise()
        counts = {event.key: event.count for event in profiled.key_averages()}
        operations = Operations(
            products=sum(counts.get(f"aten::{name}", 0) * products for name, products in PRODUCTS.items()),
            convolutions=sum(counts.get(f"aten::{name}", 0) for name in CONVOLUTIONS),
        )
        return CountedOperations(operations, "the operations dispatched")

    def arithmetic(self, work: Work) -> Arithmetic:
        """Count the floating-point operations of a call, as the program is written and as it is optimised.

        Makes another call, except on a simulated device, which has counted already. Unknown counts are None, and all
        counts are None if the call raises an exception.
        """
        if self._placement.simulation is not None:
            return self._placement.simulation.total()
        counter = ValueCounter() if self._compiles else DispatchCounter()
        state = work.fresh()
        profile = import_module("torch.autograd.profiler_legacy").profile  # without Kineto, which writes to stderr
        recorded_before = count_recorded()
        try:
            # Compiled functions run eagerly, so that the program is counted as it is written.
            with profile() as profiled, compile_disabled(), counter:
                results = work.call(state, work.batches)
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001 - torch's CheckpointException is no Exception; counting must not fail
            return Arithmetic()
        recorded = count_recorded() - recorded_before - 1  # without the operation that `count_recorded` itself records
        differentiated = 0
        if recorded:  # by autograd; otherwise no backward pass ran
            recorded = max(0, recorded - _count_custom_functions(profiled.function_events))
            differentiated = sum(event.name.startswith(BACKWARD) for event in profiled.function_events)
        dispatched = counter.total().model_copy(
            update={"operations_recorded": recorded, "operations_differentiated": differentiated}
        )
        if not isinstance(counter, ValueCounter):
            # If the author compiles parts, other kernels run than those of the operations that were dispatched here.
            return dispatched if has_compiled() else dispatched.model_copy(update=counter.dispatched_fields())
        run = self._count_compiled(dispatched.written or 0.0)
        optimised = {"run": run, "source": "Inductor's graphs", **counter.count_omittable(results)}
        return dispatched.model_copy(update=optimised)

    def _count_compiled(self, written: float) -> float | None:
        """Return the floating-point operations in Inductor's graphs; None if some operations run outside of the graphs.

        `written` is the number of operations that the program dispatches if nothing is compiled.
        """
        # In a placed program, the author may have compiled only a part.
        if self._graphs is None or not self._graphs.graphs or self._placement.placed:
            return None
        operations: float = self._graphs.operations
        # What Dynamo cannot trace, such as nn.LSTM, runs eagerly between two graphs, which then lack its operations.
        has_graph_breaks = bool(import_module("torch._dynamo.utils").counters["graph_break"])
        if math.isnan(operations) or (has_graph_breaks and operations < written):
            return None
        return operations

    def count_dispatched(self, call: Callable[[], object]) -> dict[str, int]:
        """Make the call, and count by name the ATen operations and the compiled regions that it runs.

        Operations that compute nothing (`MOVING`) are left out.
        """
        profile = import_module("torch.autograd.profiler_legacy").profile  # without Kineto, which writes to stderr
        with profile() as profiled:
            call()
            self._backend.synchronise()
        events = profiled.function_events
        if replays_graphs(self._settings):
            # Leave out operations that are dispatched only in the call that records a graph: a replay dispatches none.
            events = [event for event in events if not _is_in_compiled_region(event)]
        names = (str(event.name) for event in events)
        dispatched = (name.removeprefix("aten::") for name in names if name.startswith(DISPATCHED))
        return Counter(name for name in dispatched if name not in MOVING)

    def peak_memory_bytes(self) -> int | None:
        """Return the most bytes that tensors occupied at once; None on a CPU."""
        return self._backend.peak_memory_bytes()

    def reserved_memory_bytes(self) -> int | None:
        """Return the most bytes that PyTorch's allocator reserved at once; None on a CPU."""
        return self._backend.reserved_memory_bytes()

    def cache_bytes(self) -> int | None:
        """Return the bytes of the last-level cache; None on a CPU, or if PyTorch does not report them."""
        return self._backend.cache_bytes()

    def device_id(self) -> str | None:
        """Return the device's UUID; None on a CPU, or if PyTorch does not report it."""
        return self._backend.id()

    def describe_emulation(self) -> str:
        """Describe how several processes of one host emulate devices; return an empty string if none do.

        Each process counts as a device. gloo is PyTorch's backend for communication between CPUs.
        """
        if not (distributed.is_available() and distributed.is_initialized()):
            return ""
        all_processes = distributed.get_world_size()
        host_processes = int(os.environ.get("LOCAL_WORLD_SIZE", all_processes))
        if str(distributed.get_backend()) != "gloo" or host_processes <= 1:
            return ""
        return f"{host_processes} processes of one host communicate through gloo"

    def threads(self) -> int | None:
        """Return how many threads PyTorch uses within one operation."""
        threads: int = torch.get_num_threads()
        return threads

    def host_to_device_ratios(self) -> list[float]:
        """Return host seconds divided by device seconds for each timed block; an empty list on a CPU."""
        return list(self._backend.events.ratios) if self._backend.events else []


def has_compiled() -> bool:
    """Return True if Dynamo has compiled a function in this process, as an author's own `torch.compile` does."""
    if "torch._dynamo" not in sys.modules:
        return False
    frames: Counter[str] = import_module("torch._dynamo.utils").counters["frames"]
    return bool(frames["total"])


def _count_custom_functions(events: Iterable[Any]) -> int:
    """Return how many events are calls of an autograd.Function; these count as recorded even if autograd is off."""
    names: set[str] = set()
    unvisited = [torch.autograd.Function]
    while unvisited:
        function_class = unvisited.pop()
        names.add(function_class.__name__)
        unvisited += function_class.__subclasses__()
    return sum(event.name in names for event in events)
