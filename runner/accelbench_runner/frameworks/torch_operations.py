"""Count floating-point operations as ATen dispatches them.

A product counts by PyTorch's own formulas. An operation that only moves numbers counts none. An operation that fuses
several counts several for each number, and any other counts one for each number: those of its result or those of its
operands, whichever are more.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib import import_module
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from accelbench.launch.facts import Arithmetic

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
"""Number of matrix products in each ATen operation. `matmul` and `linear` call one of these, so they are left out."""
CONVOLUTIONS = ("convolution", "convolution_backward")
MOVING = {
    *("_to_copy", "_unsafe_view", "arange", "as_strided", "cat", "clone", "contiguous", "copy", "copy_", "detach"),
    *("empty", "empty_like", "empty_strided", "expand", "fill_", "full", "full_like", "gather", "index", "index_put"),
    *("index_select", "item", "masked_fill", "narrow", "new_empty", "new_zeros", "ones", "ones_like", "permute"),
    *("repeat", "reshape", "resolve_conj", "resolve_neg", "scalar_tensor", "scatter", "select", "select_scatter"),
    *("slice", "slice_scatter", "split", "squeeze", "stack", "t", "to", "transpose", "unsqueeze", "view", "where"),
    *("_local_scalar_dense", "zero_", "zeros", "zeros_like"),
}
"""ATen operations that compute nothing."""
FUSED = {
    **dict.fromkeys(("native_layer_norm", "native_group_norm", "native_batch_norm", "_fused_rms_norm"), 7),
    **dict.fromkeys(("_softmax", "_log_softmax", "_softmax_backward_data", "_log_softmax_backward_data"), 4),
    **dict.fromkeys(("_fused_adam_", "_fused_adamw_"), 3),
}
"""Operations for each number, of ATen operations that fuse several: as many as the unfused operations together."""


@cache
def flop_formulas() -> Mapping[Any, Callable[..., float]]:
    """Return PyTorch's formulas, imported on first use.

    The import takes 0.1 s, which no timed phase should contain.
    """
    formulas: Mapping[Any, Callable[..., float]] = import_module("torch.utils.flop_counter").flop_registry
    return formulas


def count(operation: Any, arguments: Sequence[Any], keywords: Mapping[str, Any], result: Any) -> float:
    """Count the floating-point operations of one ATen operation."""
    packet = getattr(operation, "overloadpacket", None)
    if packet is None or operation.is_view or packet.__name__ in MOVING:
        return 0.0
    formula = flop_formulas().get(packet)
    if formula is not None:
        return float(formula(*arguments, **keywords, out_val=result))
    numbers = max(_count_floats(result), _count_floats(arguments))  # a reduction has more operands than results
    return float(FUSED.get(packet.__name__, 1) * numbers)


def _count_floats(values: Any) -> int:
    """Return the number of elements of the largest floating-point tensor."""
    tensors = [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor) and leaf.is_floating_point()]
    nested = isinstance(values, tuple | list) and any(isinstance(value, tuple | list) for value in values)
    sizes = [tensor.numel() for tensor in tensors]
    return sum(sizes) if nested else max(sizes, default=0)  # a fused optimizer updates every tensor of a list


def _float_types(values: Any) -> set[str]:
    """Return the types of the floating-point tensors in `values`, without scalars."""
    tensors = (leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor) and leaf.ndim)
    return {str(tensor.dtype).removeprefix("torch.") for tensor in tensors if tensor.is_floating_point()}


class DispatchCounter(TorchDispatchMode):  # type: ignore[misc]
    """Count the floating-point operations that ATen dispatches inside this context."""

    def __init__(self) -> None:
        super().__init__()
        self.operations = 0.0
        self.types: set[str] = set()
        """Floating-point types of operands and results."""
        self.recorded = False
        """True if autograd was on for any operation."""
        self._formulas = flop_formulas()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False: skipping Dynamo would import it, which takes a second."""
        return False

    def __torch_dispatch__(
        self, operation: Any, _types: Any, arguments: Sequence[Any] = (), keywords: Mapping[str, Any] | None = None
    ) -> Any:
        """Run and count the operation, or the operations that it consists of."""
        keywords = keywords or {}
        packet = getattr(operation, "overloadpacket", None)
        # In inference mode, `matmul` and the like arrive here undecomposed.
        if packet is not None and packet not in self._formulas:
            with self:  # the operations that it consists of are dispatched here too
                result = operation.decompose(*arguments, **keywords)
            if result is not NotImplemented:  # it can be decomposed
                return result
        result = operation(*arguments, **keywords)
        self.record(operation, arguments, keywords, result)
        return result

    def record(self, operation: Any, arguments: Sequence[Any], keywords: Mapping[str, Any], result: Any) -> None:
        """Count an operation that has run."""
        self.types |= _float_types((arguments, result))
        self.recorded |= torch.is_grad_enabled()
        self.operations += count(operation, arguments, keywords, result)

    def total(self) -> Arithmetic:
        """Return the counts so far."""
        return Arithmetic(
            written=self.operations,
            run=self.operations,  # dispatched one by one, they are not optimised
            source="the operations dispatched",
            types=sorted(self.types),
            recorded=self.recorded,
        )


def compile_disabled() -> AbstractContextManager[object]:
    """Return a context in which compiled functions run eagerly."""
    if "torch._dynamo" not in sys.modules:
        return nullcontext()  # nothing is compiled, and importing Dynamo takes seconds
    stance: AbstractContextManager[object] = torch.compiler.set_stance("force_eager")
    return stance
