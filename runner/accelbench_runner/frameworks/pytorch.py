"""Run PyTorch programs: eager and compile, on any of its backends."""

import copy
import inspect
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from accelbench.catalogue.results import without_dataclasses
from accelbench.catalogue.workload_checks import check_step
from accelbench.frameworks import Options
from accelbench.frameworks.pytorch import CompileOptions, EagerOptions
from accelbench.launch.facts import Device, GradMode, Precision
from accelbench.workload import Array, Program
from accelbench_runner.frameworks import torch_backends
from accelbench_runner.frameworks.adapter import (
    NOT_PLACED,
    Adapter,
    AdapterSettings,
    AutogradNeededError,
    RecompiledError,
    UnsupportedError,
    cast_complex,
    last_out,
    require_numbers,
    step_loop,
)
from accelbench_runner.frameworks.torch_accounting import Placement, TorchAccounting, replays_graphs
from accelbench_runner.frameworks.torch_captured import TorchCaptured, is_input
from accelbench_runner.frameworks.torch_cuda_graphs import SameAddresses, require_graphs, with_marked_iterations
from accelbench_runner.frameworks.torch_draws import draw_random_numbers_in
from accelbench_runner.frameworks.torch_operations import TransformWatch
from accelbench_runner.frameworks.torch_outputs import host_array
from accelbench_runner.frameworks.torch_profiler import TorchProfiler
from accelbench_runner.frameworks.torch_targets import TorchTargets
from accelbench_runner.frameworks.work import Work
from accelbench_runner.outputs import type_name

DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "tf32": torch.float32,
    "default": torch.float32,
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
"""Every module that has its own precision setting. If only cuda.matmul were set, cuDNN would still convolve in TF32."""
RECOMPILE_DETECTED = "Detected recompile"
"""Prefix of the exception that Dynamo raises under the stance `fail_on_recompile`."""
NOTHING_RECORDED = ("does not require grad", "doesn't require gradient", "requires_grad=False")
"""Messages of PyTorch for a backward pass, a hook or `retain_grad` on a tensor that autograd has not recorded."""
DIFFERENT_TYPES = ("same dtype", "same datatype", "mixed dtype", "expected scalar type", "should be the same")
"""Parts of PyTorch's messages about operands of different types."""
SAME_TYPE = "give the modules and tensors that the step makes itself, or keeps, that type by .to(x.dtype)"
"""Advice for an author whose step has operands of different types."""
RECOMPILE_LIMIT = "Dynamo recompile limit exceeded"
"""Prefix of the reason that Dynamo counts when it stops compiling a function, after too many compilations."""


class PyTorch(Adapter):
    """Adapt PyTorch.

    Precision, threads and autograd are settings of the whole process. So once an instance is initialised, earlier
    instances must run no more programs.
    """

    accounting: TorchAccounting

    def __init__(self, settings: AdapterSettings) -> None:
        self._settings = settings
        os.environ["KERAS_BACKEND"] = "torch"  # Keras reads it when a program imports it
        self._dtype = DTYPES[settings.precision]
        self._backend = torch_backends.find_backend(settings.backend)
        # An author's own mode, such as `compile-step`, compiles too.
        self._compiles = settings.mode.partition("-")[0] == "compile"
        self._replays_graphs = replays_graphs(settings)
        self._placement = Placement(self._backend.device)
        self.accounting = TorchAccounting(settings, self._backend, self._placement)
        self.targets = TorchTargets(self._placement, compiles=self._compiles)
        self.profiler = TorchProfiler(self._backend.device)
        rounded = DTYPES[settings.rounded or settings.precision]
        self._captured = TorchCaptured(self._backend.device, self._dtype, rounded)
        self.float_bytes = self._dtype.itemsize

    def versions(self) -> dict[str, str]:
        """Return the versions of PyTorch and of the device's libraries."""
        return {"torch": torch.__version__, **self._backend.versions()}

    def import_compiler(self) -> bool:
        """Import Dynamo and Inductor, which takes seconds, if the variant compiles; return whether it does."""
        if self._compiles:
            self.accounting.register_callbacks()  # imports both
        return self._compiles

    def initialise(self) -> None:
        """Apply the settings, and start the device with a first tensor."""
        torch.set_flush_denormal(True)  # before any thread starts: threads inherit the setting
        torch.set_num_threads(self._settings.threads)
        torch.set_grad_enabled(self._settings.differentiates)
        torch.set_default_dtype(self._dtype)  # of modules and tensors that a program makes itself
        if self._settings.rounded and self._settings.precision == "float64":
            # Launches in a narrower type, with which this run in float64 is compared, draw their numbers in that type.
            draw_random_numbers_in(DTYPES[self._settings.rounded])
        if self._settings.precision != "default":
            uses_tf32 = self._settings.precision == "tf32"
            # torch.export reads the older flag `allow_tf32`, which has to agree with `fp32_precision`. It restores only
            # the setting of cuDNN as a whole, so that one is set too.
            torch.backends.cudnn.allow_tf32 = uses_tf32
            for library in (torch.backends.cudnn, *FP32_BACKENDS.values()):
                library.fp32_precision = "tf32" if uses_tf32 else "ieee"
        options = self._settings.options
        torch.backends.cudnn.benchmark = isinstance(options, EagerOptions) and options.cudnn_benchmark
        self._backend.start(compiles=self._compiles)
        self.put(np.zeros(1))
        self._backend.synchronise()

    def in_float64(self) -> "PyTorch":
        """Return an initialised adapter for float64 that compiles nothing; the old one must not be used again."""
        torch.compiler.set_stance("force_eager")  # functions that the author has compiled run eagerly too
        adapter = PyTorch(replace(self._settings, precision="float64", mode="eager", options=Options()))
        adapter.initialise()
        return adapter

    def put(self, arrays: Any) -> Any:
        """Copy a pytree of arrays to the device, because a program may write into its inputs."""
        return pytree.tree_map(self._device_tensor, arrays)

    def _device_tensor(self, array: Array) -> torch.Tensor:
        """Copy the array to the device; floats become the precision policy's dtype.

        On a simulated device, the tensor has no numbers.
        """
        array = require_numbers(array)
        dtype = self._dtype if np.issubdtype(array.dtype, np.floating) else None
        if self._placement.simulation is not None:
            # Cast an empty array to find out the dtype: the numbers are not needed.
            empty = cast_complex(np.empty(0, array.dtype), self._settings.precision)
            dtype = dtype or torch.from_numpy(empty).dtype
            return torch.empty(array.shape, dtype=dtype, device=self._placement.device)
        array = cast_complex(array, self._settings.precision)
        return torch.tensor(array, dtype=dtype, device=self._placement.device)

    def in_mode(self, function: Callable[..., Any], *, one_program: bool = False) -> Callable[..., Any]:
        """Return the function, compiled if the variant's mode is `compile`; `one_program` demands a single graph.

        Raises UnsupportedError for a mode other than `compile` and `eager`.
        """
        mode, options = self._settings.mode, self._settings.options
        if mode == "compile" and isinstance(options, CompileOptions):
            fullgraph = options.fullgraph or one_program
            compiled: Callable[..., Any] = torch.compile(
                function, mode=options.mode, dynamic=options.dynamic, fullgraph=fullgraph
            )
            return compiled
        if mode != "eager":
            raise UnsupportedError(f"PyTorch has no mode {mode}. {NOT_PLACED}")
        return function

    def convert_captured(self, program: Program) -> Program:
        """Convert the floats that the program's step captures to the policy's type; return the program to prepare.

        With autograd, the returned program detaches its inputs in each call. On a simulated device, where tensors have
        no numbers, the program is returned unchanged.
        """
        if self._placement.simulation is not None:
            return program
        self._captured.convert_captured(program)
        if self._settings.differentiates:
            return replace(program, step=_with_detached_inputs(program))
        return program

    def restore_captured(self) -> None:
        """Restore captured tensors, modules and optimizers, in place, as they were before the first call."""
        self._captured.restore()

    def changed_captured(self) -> list[str]:
        """Return the names of captured tensors that calls have changed."""
        return self._captured.changed()

    def prepare(self, program: Program) -> Work:
        """Return the call to time, of `program.inner` steps, in the variant's mode."""
        runs_as_written = program.placed  # the author has compiled what should be
        if runs_as_written and self._replays_graphs:
            program = replace(program, step=with_marked_iterations(program.step))
        call, batches = step_loop(program)
        self._placement.placed = runs_as_written
        if not runs_as_written:
            call = self.in_mode(call)
            call = with_marked_iterations(call) if self._replays_graphs else call
        copy_state = SameAddresses().copy if self._replays_graphs else _deep_copy

        def fresh_state() -> Any:
            """Return a copy of the program's initial state for a block, and restore what calls changed in place."""
            self._captured.restore()
            # Nothing is computed on a simulated device, so its state never changes.
            return copy_state(program.state) if self._placement.simulation is None else program.state

        def check_first_call(result: Any) -> None:
            """Check the result of the first call, and free the copies of captured tensors that it did not change."""
            check_step(program.step, result)
            self._captured.forget_unchanged()

        return Work(
            fresh=fresh_state,
            call=call,
            batches=batches,
            synchronise=lambda _: self._backend.synchronise(),
            events=self._backend.events,
            units=program.inner * program.units,
            last_out=last_out(program),
            check=check_first_call,
        )

    @contextmanager
    def forbid_compiling(self) -> Iterator[None]:
        """Return a context that raises RecompiledError if Dynamo recompiles a function.

        Entering it raises RecompiledError if a function is already past its recompile limit, and UnsupportedError if
        the mode should replay CUDA graphs and torch.compile could record none.
        """
        if not self._compiles:
            yield
            return
        if self._replays_graphs:
            require_graphs()  # the calls so far must have recorded CUDA graphs
        failure_reasons = import_module("torch._dynamo.utils").counters["unimplemented"]
        # Past its recompile limit, a function runs eagerly on new inputs, which no stance of Dynamo detects.
        if any(reason.startswith(RECOMPILE_LIMIT) for reason in failure_reasons):
            raise RecompiledError(
                "a function is past its recompile limit: inputs that fit no compiled version run eagerly"
            )
        torch.compiler.set_stance("fail_on_recompile")
        try:
            yield
        except RuntimeError as error:
            if RECOMPILE_DETECTED in str(error):
                raise RecompiledError(str(error)) from error
            raise
        finally:
            torch.compiler.set_stance("default")

    def to_numpy(self, arrays: Mapping[str, Any]) -> dict[str, Array]:
        """Copy tensors to the host; floats become float64.

        Raises NotNumbersError for sparse, nested, quantised and other tensors that are not arrays of numbers.
        """
        return {name: host_array(tensor) for name, tensor in arrays.items()}

    def device(self, value: Any) -> Device:
        """Describe the devices of the tensors in `value`, and of the parameters of its modules."""
        leaves = pytree.tree_leaves(without_dataclasses(value))
        modules = [leaf for leaf in leaves if isinstance(leaf, torch.nn.Module)]
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        tensors += [parameter for module in modules for parameter in module.parameters()]
        devices = {tensor.device for tensor in tensors}
        backend_type = self._placement.device.type
        # The backend knows the models of its own devices. For any other, such as the host's CPU, name the type.
        models = {self._backend.model(device) if device.type == backend_type else device.type for device in devices}
        return self._settings.describe_device({device.type for device in devices}, models, len(devices))

    def precision(self) -> Precision:
        """Read back PyTorch's settings of precision, and find out whether the device flushes denormals to zero."""
        smallest_normal = torch.tensor(np.finfo(np.float32).tiny, device=self._placement.device)
        half = smallest_normal * 0.5
        is_flushed = bool(half == 0)  # compared on the device: the CPU would take a denormal for 0
        return Precision(
            policy=self._settings.precision,
            dtype=str(self._dtype).removeprefix("torch."),
            matmul={name: backend.fp32_precision for name, backend in FP32_BACKENDS.items()},
            flush_denormal=is_flushed,
        )

    def gradients(self) -> GradMode:
        """Return `on` or `off`, the mode of autograd in this thread now: a step may have switched it."""
        return "on" if torch.is_grad_enabled() else "off"

    def drain(self) -> None:
        """Wait for all streams of the device."""
        self._backend.synchronise()

    def ready(self, value: Any) -> bool | None:  # noqa: ARG002 - a tensor does not report it
        """Return True if the device's current stream is idle, False if not; None on a CPU."""
        return self._backend.ready()

    def product(self, size: int) -> Callable[[], None]:
        """Return a function that multiplies two (size, size) matrices and waits for the result."""
        x = self._filled(size, size)
        return self._synchronise_after(partial(torch.mm, x, x, out=torch.empty_like(x)))

    def triad(self, elements: int) -> Callable[[], None]:
        """Return a function that computes `a <- b + 0.5 a` in one pass and waits for the result."""
        a, b = self._filled(elements), self._filled(elements)
        return self._synchronise_after(partial(torch.add, b, a, alpha=0.5, out=a))  # alpha scales the second operand

    def overwrite(self, size: int) -> Callable[[], None]:
        """Return a function that writes `size` bytes of the device's memory and waits."""
        array = torch.empty(size, dtype=torch.uint8, device=self._placement.device)
        return self._synchronise_after(array.zero_)

    def _filled(self, *shape: int) -> torch.Tensor:
        """Return a tensor of 0.75: hardware may compute with zeros and denormals at another speed."""
        return torch.full(shape, 0.75, dtype=self._dtype, device=self._placement.device)

    def _synchronise_after(self, call: Callable[[], Any]) -> Callable[[], None]:
        """Return a function that makes the call and waits for the device."""

        def run() -> None:
            call()
            self._backend.synchronise()

        return run

    def out_of_memory(self, error: BaseException) -> bool:
        """Return True if the error means that memory ran out."""
        return isinstance(error, torch.OutOfMemoryError) or "DefaultCPUAllocator: can't allocate memory" in str(error)

    def advise(self, error: BaseException) -> str:
        """Return advice for the author if the error is about tensors of different types, or else an empty string."""
        is_about_types = isinstance(error, RuntimeError) and any(text in str(error) for text in DIFFERENT_TYPES)
        if not is_about_types:
            return ""
        return f"the inputs are {type_name(torch.empty(0, dtype=self._dtype))}: {SAME_TYPE}"

    def needs_gradients(self, error: BaseException) -> bool:
        """Return True if the error means that the step computes gradients while autograd is off."""
        nothing_recorded = any(message in str(error) for message in NOTHING_RECORDED)
        autograd_is_off = not self._settings.differentiates
        return super().needs_gradients(error) or (nothing_recorded and autograd_is_off)

    @contextmanager
    def autograd_required(self) -> Iterator[None]:
        """Return a context that raises AutogradNeededError if code in it uses `torch.func.grad` while autograd is off.

        While autograd is off, a derivative of a derivative may be wrong, because PyTorch computes derivatives by
        shortcuts that cannot be differentiated.
        """
        if self._settings.differentiates:  # autograd is on
            yield
            return
        with TransformWatch() as watch:
            yield
        if watch.transformed:  # `torch.func.grad` or the like ran
            raise AutogradNeededError


def _with_detached_inputs(program: Program) -> Callable[[Any, Any], Any]:
    """Return the program's step, changed to detach its inputs, so that gradients do not accumulate in them over calls.

    A batch has the arguments of a function by name: a mapping for one call, or a list of mappings for several calls.
    """
    step, first_batch = program.step, program.batches[0]
    makes_one_call = isinstance(first_batch, Mapping)
    first_arguments = first_batch if makes_one_call else first_batch[0]
    inputs = {name for name, value in first_arguments.items() if is_input(value)}

    def detach(arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments with each input replaced by a new tensor, which shares its numbers."""
        return {name: value.detach() if name in inputs else value for name, value in arguments.items()}

    def step_with_detached_inputs(state: Any, batch: Any) -> Any:
        detached_batch = detach(batch) if makes_one_call else list(map(detach, batch))
        return step(state, detached_batch)

    # Let `inspect` show the program's own step.
    vars(step_with_detached_inputs).update(__signature__=inspect.signature(step), __wrapped__=step)
    return step_with_detached_inputs


def _deep_copy(state: Any) -> Any:
    """Return a deep copy of a state, which may contain sparse tensors."""
    tensors = [leaf for leaf in pytree.tree_leaves(state) if isinstance(leaf, torch.Tensor)]
    # `deepcopy` fails on sparse tensors, but takes finished copies by `id` as its argument `memo`.
    clones = {id(tensor): tensor.clone() for tensor in tensors if tensor.layout != torch.strided}
    return copy.deepcopy(state, memo=clones)
