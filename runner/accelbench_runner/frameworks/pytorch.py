"""Run PyTorch programs: eager and compile, on any of its backends."""

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from accelbench.catalogue.workload_checks import check_step
from accelbench.frameworks.pytorch import CompileOptions
from accelbench.launch.facts import Device, GradMode, Precision
from accelbench.workload import Array, Program
from accelbench_runner.frameworks import torch_backends
from accelbench_runner.frameworks.adapter import (
    NOT_PLACED,
    Adapter,
    AdapterSettings,
    RecompiledError,
    UnsupportedError,
    cast_complex,
    last_out,
    step_loop,
)
from accelbench_runner.frameworks.torch_accounting import Placement, TorchAccounting
from accelbench_runner.frameworks.torch_targets import TorchTargets
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
"""Every module that has its own precision setting. If only cuda.matmul were set, cuDNN would still convolve in TF32."""
NO_RECOMPILE = "Detected recompile"
"""Prefix of the exception that Dynamo raises under the stance `fail_on_recompile`."""
RECOMPILE_LIMIT = "Dynamo recompile limit exceeded"
"""Prefix of the reason that Dynamo counts when it stops compiling a function, after too many compilations."""


class PyTorch(Adapter):
    """Adapt PyTorch; a process creates one instance."""

    accounting: TorchAccounting

    def __init__(self, settings: AdapterSettings) -> None:
        self._settings = settings
        self._dtype = DTYPES[settings.precision]
        self._backend = torch_backends.find(settings.backend)
        self._compiles = settings.mode.partition("-")[0] == "compile"
        self._placement = Placement(self._backend.device)
        self.accounting = TorchAccounting(settings, self._backend, self._placement)
        self.targets = TorchTargets(self._placement, compiles=self._compiles)
        self.float_bytes = self._dtype.itemsize

    def versions(self) -> dict[str, str]:
        """Return the versions of PyTorch and of the device's libraries."""
        return {"torch": torch.__version__, **self._backend.versions()}

    def import_compiler(self) -> bool:
        """Import Dynamo and Inductor if the variant compiles; this takes seconds."""
        if self._compiles:
            self.accounting.listen()  # imports both
        return self._compiles

    def initialise(self) -> None:
        """Apply the settings, and start the device with a first tensor."""
        torch.set_flush_denormal(True)  # before any thread starts: threads inherit the setting
        torch.set_num_threads(self._settings.threads)
        torch.set_grad_enabled(self._settings.differentiates)
        for library in FP32_BACKENDS.values():
            library.fp32_precision = "tf32" if self._settings.precision == "tf32" else "ieee"
        self._backend.start(compiles=self._compiles)
        self.put(np.zeros(1))
        self._backend.synchronise()

    def put(self, arrays: Any) -> Any:
        """Copy arrays to the device, because a program may write into its inputs."""
        return pytree.tree_map(self._tensor, arrays)

    def _tensor(self, array: Array) -> torch.Tensor:
        """Copy the array to the device, with floats in the precision policy's dtype.

        On a simulated device, the tensor has no numbers.
        """
        array = np.asarray(array)
        dtype = self._dtype if np.issubdtype(array.dtype, np.floating) else None
        if self._placement.simulation is not None:
            # Cast no numbers, but an empty array, to find out the dtype.
            empty = cast_complex(np.empty(0, array.dtype), self._settings.precision)
            dtype = dtype or torch.from_numpy(empty).dtype
            return torch.empty(array.shape, dtype=dtype, device=self._placement.device)
        array = cast_complex(array, self._settings.precision)
        return torch.tensor(array, dtype=dtype, device=self._placement.device)

    def prepare(self, program: Program) -> Work:
        """Set up the call in the variant's mode."""
        call, batches = step_loop(program)
        mode, options = self._settings.mode, self._settings.options
        self._placement.placed = program.placed
        if program.placed or mode == "eager":
            pass  # the call runs as it is written: the author of a placed program has compiled it
        elif mode == "compile" and isinstance(options, CompileOptions):
            call = torch.compile(call, mode=options.mode, dynamic=options.dynamic, fullgraph=options.fullgraph)
        else:
            raise UnsupportedError(f"PyTorch has no mode {mode}. {NOT_PLACED}")

        def fresh_state() -> Any:
            # Nothing is computed on a simulated device, so its state never changes.
            return _deep_copy(program.state) if self._placement.simulation is None else program.state

        return Work(
            fresh=fresh_state,
            call=call,
            batches=batches,
            synchronise=lambda _: self._backend.synchronise(),
            events=self._backend.events,
            units=program.inner * program.units,
            last_out=last_out(program),
            check=partial(check_step, program.step),
        )

    @contextmanager
    def forbid_compiling(self) -> Iterator[None]:
        """Return a context that raises RecompiledError if Dynamo recompiles a function."""
        if not self._compiles:
            yield
            return
        failure_reasons = import_module("torch._dynamo.utils").counters["unimplemented"]
        # Past the limit, new inputs run eagerly, and no stance of Dynamo detects that.
        if any(reason.startswith(RECOMPILE_LIMIT) for reason in failure_reasons):
            raise RecompiledError(
                "a function is past its recompile limit: inputs that fit no compiled version run eagerly"
            )
        torch.compiler.set_stance("fail_on_recompile")
        try:
            yield
        except RuntimeError as error:
            if NO_RECOMPILE in str(error):
                raise RecompiledError(str(error)) from error
            raise
        finally:
            torch.compiler.set_stance("default")

    def to_numpy(self, arrays: Mapping[str, Any]) -> dict[str, Array]:
        """Copy tensors to the host; floats become float64."""
        converted = {}
        for name, tensor in arrays.items():
            host_tensor = tensor.detach().cpu()
            if host_tensor.is_floating_point():
                host_tensor = host_tensor.double()
            converted[name] = host_tensor.numpy()
        return converted

    def device(self, value: Any) -> Device:
        """Describe the devices of the tensors and modules in `value`."""
        leaves = pytree.tree_leaves(value)
        modules = [leaf for leaf in leaves if isinstance(leaf, torch.nn.Module)]
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        tensors += [parameter for module in modules for parameter in module.parameters()]
        devices = {tensor.device for tensor in tensors}
        backend_type = self._placement.device.type
        models = {self._backend.model(device) if device.type == backend_type else device.type for device in devices}
        return self._settings.describe_device({device.type for device in devices}, models, len(devices))

    def precision(self) -> Precision:
        """Read back the settings, and find out whether denormals are flushed."""
        # The comparison runs on the device too: the CPU would flush the denormal.
        smallest_normal = torch.tensor(np.finfo(np.float32).tiny, device=self._placement.device)
        return Precision(
            policy=self._settings.precision,
            dtype=str(self._dtype).removeprefix("torch."),
            matmul={name: backend.fp32_precision for name, backend in FP32_BACKENDS.items()},
            flush_denormal=bool(smallest_normal * 0.5 == 0),
        )

    def gradients(self) -> GradMode:
        """Read whether autograd is on in this thread.

        A step may have changed it.
        """
        return "on" if torch.is_grad_enabled() else "off"

    def drain(self) -> None:
        """Wait for all streams of the device."""
        self._backend.synchronise()

    def ready(self, value: Any) -> bool | None:  # noqa: ARG002 - a tensor does not report it
        """Return whether the device's current stream is idle; None on a CPU."""
        return self._backend.ready()

    def product(self, size: int) -> Callable[[], None]:
        """Return a call that multiplies two (size, size) matrices and waits."""
        x = self._normal_numbers(size, size)
        return self._synchronise_after(partial(torch.mm, x, x, out=torch.empty_like(x)))

    def triad(self, elements: int) -> Callable[[], None]:
        """Return a call that computes `a <- b + 0.5 a` in one pass and waits."""
        a, b = self._normal_numbers(elements), self._normal_numbers(elements)
        return self._synchronise_after(partial(torch.add, b, a, alpha=0.5, out=a))  # alpha scales the second operand

    def overwrite(self, size: int) -> Callable[[], None]:
        """Return a call that writes `size` bytes of the device's memory and waits."""
        array = torch.empty(size, dtype=torch.uint8, device=self._placement.device)
        return self._synchronise_after(array.zero_)

    def _normal_numbers(self, *shape: int) -> torch.Tensor:
        # Hardware may handle zeros and denormals at another speed.
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


def _deep_copy(state: Any) -> Any:
    """Return a deep copy of the state."""
    tensors = [leaf for leaf in pytree.tree_leaves(state) if isinstance(leaf, torch.Tensor)]
    # `deepcopy` fails on sparse tensors; it finds these clones in its memo.
    clones = {id(tensor): tensor.clone() for tensor in tensors if tensor.layout != torch.strided}
    return copy.deepcopy(state, clones)
