"""Find dispatched operations that a compiler may leave out: repeated ones, and those that no result depends on.

Tensors are followed by their memory: an operation reads the memory of its operands, writes that of its results, and
may change that of operands.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from accelbench_runner.frameworks.torch_operations import DispatchCounter

Memory = int
"""Number that identifies the memory of a tensor."""


@dataclass(frozen=True)
class _Dispatch:
    """Hold one operation that has run."""

    operations: float
    """Its floating-point operations."""
    reads: frozenset[Memory]
    creates: frozenset[Memory]
    changes: frozenset[Memory]
    repeated: bool
    needed: bool
    """True if the operation changes what existed before the call, or returns a number to Python."""


class ValueCounter(DispatchCounter):
    """Count operations like `DispatchCounter`, and remember what each of them reads and writes."""

    def __init__(self) -> None:
        super().__init__()
        self._dispatches: list[_Dispatch] = []
        self._created: set[Memory] = set()
        """Memory of tensors that were created inside this context."""
        self._version_by_memory: dict[Memory, int] = {}
        """Version of the contents of each memory; equal versions mean equal contents."""
        self._version_by_key: dict[Any, int] = {}
        """Version of the contents that an operation computed, by the operation and its operands."""

    def record(self, operation: Any, arguments: Sequence[Any], keywords: Mapping[str, Any], result: Any) -> None:
        """Count an operation that has run, and store which memory it reads, creates and changes.

        The memory that it writes gets the version of the operation that it repeats, or else a new version.
        """
        operations_before = self.operations
        super().record(operation, arguments, keywords, result)
        added_operations = self.operations - operations_before
        operands, results = _tensors((arguments, keywords)), _tensors(result)
        reads = frozenset(map(_memory, operands))
        creates = frozenset(map(_memory, results)) - reads
        parameters = operation._schema.arguments  # noqa: SLF001 - has no public name
        changed = [
            value
            for parameter, value in zip(parameters, arguments, strict=False)
            if parameter.alias_info is not None and parameter.alias_info.is_write
        ]
        changes = frozenset(map(_memory, _tensors(changed)))
        # Equal operations on equal operands have the same key.
        key = (str(operation), *map(self._operand_key, tree_leaves((arguments, keywords))))
        is_random = torch.Tag.nondeterministic_seeded in operation.tags
        is_pure = bool(creates) and not changes and not is_random  # computes new numbers from its operands only
        repeated = is_pure and key in self._version_by_key
        version = self._version_by_key[key] if repeated else len(self._dispatches)  # a number that no other one has
        self._version_by_key.setdefault(key, version)
        self._version_by_memory.update(dict.fromkeys(creates | changes, version))
        self._created |= creates
        changes_what_existed = bool(changes - self._created)
        returns_a_number = not (results or changes)  # to Python, as `item()` does
        needed = changes_what_existed or returns_a_number
        self._dispatches.append(_Dispatch(added_operations, reads, creates, changes, repeated, needed))

    def _operand_key(self, leaf: Any) -> Any:
        """Return a key of an operand's value; operands with equal keys have equal values."""
        if not isinstance(leaf, torch.Tensor):
            return repr(leaf)
        if leaf.layout is not torch.strided:
            return (id(leaf),)  # such as a sparse tensor, which equals only itself
        memory = _memory(leaf)
        # Memory that no operation of this context has written has no version, and keeps its contents: its number
        # identifies them.
        version = self._version_by_memory.get(memory, ("given", memory))
        return (version, leaf.dtype, leaf.shape, leaf.stride(), leaf.storage_offset())

    def count_omittable(self, results: Any) -> dict[str, float]:
        """Count the floating-point operations that a compiler may leave out of a call that returned `results`.

        `dropped` are operations on which no result depends, and `repeated` are operations that compute the same as
        earlier operations. A change of something that existed before the call counts as a result.
        """
        operations = {"dropped": 0.0, "repeated": 0.0}
        live = set(map(_memory, _tensors(results)))
        for dispatch in reversed(self._dispatches):
            if dispatch.needed or not live.isdisjoint(dispatch.creates | dispatch.changes):
                # The loop goes from the last operation to the first. Before this operation, the memory that it creates
                # was not needed yet, and the memory that it reads was.
                live = (live - dispatch.creates) | dispatch.reads
                if dispatch.repeated:
                    operations["repeated"] += dispatch.operations
            else:
                operations["dropped"] += dispatch.operations
        return operations


def _tensors(values: Any) -> list[torch.Tensor]:
    """Return the tensors in a pytree."""
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]


def _memory(tensor: torch.Tensor) -> Memory:
    """Return a number that identifies the memory of a tensor, which its views share."""
    if tensor.layout is not torch.strided:
        return id(tensor)  # such as a sparse tensor, which has no storage
    memory: int = tensor.untyped_storage()._cdata  # noqa: SLF001 - unlike an address, it exists for empty tensors too
    return memory
