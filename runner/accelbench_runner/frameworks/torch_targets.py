"""Devices that are not there, for eager PyTorch: its operations are dispatched on arrays with shapes and no numbers.

FakeTensor says what each operation would return on a device. An account beside it says what lives there meanwhile.
"""

import gc
import warnings
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, FakeTensor
from torch._subclasses.fake_tensor import FakeTensorMode as Numberless
from torch.optim import optimizer
from torch.utils import _pytree as pytree

from accelbench.launch.facts import ExecutableSize
from accelbench.workload import Program
from accelbench_runner.frameworks.adapter import UnsupportedError
from accelbench_runner.frameworks.torch_arithmetic import Dispatched

ASKED_FOR_DEVICE = torch.ops.prim.device.default
"""PyTorch's C++ asks where an array is."""
HOST = torch.device("cpu")
BLOCK_BYTES = {"cuda": 512}
"""The allocator hands out multiples of these, by kind of device (c10/cuda/CUDACachingAllocator)."""
NO_KERNEL = {
    *("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "lift_fresh", "set_", "resize_"),
    *("_local_scalar_dense", "_record_function_enter_new", "_record_function_exit", "_unsafe_view", "_reshape_alias"),
}
"""Operations, beside views, for which nothing runs on the device."""
NO_NUMBERS = "the step looks at a number or at a shape that depends on numbers ({}), and nothing is computed here"
NO_AUTOCAST = "the step asks for torch.autocast, which PyTorch turns off where no such device is"


@dataclass(frozen=True)
class Block:
    """Memory of one or several arrays."""

    serial: int
    size: int
    rounded: int


class Account(Dispatched):
    """What lives on the device, and what runs there, while operations are dispatched.

    C++ is told that arrays are on the host: told the truth, autograd and the attention kernels ask a driver. Python,
    FakeTensor and what is accounted here know better.
    """

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self.device = device
        self.kernels = 0
        self._least = BLOCK_BYTES.get(device.type, 1)
        self._blocks: dict[int, Block] = {}
        self._serial = self._begun = 0
        self._events: list[tuple[bool, Block]] = []

    def __torch_dispatch__(
        self, operation: Any, types: Any, arguments: Sequence[Any] = (), keywords: Mapping[str, Any] | None = None
    ) -> Any:
        """Runs the operation without numbers, and keeps account of it."""
        if operation is ASKED_FOR_DEVICE:
            return HOST
        keywords = dict(keywords or {})
        if keywords.get("device") == HOST and operation.overloadpacket.__name__.startswith("new_"):
            keywords["device"] = arguments[0].device  # C++ was told HOST, and means where the other array is
        return super().__torch_dispatch__(operation, types, arguments, keywords)

    def note(self, operation: Any, arguments: Sequence[Any], keywords: Mapping[str, Any], result: Any) -> None:
        """Beside what every account of dispatched operations counts: memory and kernels."""
        super().note(operation, arguments, keywords, result)
        here = [leaf for leaf in pytree.tree_leaves(result) if self._is_here(leaf)]
        for tensor in here:
            self._hold(tensor)
        touched = here or any(self._is_here(leaf) for leaf in pytree.tree_leaves((arguments, keywords)))
        packet = getattr(operation, "overloadpacket", None)
        if touched and packet is not None and not operation.is_view and packet.__name__ not in NO_KERNEL:
            self.kernels += 1

    def begin(self) -> None:
        """A call begins: what was counted before is forgotten, what lives goes on living."""
        self.operations, self.kernels, self.recorded = 0.0, 0, False
        self.types.clear()
        self._events.clear()
        self._begun = self._serial

    def blocks(self, value: Any) -> dict[int, Block]:
        """Those that hold arrays of the device within a value, by serial."""
        found = (self._blocks.get(_address(each)) for each in tensors(value) if self._is_here(each))
        return {block.serial: block for block in found if block is not None}

    def living(self) -> dict[int, Block]:
        """All that there are now, by serial."""
        return {block.serial: block for block in self._blocks.values()}

    def most(self, before: Mapping[int, Block], without: frozenset[int] = frozenset()) -> int:
        """The most bytes that lived at once since the call began, but for those blocks; `before` lived already."""
        now = most = sum(block.rounded for serial, block in before.items() if serial not in without)
        for is_new, block in self._events:
            if block.serial not in without and (block.serial in before or block.serial > self._begun):
                now += block.rounded if is_new else -block.rounded
                most = max(most, now)
        return most

    def _is_here(self, leaf: Any) -> bool:
        return isinstance(leaf, torch.Tensor) and leaf.device.type == self.device.type

    def _hold(self, tensor: torch.Tensor) -> None:
        address = _address(tensor)
        if address in self._blocks:
            return
        storage = tensor.untyped_storage()
        size = storage.nbytes()
        self._serial += 1
        block = Block(self._serial, size, -(-size // self._least) * self._least)
        self._blocks[address] = block
        self._events.append((True, block))
        weakref.finalize(storage, self._release, address)

    def _release(self, address: int) -> None:
        self._events.append((False, self._blocks.pop(address)))


def _address(tensor: torch.Tensor) -> int:
    address: int = tensor.untyped_storage()._cdata  # noqa: SLF001 - its identity: views of one memory have it in common
    return address


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """Those in a pytree of tensors, modules and optimizers; no gradients, which are neither given nor returned."""
    for leaf in pytree.tree_leaves(value):
        if isinstance(leaf, torch.nn.Module):
            yield from tensors([*leaf.parameters(), *leaf.buffers()])
        elif isinstance(leaf, torch.optim.Optimizer):
            yield from tensors([group["params"] for group in leaf.param_groups])
            yield from tensors(list(leaf.state.values()))
        elif isinstance(leaf, torch.Tensor):
            yield leaf


@contextmanager
def absent(platform: str) -> Iterator[Account]:
    """Inside, arrays have no numbers, and an account is kept of those on the device; raises UnsupportedError."""
    if FakeTensor not in optimizer._foreach_supported_types:  # noqa: SLF001 - as DTensor does for itself
        optimizer._foreach_supported_types.append(FakeTensor)  # noqa: SLF001
    account = Account(torch.device(platform, 0) if platform != HOST.type else HOST)
    with torch.autograd.set_multithreading_enabled(False), warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*Disabling autocast", category=UserWarning)
        warnings.filterwarnings("error", message=".*GradScaler is enabled, but", category=UserWarning)
        try:
            with Numberless(), account:
                yield account
        except (DataDependentOutputException, DynamicOutputShapeException) as error:
            raise UnsupportedError(NO_NUMBERS.format(error.func)) from error
        except UserWarning as error:
            raise UnsupportedError(NO_AUTOCAST) from error


def _followed(call: Any, state: Any, batches: Any) -> Any:
    """What a call returns; raises UnsupportedError where it asks for more than shapes: for files, threads, numbers."""
    try:
        return call(state, batches)
    except (KeyboardInterrupt, MemoryError, DataDependentOutputException, DynamicOutputShapeException, UserWarning):
        raise
    except BaseException as error:
        said = str(error).strip().partition("\n")[0]
        raise UnsupportedError(
            f"the step fails on arrays that have no numbers: {type(error).__name__}: {said}"
        ) from error


def called(account: Account, program: Program, call: Any, batches: Any) -> ExecutableSize:
    """What a steady call holds and runs on the device. The first one makes what an optimizer holds from then on.

    The state that it began with, and batches of other calls, are no part of it.
    """
    state = _followed(call, program.state, batches)[0]
    gc.collect()
    account.begin()
    given, others = account.blocks((state, batches)), account.blocks((program.state, program.batches))
    before = {serial: each for serial, each in account.living().items() if serial in given or serial not in others}
    result = _followed(call, state, batches)
    made = account.blocks(result)
    return ExecutableSize(
        kernels=account.kernels,
        kernels_per_call=account.kernels,
        argument_bytes=sum(block.size for block in given.values()),
        output_bytes=sum(block.size for block in made.values()),
        aliased_bytes=sum(block.size for serial, block in made.items() if serial in given),
        temporary_bytes=account.most(before, frozenset(before) | frozenset(made)),
        peak_bytes=account.most(before),
    )
