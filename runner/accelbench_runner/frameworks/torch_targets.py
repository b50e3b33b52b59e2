"""Simulate absent devices for eager PyTorch: operations are dispatched on tensors that have shapes but no numbers.

FakeTensor infers the shapes and types that each operation would return on the device. `DeviceAccount` records the
memory that the device would allocate.
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
from accelbench_runner.frameworks.torch_operations import DispatchCounter, has_kernel
from accelbench_runner.frameworks.work import Work

DEVICE_QUERY = torch.ops.prim.device.default
"""The operation by which PyTorch's C++ code reads a tensor's device."""
HOST = torch.device("cpu")
BLOCK_BYTES = {"cuda": 512}
"""Granularity of the allocator by device type (c10/cuda/CUDACachingAllocator)."""
NO_DRIVER = "torch.compile generates kernels only if the device's driver is installed: use pytorch/eager"
NO_NUMBERS = "the step reads a number or a shape that depends on numbers ({}), but nothing is computed for a target"
NO_AUTOCAST = "the step uses torch.autocast, which PyTorch disables without such a device"


class TorchTargets(Targets):
    """Dispatch a call's operations for the target one by one, as eager PyTorch would; nothing is compiled."""

    def __init__(self, placement: Placement, *, compiles: bool) -> None:
        self._placement, self._compiles = placement, compiles
        self._account: DeviceAccount | None = None

    def for_target(self, target: Target) -> AbstractContextManager[None]:
        """Return a context in which tensors are on the simulated device.

        Raises UnsupportedError if PyTorch cannot simulate the target.
        """
        if self._compiles:
            raise UnsupportedError(NO_DRIVER)
        if target.platform not in FRAMEWORK.platforms:
            supported = figures.join_names(FRAMEWORK.platforms)
            raise UnsupportedError(f"{FRAMEWORK.title} computes on {supported}, and not on {target.platform}")
        return self._simulate(target)

    @contextmanager
    def _simulate(self, target: Target) -> Iterator[None]:
        """Return a context in which the target's device is simulated and new tensors are created on it."""
        with simulated_device(target.platform) as account:
            self._account = account
            self._placement.simulation = account
            self._placement.device = account.device
            yield

    def compile(self, program: Program, work: Work, target: Target) -> tuple[CompiledFor, ExecutableSize]:
        """Make two calls on the simulated device; return whether the second fits, and its memory and kernels."""
        assert self._account is not None  # noqa: S101 - a launch calls this inside `for_target`
        size = measure_call(self._account, program, work.call, work.batches)
        available = target.chip.memory_bytes or memory.available_bytes()
        fits = available is None or size.peak_bytes is None or size.peak_bytes <= available
        return CompiledFor(fits=int(fits), device_memory_bytes=available, dispatched=True), size


@dataclass(frozen=True)
class Allocation:
    """Describe the memory of a tensor and of its views."""

    serial: int
    """Number of the allocation, in the order of time."""
    size_bytes: int
    """Bytes that the tensor needs."""
    rounded_bytes: int
    """`size_bytes`, rounded up to the allocator's granularity."""


class DeviceAccount(DispatchCounter):
    """Record the device's allocations and kernels while operations are dispatched inside this context.

    C++ code sees tensors as if they were on the host: otherwise autograd and the attention kernels would call a driver.
    Python code, FakeTensor and this account see the simulated device.
    """

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self.device = device
        self.kernels = 0
        self._granularity = BLOCK_BYTES.get(device.type, 1)
        self._live: dict[int, Allocation] = {}
        """Allocations that are not freed, by the address of their storage."""
        self._last_serial = 0
        self._last_serial_before_call = 0
        self._events: list[tuple[bool, Allocation]] = []
        """Allocations (True) and deallocations (False) since `begin_call`, in the order of time."""

    def __torch_dispatch__(
        self, operation: Any, types: Any, arguments: Sequence[Any] = (), keywords: Mapping[str, Any] | None = None
    ) -> Any:
        """Run an ATen operation on tensors without numbers, and count it for the simulated device."""
        if operation is DEVICE_QUERY:
            return HOST  # otherwise C++ code would call the driver of the simulated device
        keywords = dict(keywords or {})
        if keywords.get("device") == HOST and operation.overloadpacket.__name__.startswith("new_"):
            keywords["device"] = arguments[0].device  # C++ code takes the answer `HOST` for the tensor's device
        return super().__torch_dispatch__(operation, types, arguments, keywords)

    def record(self, operation: Any, arguments: Sequence[Any], keywords: Mapping[str, Any], result: Any) -> None:
        """Count an ATen operation that has run, the device memory of its results, and its kernel."""
        super().record(operation, arguments, keywords, result)
        results = [leaf for leaf in pytree.tree_leaves(result) if self._is_on_device(leaf)]
        for tensor in results:
            self._allocate(tensor)
        operands = pytree.tree_leaves((arguments, keywords))
        uses_device = bool(results) or any(map(self._is_on_device, operands))
        if uses_device and has_kernel(operation):
            self.kernels += 1

    def begin_call(self) -> None:
        """Reset the counts and forget earlier allocations and deallocations, to measure a new call."""
        self.operations, self.kernels = 0.0, 0
        self.numbers.clear()
        self._events.clear()
        self._last_serial_before_call = self._last_serial

    def allocations(self, value: Any) -> dict[int, Allocation]:
        """Return the device memory of the tensors in a pytree: allocations that are not freed, by serial number."""
        addresses = [_address(tensor) for tensor in tensors(value) if self._is_on_device(tensor)]  # equal for views
        allocations = [self._live[address] for address in addresses if address in self._live]
        return {allocation.serial: allocation for allocation in allocations}

    def live(self) -> dict[int, Allocation]:
        """Return all allocations that are not freed, by serial number."""
        return {allocation.serial: allocation for allocation in self._live.values()}

    def peak_bytes(self, before: Mapping[int, Allocation], excluded: frozenset[int] = frozenset()) -> int:
        """Return the most bytes that were allocated at once since `begin_call`.

        `before` has the allocations that count from the start of the call, by serial number. `excluded` are the serial
        numbers of allocations to leave out.
        """
        current = sum(allocation.rounded_bytes for serial, allocation in before.items() if serial not in excluded)
        peak = current
        for is_new, allocation in self._events:  # allocations, and deallocations (not `is_new`)
            serial = allocation.serial
            is_from_call = serial > self._last_serial_before_call
            # Other allocations, which are neither in `before` nor made by the call, are freed without having counted.
            if serial not in excluded and (serial in before or is_from_call):
                current += allocation.rounded_bytes if is_new else -allocation.rounded_bytes
                peak = max(peak, current)
        return peak

    def _is_on_device(self, leaf: Any) -> bool:
        return isinstance(leaf, torch.Tensor) and leaf.device.type == self.device.type

    def _allocate(self, tensor: torch.Tensor) -> None:
        """Record an allocation of memory for a tensor's storage, unless it is known, and record when it is freed."""
        address = _address(tensor)
        if address in self._live:
            return
        storage = tensor.untyped_storage()
        size_bytes = storage.nbytes()
        units = -(-size_bytes // self._granularity)  # rounded up
        self._last_serial += 1
        allocation = Allocation(self._last_serial, size_bytes, rounded_bytes=units * self._granularity)
        self._live[address] = allocation
        self._events.append((True, allocation))
        weakref.finalize(storage, self._free, address)

    def _free(self, address: int) -> None:
        """Record that a storage was freed; Python calls this when the storage is collected."""
        self._events.append((False, self._live.pop(address)))


def _address(tensor: torch.Tensor) -> int:
    """Return a number that identifies a tensor's storage as long as the storage exists."""
    address: int = tensor.untyped_storage()._cdata  # noqa: SLF001 - identifies the storage, which views share
    return address


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors in a pytree, also those inside modules and optimizers.

    Gradients are left out, because they are neither inputs nor results of a call.
    """
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
    """Return a context in which tensors have shapes but no numbers, and operations run on a simulated device.

    The context's value records these operations and the device's memory. Raises UnsupportedError if code in the context
    reads a number or uses autocast.
    """
    # Let optimizers update several fake tensors in one operation, as they do with real ones.
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
    """Make the call; raise UnsupportedError if the program fails on tensors without numbers."""
    try:
        return call(state, batches)
    except (KeyboardInterrupt, MemoryError, DataDependentOutputException, DynamicOutputShapeException, UserWarning):
        raise  # these are no failures of the program, or `simulated_device` reports them
    except BaseException as error:
        first_line = str(error).strip().partition("\n")[0]
        raise UnsupportedError(
            f"the step fails on arrays without numbers: {type(error).__name__}: {first_line}"
        ) from error


def measure_call(account: DeviceAccount, program: Program, call: Any, batches: Any) -> ExecutableSize:
    """Make two calls on the simulated device; return the memory and the kernels of the second.

    The first call also creates the tensors that an optimizer keeps.
    """
    state = _dispatch(call, program.state, batches)[0]  # the step's output gets no name, so its memory is freed
    gc.collect()
    account.begin_call()
    inputs = account.allocations((state, batches))
    other_inputs = account.allocations((program.state, program.batches))
    before = {  # everything allocated, except for the initial state and the batches of other calls
        serial: allocation
        for serial, allocation in account.live().items()
        if serial in inputs or serial not in other_inputs
    }
    result = _dispatch(call, state, batches)
    outputs = account.allocations(result)
    return ExecutableSize(
        kernels=account.kernels,
        kernels_per_call=account.kernels,
        argument_bytes=sum(allocation.size_bytes for allocation in inputs.values()),
        output_bytes=sum(allocation.size_bytes for allocation in outputs.values()),
        aliased_bytes=sum(allocation.size_bytes for serial, allocation in outputs.items() if serial in inputs),
        # Temporary: neither live before the call nor returned by it.
        temporary_bytes=account.peak_bytes(before, frozenset(before) | frozenset(outputs)),
        peak_bytes=account.peak_bytes(before),
    )
