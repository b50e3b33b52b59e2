"""PyTorch: eager and compile, on any of its backends."""

import copy
import math
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import distributed
from torch.utils import _pytree as pytree

from accelbench import figures
from accelbench.catalogue.workload_checks import check_step
from accelbench.frameworks.pytorch import FRAMEWORK, CompileOptions
from accelbench.launch.facts import Arithmetic, CompileCache, CompiledFor, Device, ExecutableSize, GradMode, Precision
from accelbench.machine import memory
from accelbench.targets import Target
from accelbench.workload import Array, Operations, Program
from accelbench_runner.frameworks import torch_backends
from accelbench_runner.frameworks.adapter import (
    NOT_PLACED,
    Adapter,
    AdapterSettings,
    Compilations,
    Counted,
    RecompiledError,
    UnsupportedError,
    cached_files,
    parts_in,
    step_loop,
)
from accelbench_runner.frameworks.torch_backends import CACHE
from accelbench_runner.frameworks.work import Work

DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "tf32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}
FP32_BACKENDS = {
    "cuda.matmul": torch.backends.cuda.matmul,
    "cudnn.conv": torch.backends.cudnn.conv,
    "cudnn.rnn": torch.backends.cudnn.rnn,
    "mkldnn.matmul": torch.backends.mkldnn.matmul,
    "mkldnn.conv": torch.backends.mkldnn.conv,
    "mkldnn.rnn": torch.backends.mkldnn.rnn,
}
"""Every place that has a say of its own: cuda.matmul alone would leave cuDNN's convolutions at TF32."""
PRODUCTS = {
    **dict.fromkeys(("mm", "addmm", "addmm_", "bmm", "baddbmm", "baddbmm_", "addmv", "addmv_", "dot", "vdot"), 1),
    **dict.fromkeys(
        (
            "_scaled_dot_product_flash_attention",
            "_scaled_dot_product_flash_attention_for_cpu",
            "_scaled_dot_product_efficient_attention",
            "_scaled_dot_product_cudnn_attention",
        ),
        2,
    ),
}
"""Matrix products in each of ATen's operations that does any by itself: `matmul` and `linear` call one of these."""
CONVOLUTIONS = ("convolution", "convolution_backward")
DISPATCHED = ("aten::", "Torch-Compiled Region")
"""How the events begin by which operations, and what was compiled, tell the profiler that they run."""
MOVING = {
    *("_to_copy", "_unsafe_view", "arange", "as_strided", "cat", "clone", "contiguous", "copy", "copy_", "detach"),
    *("empty", "empty_like", "empty_strided", "expand", "fill_", "full", "full_like", "gather", "index", "index_put"),
    *("index_select", "item", "masked_fill", "narrow", "new_empty", "new_zeros", "ones", "ones_like", "permute"),
    *("repeat", "reshape", "resolve_conj", "resolve_neg", "scalar_tensor", "scatter", "select", "select_scatter"),
    *("slice", "slice_scatter", "split", "squeeze", "stack", "t", "to", "transpose", "unsqueeze", "view", "where"),
    *("_local_scalar_dense", "zero_", "zeros", "zeros_like"),
}
"""ATen's operations that compute nothing."""
NO_DRIVER = "torch.compile generates its kernels for a device whose driver is there: ask for pytorch/eager"
NO_RECOMPILE = "Detected recompile"
"""How the exception begins that the stance `fail_on_recompile` makes Dynamo raise."""
PAST_LIMIT = "Dynamo recompile limit exceeded"
"""How the reason begins that Dynamo counts once a function has been compiled too often."""


class PyTorch(Adapter):
    """The adapter; one in a process."""

    def __init__(self, settings: AdapterSettings) -> None:
        self._settings = settings
        self._dtype = DTYPES[settings.precision]
        self._backend = torch_backends.find(settings.backend)
        self._device = self._backend.device
        self._compiles = settings.mode.partition("-")[0] == "compile"
        self._cached = cached_files(CACHE)
        self._causes: list[str] = []
        self._graphs: Any = None
        self._account: Any = None
        self._listed = self._placed = False
        self.float_bytes = self._dtype.itemsize

    def versions(self) -> dict[str, str]:
        """Of PyTorch, and of what it computes with on the device."""
        return {"torch": torch.__version__, **self._backend.versions()}

    def import_compiler(self) -> bool:
        """Dynamo and Inductor: seconds that an eager launch does without."""
        if not self._compiles:
            return False
        callbacks = import_module("torch._dynamo.callback")
        callbacks.callback_handler.register_start_callback(self._compiling)
        import_module("torch._inductor.compile_fx")
        self._graphs = import_module("accelbench_runner.frameworks.torch_graphs").Compiled()
        inductor: Any = import_module("torch._inductor.config")
        inductor.post_grad_custom_post_pass = self._graphs
        return True

    def initialise(self) -> None:
        """Denormals before anything starts a thread: threads inherit the setting. A CPU launch never touches CUDA."""
        torch.set_flush_denormal(True)
        torch.set_num_threads(self._settings.threads)
        torch.set_grad_enabled(self._settings.differentiates)
        for library in FP32_BACKENDS.values():
            library.fp32_precision = "tf32" if self._settings.precision == "tf32" else "ieee"
        self._backend.wake(compiles=self._compiles)
        self.put(np.zeros(1))
        self._backend.synchronise()

    def put(self, arrays: Any) -> Any:
        """Copies, always: a program may write into what it is given."""
        return pytree.tree_map(self._tensor, arrays)

    def _tensor(self, array: Array) -> torch.Tensor:
        array = np.asarray(array)
        dtype = self._dtype if np.issubdtype(array.dtype, np.floating) else None
        if self._account is not None:
            own = torch.from_numpy(parts_in(np.empty(0, array.dtype), self._settings.precision)).dtype
            return torch.empty(array.shape, dtype=dtype or own, device=self._device)
        array = parts_in(array, self._settings.precision)
        return torch.tensor(array, dtype=dtype, device=self._device)

    def prepare(self, program: Program) -> Work:
        """Under compile the whole call is wrapped, so that the steps in it are unrolled into one graph."""
        call, batches = step_loop(program)
        mode, options = self._settings.mode, self._settings.options
        self._listed = program.inner > 1
        self._placed = program.placed
        if program.placed or mode == "eager":
            pass
        elif mode == "compile" and isinstance(options, CompileOptions):
            call = torch.compile(call, mode=options.mode, dynamic=options.dynamic, fullgraph=options.fullgraph)
        else:
            raise UnsupportedError(f"PyTorch has no mode {mode}. {NOT_PLACED}")
        return Work(
            fresh=lambda: _copied(program.state) if self._account is None else program.state,
            call=call,
            batches=batches,
            synchronise=lambda _: self._backend.synchronise(),
            events=self._backend.events,
            units=program.inner * program.units,
            check=partial(check_step, program.step),
        )

    def for_target(self, target: Target) -> AbstractContextManager[None]:
        """On arrays that have no numbers; what torch.compile would generate cannot be known without a driver."""
        if self._compiles:
            raise UnsupportedError(NO_DRIVER)
        if target.platform not in FRAMEWORK.platforms:
            there = figures.listed(FRAMEWORK.platforms)
            raise UnsupportedError(f"{FRAMEWORK.title} computes on {there}, and not on {target.platform}")
        return self._without_numbers(target)

    @contextmanager
    def _without_numbers(self, target: Target) -> Iterator[None]:
        torch_targets = import_module("accelbench_runner.frameworks.torch_targets")
        with torch_targets.absent(target.platform) as self._account:
            self._device = self._account.device
            yield

    def compile_for(self, program: Program, work: Work, target: Target) -> tuple[CompiledFor, ExecutableSize]:
        """Nothing is compiled: a call's operations are dispatched one by one, as eager PyTorch would."""
        torch_targets = import_module("accelbench_runner.frameworks.torch_targets")
        size = torch_targets.called(self._account, program, work.call, work.batches)
        there = target.chip.memory_bytes or memory.available()
        fits = there is None or size.peak_bytes <= there
        return CompiledFor(fits=int(fits), device_memory_bytes=there, dispatched=True), size

    def _compiling(self, arguments: Any) -> None:
        self._causes.append(f"{arguments.callback_trigger.name.lower()} {arguments.compile_id} was compiled")

    def compilations(self) -> Compilations:
        """Dynamo's own share is what its frames took without the backend that they called."""
        if not self._compiles:
            return Compilations()
        metrics = import_module("torch._dynamo.utils").compilation_time_metrics
        spent = {name: sum(times) for name, times in metrics.items()}
        forward = spent.get("OutputGraph.call_user_compiler", 0.0)
        backward = spent.get("compile_fx.<locals>.bw_compiler", 0.0)
        frames = spent.get("_compile.compile_inner", 0.0)
        seconds = {"dynamo": frames - forward, "backend": forward + backward}
        return Compilations(seconds=seconds, causes=list(self._causes))

    def compile_cache(self) -> CompileCache | None:
        """Of AOTAutograd's cache and Inductor's, which the former's hits may leave unasked."""
        if not self._compiles:
            return None
        counters = import_module("torch._dynamo.utils").counters
        graphs, autograd = counters["inductor"], counters["aot_autograd"]
        return CompileCache(
            hits=graphs["fxgraph_cache_hit"] + autograd["autograd_cache_hit"],
            misses=graphs["fxgraph_cache_miss"] + autograd["autograd_cache_miss"],
            before=self._cached,
        )

    @contextmanager
    def forbid_compiling(self) -> Iterator[None]:
        """Past its recompile limit a function runs eagerly, and no stance tells: that it got there is told instead."""
        if not self._compiles:
            yield
            return
        refused = import_module("torch._dynamo.utils").counters["unimplemented"]
        if any(reason.startswith(PAST_LIMIT) for reason in refused):
            raise RecompiledError("a function is past its recompile limit: what no compiled version fits runs eagerly")
        torch.compiler.set_stance("fail_on_recompile")
        try:
            yield
        except RuntimeError as error:
            if NO_RECOMPILE in str(error):
                raise RecompiledError(str(error)) from error
            raise
        finally:
            torch.compiler.set_stance("default")

    def operations(self, work: Work) -> Counted | None:
        """Of one more call, as PyTorch dispatches them, from compiled code too; templates of Inductor's own are not.

        A TorchDispatchMode would do for eager code, but compiled functions run eagerly under one.
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
        found = Operations(
            products=sum(counts.get(f"aten::{name}", 0) * number for name, number in PRODUCTS.items()),
            convolutions=sum(counts.get(f"aten::{name}", 0) for name in CONVOLUTIONS),
        )
        return Counted(found, "the operations dispatched")

    def dispatched(self, call: Callable[[], object]) -> dict[str, int]:
        """Of ATen's, and of regions that were compiled; what only moves numbers or looks at them is left out."""
        profile = import_module("torch.autograd.profiler_legacy").profile  # without Kineto, which writes to stderr
        with profile() as profiled:
            call()
            self._backend.synchronise()
        names = (str(event.name) for event in profiled.function_events)
        operations = (name.removeprefix("aten::") for name in names if name.startswith(DISPATCHED))
        return Counter(name for name in operations if name not in MOVING)

    def gradients(self) -> GradMode:
        """The mode of this thread, which a step may have changed."""
        return "on" if torch.is_grad_enabled() else "off"

    def arithmetic(self, work: Work) -> Arithmetic:
        """As ATen's operations are dispatched, and as Inductor's passes have left them."""
        torch_arithmetic = import_module("accelbench_runner.frameworks.torch_arithmetic")
        if self._account is not None:
            return _counted(self._account)
        counted = torch_arithmetic.Dispatched()
        state = work.fresh()
        try:
            with torch_arithmetic.as_written(), counted:
                work.call(state, work.batches)
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001 - torch's CheckpointException is one; no launch fails for what is counted
            return Arithmetic()
        found = _counted(counted)
        if not self._compiles:
            return found
        whole = self._graphs is not None and self._graphs.graphs and not self._placed
        run = self._graphs.operations if whole and not math.isnan(self._graphs.operations) else None
        return found.model_copy(update={"run": run, "source": "Inductor's graphs"})

    def last(self, out: Any) -> Any:
        """A loop lists the outs, a single step has one."""
        return out[-1] if self._listed else out

    def to_numpy(self, arrays: Mapping[str, Any]) -> dict[str, Array]:
        """Floats as float64, which holds every other exactly."""
        tensors = {name: tensor.detach().cpu() for name, tensor in arrays.items()}
        return {
            name: (tensor.double() if tensor.is_floating_point() else tensor).numpy()
            for name, tensor in tensors.items()
        }

    def device(self, value: Any) -> Device:
        """Asked of the tensors, and of a model's parameters: a step may return nothing else but numbers of Python's."""
        leaves = pytree.tree_leaves(value)
        modules = [leaf for leaf in leaves if isinstance(leaf, torch.nn.Module)]
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        devices = {tensor.device for tensor in [*tensors, *(each for one in modules for each in one.parameters())]}
        models = {self._backend.model(each) if each.type == self._device.type else each.type for each in devices}
        return self._settings.placed({each.type for each in devices}, models, len(devices))

    def precision(self) -> Precision:
        """Flushing of denormals is probed, in the type that has them everywhere.

        On the device: the processor, which is told to, would flush what comes from a device that does not.
        """
        least = torch.tensor(np.finfo(np.float32).tiny, device=self._device)
        return Precision(
            policy=self._settings.precision,
            dtype=str(self._dtype).removeprefix("torch."),
            matmul={name: backend.fp32_precision for name, backend in FP32_BACKENDS.items()},
            flush_denormal=bool(least * 0.5 == 0),
        )

    def threads(self) -> int | None:
        """Inside one operation."""
        number: int = torch.get_num_threads()
        return number

    def peak_memory_bytes(self) -> int | None:
        """Of the device's allocator."""
        return self._backend.peak_memory_bytes()

    def reserved_memory_bytes(self) -> int | None:
        """Of the same."""
        return self._backend.reserved_memory_bytes()

    def device_id(self) -> str | None:
        """As its driver tells it."""
        return self._backend.id()

    def emulated(self) -> str:
        """Several processes of one host that talk through gloo share its processor and its memory."""
        if not (distributed.is_available() and distributed.is_initialized()):
            return ""
        processes = distributed.get_world_size()
        backends = str(distributed.get_backend())
        here = int(os.environ.get("LOCAL_WORLD_SIZE", processes))
        return f"{here} processes of one host talk through gloo" if backends == "gloo" and here > 1 else ""

    def host_over_device(self) -> list[float]:
        """By the device's events."""
        return list(self._backend.events.ratios) if self._backend.events else []

    def drain(self) -> None:
        """All streams of the device."""
        self._backend.synchronise()

    def ready(self, value: Any) -> bool | None:  # noqa: ARG002 - tensors do not say
        """A device's stream can be."""
        return self._backend.ready()

    def overwrite(self, size: int) -> Callable[[], None]:
        """With zeros."""
        return self._finished(torch.empty(size, dtype=torch.uint8, device=self._device).zero_)

    def cache_bytes(self) -> int | None:
        """As its driver tells it."""
        return self._backend.cache_bytes()

    def product(self, size: int) -> Callable[[], None]:
        """Into memory that is there already."""
        x = self._ordinary(size, size)
        return self._finished(partial(torch.mm, x, x, out=torch.empty_like(x)))

    def triad(self, elements: int) -> Callable[[], None]:
        """One pass: `add` scales its second operand as it goes."""
        a, b = self._ordinary(elements), self._ordinary(elements)
        return self._finished(partial(torch.add, b, a, alpha=0.5, out=a))

    def _ordinary(self, *shape: int) -> torch.Tensor:
        """Neither zeros nor denormals: what hardware makes of them is no limit of other numbers."""
        return torch.full(shape, 0.75, dtype=self._dtype, device=self._device)

    def _finished(self, call: Callable[[], Any]) -> Callable[[], None]:
        def called() -> None:
            call()
            self._backend.synchronise()

        return called

    def out_of_memory(self, error: BaseException) -> bool:
        """CUDA's allocator has an exception of its own, the CPU's only a sentence."""
        return isinstance(error, torch.OutOfMemoryError) or "DefaultCPUAllocator: can't allocate memory" in str(error)


def _counted(dispatched: Any) -> Arithmetic:
    """What is dispatched one by one runs as it was written."""
    return Arithmetic(
        written=dispatched.operations,
        run=dispatched.operations,
        source="the operations dispatched",
        types=sorted(dispatched.types),
        recorded=dispatched.recorded,
    )


def _copied(state: Any) -> Any:
    """A deep copy; `copy` alone asks every tensor for its storage, which sparse ones do not have."""
    tensors = (leaf for leaf in pytree.tree_leaves(state) if isinstance(leaf, torch.Tensor))
    return copy.deepcopy(state, {id(tensor): tensor.clone() for tensor in tensors if tensor.layout != torch.strided})
