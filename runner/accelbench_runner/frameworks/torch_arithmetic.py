"""Floating-point operations of a call in PyTorch, as ATen is asked for them.

A product counts by PyTorch's own formulas, everything else one for each number that it gives, or takes where that is
more, unless it only moves numbers; what ATen has fused counts several.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from accelbench_runner.frameworks.pytorch import MOVING

FUSED = {
    **dict.fromkeys(("native_layer_norm", "native_group_norm", "native_batch_norm", "_fused_rms_norm"), 7),
    **dict.fromkeys(("_softmax", "_log_softmax", "_softmax_backward_data", "_log_softmax_backward_data"), 4),
    **dict.fromkeys(("_fused_adam_", "_fused_adamw_"), 3),
}
"""ATen's operations that do several for each number, as many as they consist of when written out."""


def count(operation: Any, arguments: Sequence[Any], keywords: Mapping[str, Any], result: Any) -> float:
    """Floating-point operations of one of ATen's, 0 for what is none."""
    packet = getattr(operation, "overloadpacket", None)
    if packet is None or operation.is_view or packet.__name__ in MOVING:
        return 0.0
    formula: Callable[..., float] | None = flop_registry.get(packet)
    if formula is not None:
        return float(formula(*arguments, **keywords, out_val=result))
    return float(FUSED.get(packet.__name__, 1) * max(_floats(result), _floats(arguments)))


def _floats(values: Any) -> int:
    tensors = [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor) and leaf.is_floating_point()]
    lists = isinstance(values, tuple | list) and any(isinstance(each, tuple | list) for each in values)
    sizes = [tensor.numel() for tensor in tensors]
    return sum(sizes) if lists else max(sizes, default=0)


def _float_types(values: Any) -> set[str]:
    """Of arrays of floating-point numbers; a single one may be an optimizer's count."""
    tensors = (leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor) and leaf.ndim)
    return {str(tensor.dtype).removeprefix("torch.") for tensor in tensors if tensor.is_floating_point()}


def as_written() -> AbstractContextManager[object]:
    """Compiled functions run eagerly meanwhile; without Dynamo there are none."""
    return torch.compiler.set_stance("force_eager") if "torch._dynamo" in sys.modules else nullcontext()


class Dispatched(TorchDispatchMode):  # type: ignore[misc]
    """Counts what is dispatched while entered, in which types, and whether autograd records it."""

    def __init__(self) -> None:
        super().__init__()
        self.operations = 0.0
        self.types: set[str] = set()
        self.recorded = False

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: to be skipped, Dynamo is imported, which takes a second. `as_written` keeps it out where it is there."""
        return False

    def __torch_dispatch__(
        self, operation: Any, _types: Any, arguments: Sequence[Any] = (), keywords: Mapping[str, Any] | None = None
    ) -> Any:
        """Runs the operation, and counts it."""
        keywords = keywords or {}
        packet = getattr(operation, "overloadpacket", None)
        if packet is not None and packet not in flop_registry:
            with self:  # in inference mode products of several dimensions arrive whole
                result = operation.decompose(*arguments, **keywords)
            if result is not NotImplemented:
                return result
        result = operation(*arguments, **keywords)
        self.note(operation, arguments, keywords, result)
        return result

    def note(self, operation: Any, arguments: Sequence[Any], keywords: Mapping[str, Any], result: Any) -> None:
        """Counts an operation that has run."""
        self.types |= _float_types((arguments, result))
        self.recorded |= torch.is_grad_enabled()
        self.operations += count(operation, arguments, keywords, result)
