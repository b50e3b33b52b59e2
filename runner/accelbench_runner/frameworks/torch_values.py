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
    """True if it changes what existed before, or tells Python a number."""


class ValueCounter(DispatchCounter):
    """Count operations like `DispatchCounter`, and remember what each of them reads and writes."""

    def __init__(self) -> None:
        super().__init__()
        self._dispatches: list[_Dispatch] = []
        self._created: set[Memory] = set()
        """Memory of tensors that were created inside this context."""
        self._versions: dict[Memory, int] = {}
        """Number of what the memory contains; the same number for the same values."""
        self._known: dict[Any, int] = {}
        """These numbers by the operations and operands that made the values."""

    def record(self, operation: Any, arguments: Sequence[Any], keywords: Mapping[str, Any], result: Any) -> None:
        """Add an operation that has run, with the memory that it reads, creates and changes."""
        operations_before = self.operations
        super().record(operation, arguments, keywords, result)
        counted = self.operations - operations_before
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
        # The same operation on the same values has the same key.
        key = (str(operation), *map(self._key, tree_leaves((arguments, keywords))))
        is_random = torch.Tag.nondeterministic_seeded in operation.tags
        repeated = bool(creates) and not changes and not is_random and key in self._known
        version = self._known[key] if repeated else len(self._dispatches)
        self._known.setdefault(key, version)
        self._versions.update(dict.fromkeys(creates | changes, version))
        self._created |= creates
        changes_what_existed = bool(changes - self._created)
        gives_python_a_number = not (results or changes)
        needed = changes_what_existed or gives_python_a_number
        self._dispatches.append(_Dispatch(counted, reads, creates, changes, repeated, needed))

    def _key(self, leaf: Any) -> Any:
        """Return what identifies an operand's value: equal keys stand for equal values."""
        if not isinstance(leaf, torch.Tensor):
            return repr(leaf)
        if leaf.layout is not torch.strided:
            return (id(leaf),)
        memory = _memory(leaf)
        version = self._versions.get(memory, ("given", memory))  # given: it existed before this context
        return (version, leaf.dtype, leaf.shape, leaf.stride(), leaf.storage_offset())

    def left_out(self, results: Any) -> dict[str, float]:
        """Return the floating-point operations on which nothing depends (`dropped`), and those that repeat others.

        `results` is what the call returned. Whatever else existed before the call is used after it as well.
        """
        operations = {"dropped": 0.0, "repeated": 0.0}
        live = set(map(_memory, _tensors(results)))
        for dispatch in reversed(self._dispatches):
            if dispatch.needed or not live.isdisjoint(dispatch.creates | dispatch.changes):
                # Before it was created, the memory had other contents.
                live = (live - dispatch.creates) | dispatch.reads
                if dispatch.repeated:
                    operations["repeated"] += dispatch.operations
            else:
                operations["dropped"] += dispatch.operations
        return operations


def _tensors(values: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]


def _memory(tensor: torch.Tensor) -> Memory:
    """Return an identity of the memory that holds a tensor; views share it."""
    if tensor.layout is not torch.strided:
        return id(tensor)
    memory: int = tensor.untyped_storage()._cdata  # noqa: SLF001 - unlike an address, it exists for empty tensors too
    return memory
