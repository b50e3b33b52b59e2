"""Report what PyTorch compiled, computes and occupies: by Dynamo, its profiler and its allocator."""

import math
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch
from torch import distributed

from accelbench.frameworks.pytorch import CompileOptions
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
)
from accelbench_runner.frameworks.work import Work

DISPATCHED = ("aten::", "Torch-Compiled Region")
"""Prefixes of the profiler's events for ATen operations and for compiled regions."""


@dataclass
class Placement:
    """Describe where arrays are created: on the device, or without numbers for an absent device."""

    device: torch.device
    simulated: DispatchCounter | None = None
    """Counts the operations on arrays without numbers; None on a real device."""
    placed: bool = False
    """True if the author's program runs as it is, outside the variant's mode."""


class TorchAccounting(Accounting):
    """Read Dynamo's counters, PyTorch's profiler and the backend's allocator."""

    def __init__(self, settings: AdapterSettings, backend: HostBackend, placement: Placement) -> None:
        self._settings, self._backend, self._placement = settings, backend, placement
        self._compiles = settings.mode.partition("-")[0] == "compile"
        self._cached_before = count_cached_files(CACHE)
        self._causes: list[str] = []
        self._graphs: Any = None

    def listen(self) -> None:
        """Import Dynamo and Inductor, and register for each compilation and each optimised graph."""
        callbacks = import_module("torch._dynamo.callback")
        callbacks.callback_handler.register_start_callback(self._record_compilation)
        import_module("torch._inductor.compile_fx")
        self._graphs = import_module("accelbench_runner.frameworks.torch_graphs").GraphCounter()
        inductor: Any = import_module("torch._inductor.config")
        inductor.post_grad_custom_post_pass = self._graphs

    def _record_compilation(self, arguments: Any) -> None:
        """Record the cause of a compilation that starts."""
        self._causes.append(f"{arguments.callback_trigger.name.lower()} {arguments.compile_id} was compiled")

    def compilations(self) -> Compilations:
        """Read Dynamo's timers; the part `dynamo` is the time of its frames without the backend that they call."""
        if not self._compiles:
            return Compilations()
        metrics = import_module("torch._dynamo.utils").compilation_time_metrics
        seconds_by_timer = {name: sum(times) for name, times in metrics.items()}
        forward = seconds_by_timer.get("OutputGraph.call_user_compiler", 0.0)
        backward = seconds_by_timer.get("compile_fx.<locals>.bw_compiler", 0.0)
        frames = seconds_by_timer.get("_compile.compile_inner", 0.0)
        seconds = {"dynamo": frames - forward, "backend": forward + backward}
        return Compilations(seconds=seconds, causes=list(self._causes))

    def compile_cache(self) -> CompileCache | None:
        """Add up AOTAutograd's cache and Inductor's, which a hit in the former may bypass."""
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
        """Count in one more call, as PyTorch dispatches operations, also from compiled code.

        Inductor's own product templates (max-autotune) are not dispatched, so there the count is None. A
        TorchDispatchMode is no alternative: under one, compiled functions run eagerly.
        """
        options = self._settings.options
        if isinstance(options, CompileOptions) and options.mode.startswith("max-autotune"):
            return None
        state = work.fresh()
        profile = import_module("torch.autograd.profiler_legacy").profile  # without Kineto, which writes to stderr
        with profile() as profiled:
            work.call(state, work.batches)
        self._backend.synchronise()
        counts = {event.key: event.count for event in profiled.key_averages()}
        operations = Operations(
            products=sum(counts.get(f"aten::{name}", 0) * number for name, number in PRODUCTS.items()),
            convolutions=sum(counts.get(f"aten::{name}", 0) for name in CONVOLUTIONS),
        )
        return CountedOperations(operations, "the operations dispatched")

    def arithmetic(self, work: Work) -> Arithmetic:
        """Count operations as ATen dispatches them, and those that Inductor's passes leave."""
        if self._placement.simulated is not None:
            return self._placement.simulated.total()
        counter = DispatchCounter()
        state = work.fresh()
        try:
            with compile_disabled(), counter:
                work.call(state, work.batches)
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001 - torch's CheckpointException is one; counting must not fail a launch
            return Arithmetic()
        dispatched = counter.total()
        if not self._compiles:
            return dispatched
        counts_whole_call = self._graphs is not None and self._graphs.graphs and not self._placement.placed
        run = self._graphs.operations if counts_whole_call and not math.isnan(self._graphs.operations) else None
        return dispatched.model_copy(update={"run": run, "source": "Inductor's graphs"})

    def count_dispatched(self, call: Callable[[], object]) -> dict[str, int]:
        """Count ATen operations that compute, and compiled regions."""
        profile = import_module("torch.autograd.profiler_legacy").profile  # without Kineto, which writes to stderr
        with profile() as profiled:
            call()
            self._backend.synchronise()
        names = (str(event.name) for event in profiled.function_events)
        operations = (name.removeprefix("aten::") for name in names if name.startswith(DISPATCHED))
        return Counter(name for name in operations if name not in MOVING)

    def peak_memory_bytes(self) -> int | None:
        """Return the peak that tensors occupied, by the device's allocator."""
        return self._backend.peak_memory_bytes()

    def reserved_memory_bytes(self) -> int | None:
        """Return the peak that the device's allocator held."""
        return self._backend.reserved_memory_bytes()

    def cache_bytes(self) -> int | None:
        """Return the size of the last-level cache, by the device's driver."""
        return self._backend.cache_bytes()

    def device_id(self) -> str | None:
        """Return the device's UUID, by its driver."""
        return self._backend.id()

    def describe_emulation(self) -> str:
        """Describe processes of one host that communicate through gloo, and so share its processor and memory."""
        if not (distributed.is_available() and distributed.is_initialized()):
            return ""
        processes = distributed.get_world_size()
        backend = str(distributed.get_backend())
        local = int(os.environ.get("LOCAL_WORLD_SIZE", processes))
        return f"{local} processes of one host communicate through gloo" if backend == "gloo" and local > 1 else ""

    def threads(self) -> int | None:
        """Return the number of threads within one operation."""
        number: int = torch.get_num_threads()
        return number

    def host_to_device_ratios(self) -> list[float]:
        """Return the ratios from the device's events; empty on a processor, which has none."""
        return list(self._backend.events.ratios) if self._backend.events else []
