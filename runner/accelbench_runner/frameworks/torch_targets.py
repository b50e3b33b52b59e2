"""Simulate absent devices for eager PyTorch: operations are dispatched on arrays with shapes and without numbers.

FakeTensor computes what each operation would return on the device. `DeviceAccount` records what the device's memory
would hold meanwhile.
"""

import gc
import warnings
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)
from torch.optim import optimizer
from torch.utils import _pytree as pytree

from accelbench import figures
from accelbench.frameworks.pytorch import FRAMEWORK
from accelbench.launch.facts import CompiledFor, ExecutableSize
from accelbench.machine import memory
from accelbench.targets import Target
from accelbench.workload import Program
from accelbench_runner.frameworks.adapter import Targets, UnsupportedError
from accelbench_runner.frameworks.torch_accounting import Placement
from accelbench_runner.frameworks.torch_operations import DispatchCounter
from accelbench_runner.frameworks.work import Work

DEVICE_QUERY = torch.ops.prim.device.default
"""PyTorch's C++ reads an array's device with this operation."""
HOST = torch.device("cpu")
BLOCK_BYTES = {"cuda": 512}
"""Granularity of the allocator by device type (c10/cuda/CUDACachingAllocator)."""
NO_KERNEL = {
    *("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "lift_fresh", "set_", "resize_"),
    *("_local_scalar_dense", "_record_function_enter_new", "_record_function_exit", "_unsafe_view", "_reshape_alias"),
}
"""Operations, apart from views, for which no kernel runs."""
NO_DRIVER = "torch.compile generates kernels only if the device's driver is installed: use pytorch/eager"
NO_NUMBERS = "the step reads a number or a shape that depends on numbers ({}), but nothing is computed for a target"
NO_AUTOCAST = "the step uses torch.autocast, which PyTorch disables without such a device"


class TorchTargets(Targets):
    """Dispatch a call's operations for the target one by one, as eager PyTorch would; nothing is compiled."""

    def __init__(self, placement: Placement, *, compiles: bool) -> None:
        self._placement, self._compiles = placement, compiles
        self._account: DeviceAccount | None = None

    def for_target(self, target: Target) -> AbstractContextManager[None]:
        """Return a context in which arrays have no numbers; torch.compile is refused, as it needs the driver."""
        if self._compiles:
            raise UnsupportedError(NO_DRIVER)
        if target.platform not in FRAMEWORK.platforms:
            supported = figures.join_names(FRAMEWORK.platforms)
            raise UnsupportedError(f"{FRAMEWORK.title} computes on {supported}, and not on {target.platform}")
        return self._simulate(target)

    @contextmanager
    def _simulate(self, target: Target) -> Iterator[None]:
        """Place arrays on the simulated device from now on."""
        with simulated_device(target.platform) as account:
            self._account = self._placement.simulated = account
            self._placement.device = account.device
            yield

    def compile(self, program: Program, work: Work, target: Target) -> tuple[CompiledFor, ExecutableSize]:
        """Dispatch two calls, and return the facts about the second."""
        assert self._account is not None  # noqa: S101 - a launch compiles inside for_target
        size = measure_call(self._account, program, work.call, work.batches)
        available = target.chip.memory_bytes or memory.available()
        fits = available is None or size.peak_bytes is None or size.peak_bytes <= available
        return CompiledFor(fits=int(fits), device_memory_bytes=available, dispatched=True), size


@dataclass(frozen=True)
class Allocation:
    """Describe a block of device memory, which views share."""

    serial: int
    size: int
    rounded: int
    """Size in multiples of the allocator's granularity."""


class DeviceAccount(DispatchCounter):
    """Record allocations and kernels of the device while operations are dispatched.

    C++ code believes that arrays are on the host: otherwise autograd and the attention kernels would call a driver.
    Python code, FakeTensor and this account see the device.
    """

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self.device = device
        self.kernels = 0
        self._granularity = BLOCK_BYTES.get(device.type, 1)
        self._live: dict[int, Allocation] = {}
        self._serial = self._first_serial = 0
        self._events: list[tuple[bool, Allocation]] = []

    def __torch_dispatch__(
        self, operation: Any, types: Any, arguments: Sequence[Any] = (), keywords: Mapping[str, Any] | None = None
    ) -> Any:
        """Run the operation without numbers and record it."""
        if operation is DEVICE_QUERY:
            return HOST
        keywords = dict(keywords or {})
        if keywords.get("device") == HOST and operation.overloadpacket.__name__.startswith("new_"):
            keywords["device"] = arguments[0].device  # C++ passes HOST for the device of the other array
        return super().__torch_dispatch__(operation, types, arguments, keywords)

    def record(self, operation: Any, arguments: Sequence[Any], keywords: Mapping[str, Any], result: Any) -> None:
        """Count the operation, its allocations and its kernel."""
        super().record(operation, arguments, keywords, result)
        results = [leaf for leaf in pytree.tree_leaves(result) if self._is_on_device(leaf)]
        for tensor in results:
            self._allocate(tensor)
        uses_device = results or any(self._is_on_device(leaf) for leaf in pytree.tree_leaves((arguments, keywords)))
        packet = getattr(operation, "overloadpacket", None)
        if uses_device and packet is not None and not operation.is_view and packet.__name__ not in NO_KERNEL:
            self.kernels += 1

    def begin_call(self) -> None:
        """Reset the counts for a new call, without forgetting live allocations."""
        self.operations, self.kernels, self.recorded = 0.0, 0, False
        self.types.clear()
        self._events.clear()
        self._first_serial = self._serial

    def allocations(self, value: Any) -> dict[int, Allocation]:
        """Return the allocations that hold the device's arrays in `value`, by serial number."""
        live = (self._live.get(_address(tensor)) for tensor in tensors(value) if self._is_on_device(tensor))
        return {allocation.serial: allocation for allocation in live if allocation is not None}

    def live(self) -> dict[int, Allocation]:
        """Return all live allocations by serial number."""
        return {allocation.serial: allocation for allocation in self._live.values()}

    def peak_bytes(self, before: Mapping[int, Allocation], without: frozenset[int] = frozenset()) -> int:
        """Return the peak since the call began, of allocations `before` it and its own, except those in `without`."""
        now = peak = sum(allocation.rounded for serial, allocation in before.items() if serial not in without)
        for is_new, allocation in self._events:
            serial = allocation.serial
            if serial not in without and (serial in before or serial > self._first_serial):
                now += allocation.rounded if is_new else -allocation.rounded
                peak = max(peak, now)
        return peak

    def _is_on_device(self, leaf: Any) -> bool:
        return isinstance(leaf, torch.Tensor) and leaf.device.type == self.device.type

    def _allocate(self, tensor: torch.Tensor) -> None:
        """Record the tensor's storage, unless it is shared with an earlier tensor."""
        address = _address(tensor)
        if address in self._live:
            return
        storage = tensor.untyped_storage()
        size = storage.nbytes()
        self._serial += 1
        allocation = Allocation(self._serial, size, -(-size // self._granularity) * self._granularity)
        self._live[address] = allocation
        self._events.append((True, allocation))
        weakref.finalize(storage, self._free, address)

    def _free(self, address: int) -> None:
        """Record that the storage at this address was freed."""
        self._events.append((False, self._live.pop(address)))


def _address(tensor: torch.Tensor) -> int:
    """Return a number that identifies the tensor's storage while it is live."""
    address: int = tensor.untyped_storage()._cdata  # noqa: SLF001 - identifies the storage, which views share
    return address


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors in a pytree of tensors, modules and optimizers; gradients are no input or output of a call."""
    for leaf in pytree.tree_leaves(value):
        if isinstance(leaf, torch.nn.Module):
            yield from tensors([*leaf.parameters(), *leaf.buffers()])
        elif isinstance(leaf, torch.optim.Optimizer):
            yield from tensors([group["params"] for group in leaf.param_groups])
            yield from tensors(list(leaf.state.values()))
        elif isinstance(leaf, torch.Tensor):
            yield leaf


@contextmanager
def simulated_device(platform: str) -> Iterator[DeviceAccount]:
    """Create arrays without numbers inside the context, and record those on the device.

    Raises UnsupportedError if the body reads numbers, or uses autocast.
    """
    if FakeTensor not in optimizer._foreach_supported_types:  # noqa: SLF001 - DTensor registers itself likewise
        optimizer._foreach_supported_types.append(FakeTensor)  # noqa: SLF001
    account = DeviceAccount(torch.device(platform, 0) if platform != HOST.type else HOST)
    with torch.autograd.set_multithreading_enabled(False), warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*Disabling autocast", category=UserWarning)
        warnings.filterwarnings("error", message=".*GradScaler is enabled, but", category=UserWarning)
        try:
            with FakeTensorMode(), account:
                yield account
        except (DataDependentOutputException, DynamicOutputShapeException) as error:
            raise UnsupportedError(NO_NUMBERS.format(error.func)) from error
        except UserWarning as error:
            raise UnsupportedError(NO_AUTOCAST) from error


def _dispatch(call: Any, state: Any, batches: Any) -> Any:
    """Make the call; raise UnsupportedError if it needs more than shapes, such as files, threads or numbers."""
    try:
        return call(state, batches)
    except (KeyboardInterrupt, MemoryError, DataDependentOutputException, DynamicOutputShapeException, UserWarning):
        raise
    except BaseException as error:
        first_line = str(error).strip().partition("\n")[0]
        raise UnsupportedError(
            f"the step fails on arrays without numbers: {type(error).__name__}: {first_line}"
        ) from error


def measure_call(account: DeviceAccount, program: Program, call: Any, batches: Any) -> ExecutableSize:
    """Return memory and kernels of a steady call; the first call creates what an optimizer keeps from then on.

    Memory of the initial state and of the batches of other calls does not count.
    """
    state = _dispatch(call, program.state, batches)[0]
    gc.collect()
    account.begin_call()
    inputs, other_inputs = account.allocations((state, batches)), account.allocations((program.state, program.batches))
    before = {
        serial: allocation
        for serial, allocation in account.live().items()
        if serial in inputs or serial not in other_inputs
    }
    result = _dispatch(call, state, batches)
    outputs = account.allocations(result)
    return ExecutableSize(
        kernels=account.kernels,
        kernels_per_call=account.kernels,
        argument_bytes=sum(allocation.size for allocation in inputs.values()),
        output_bytes=sum(allocation.size for allocation in outputs.values()),
        aliased_bytes=sum(allocation.size for serial, allocation in outputs.items() if serial in inputs),
        temporary_bytes=account.peak_bytes(before, frozenset(before) | frozenset(outputs)),
        peak_bytes=account.peak_bytes(before),
    )
