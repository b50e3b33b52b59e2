"""Count floating-point operations as ATen dispatches them.

A product counts by PyTorch's own formulas, and a library call as in JAX (`library_operations`). An operation that only
moves, compares, chooses or sorts numbers does not count. Any other operation counts once for each number of its result
or of its operands, whichever are more; an operation that fuses several (`FUSED`) counts several times for each.
"""

import math
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib import import_module
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from accelbench.launch.facts import Arithmetic
from accelbench_runner.frameworks import library_operations
from accelbench_runner.frameworks.adapter import DECIDING_LOOP, NARROW_NUMBERS, is_rounded_to_float32, shares_by_type

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
NO_KERNEL = {
    *("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "lift_fresh", "set_", "resize_"),
    *("_local_scalar_dense", "_record_function_enter_new", "_record_function_exit", "_unsafe_view", "_reshape_alias"),
}
"""Operations, apart from views, for which no kernel runs."""
LOOKUPS = {"embedding", "gather", "index", "index_select", "take"}
"""Operations that read only as many bytes of their first operand as they return."""
PARTIAL_UPDATES = {"index_add_", "index_copy_", "index_put_", "_index_put_impl_", "scatter_", "scatter_add_"}
"""Operations in place that read and write as many bytes of their first operand as the last operand has."""
OVERWRITES = {"copy_", "fill_", "zero_"}
"""Operations in place that write their first operand without reading it."""
UNCOUNTED = {
    *("_to_dense", "_to_sparse", "_to_sparse_csr", "_unique2", "abs", "all", "amax", "amin", "aminmax", "any"),
    *("argmax", "argmin", "argsort", "bitwise_and", "bitwise_not", "bitwise_or", "bucketize", "ceil", "clamp"),
    *("clamp_max", "clamp_min", "complex", "copysign", "cummax", "cummin", "embedding", "eq", "eye", "fill"),
    *("flip", "floor", "fmax", "fmin", "fractional_max_pool2d", "ge", "gt", "hardtanh", "hardtanh_backward"),
    *("isfinite", "isin", "isinf", "isnan", "kthvalue", "le", "lift_fresh", "logical_and", "logical_not"),
    *("logical_or", "logical_xor", "lt", "masked_fill", "max", "max_pool2d_with_indices"),
    *("max_pool3d_with_indices", "maximum", "median", "min", "minimum", "mode", "msort", "nan_to_num"),
    *("nanmedian", "ne", "neg", "new_full", "new_ones", "nll_loss_backward", "nll_loss_forward", "nonzero"),
    *("relu", "roll", "round", "scatter", "searchsorted", "sgn", "sign", "signbit", "sort", "threshold"),
    *("threshold_backward", "topk", "tril", "triu", "trunc", "unique_dim"),
}
"""ATen operations that compare, choose, sort, look up or make numbers. Those in place end with `_` as well."""
FUSED = {
    **dict.fromkeys(("native_layer_norm", "native_group_norm", "native_batch_norm", "_fused_rms_norm"), 7),
    **dict.fromkeys(("_native_batch_norm_legit", "_batch_norm_with_update", "cudnn_batch_norm"), 7),
    **dict.fromkeys(("_softmax", "_log_softmax", "_softmax_backward_data", "_log_softmax_backward_data"), 4),
    **dict.fromkeys(("_fused_adam_", "_fused_adamw_"), 3),
    **dict.fromkeys(("var", "std", "var_mean", "std_mean", "logaddexp", "gelu", "softplus", "log_sigmoid_forward"), 4),
    **dict.fromkeys(("silu_backward", "gelu_backward"), 8),
    **dict.fromkeys(("sigmoid_backward", "tanh_backward", "softplus_backward", "log_sigmoid_backward"), 3),
    **dict.fromkeys(("mse_loss", "mse_loss_backward", "huber_loss", "smooth_l1_loss", "addcmul", "addcdiv", "lerp"), 3),
    **dict.fromkeys(("mv", "dot", "vdot", "addmv", "linalg_vector_norm", "silu"), 2),
}
"""ATen operations that fuse several, and how many floating-point operations these take for each number."""
SOURCES = {
    "index_add": "source",
    "scatter_add": "src",
    "embedding_dense_backward": "grad_output",
    "index_put": "values",
    "_index_put_impl": "values",
    "index_reduce": "source",
    "max_pool2d_with_indices_backward": "grad_output",
    "scatter_reduce": "src",
}
"""ATen operations that add numbers to others one by one, and the parameter with the numbers to add."""
CHOOSING_REDUCTIONS = {"amax", "amin"}
"""Values of the parameter `reduce` with which an operation chooses numbers instead of adding them."""
FACTORISATIONS = {
    **dict.fromkeys(("linalg_lu", "linalg_lu_factor_ex", "_linalg_det", "_linalg_slogdet"), "lu"),
    **dict.fromkeys(("linalg_cholesky_ex", "cholesky"), "cholesky"),
    **dict.fromkeys(("linalg_solve_triangular", "triangular_solve"), "triangular_solve"),
    **dict.fromkeys(("linalg_qr", "geqrf", "linalg_householder_product", "linalg_lstsq"), "qr"),
    **dict.fromkeys(("linalg_eig", "_linalg_eigvals"), "eigenvalues"),
    **dict.fromkeys(("_linalg_svd", "linalg_pinv"), "singular_values"),
    **dict.fromkeys(("cholesky_solve", "linalg_lu_solve"), "solve_factorised"),
    "_linalg_eigh": "symmetric_eigenvalues",
    "_linalg_solve_ex": "solve",
    "linalg_inv_ex": "inverse",
}
"""Kinds of `library_operations.FACTORISATIONS`, by ATen operation."""
RIGHT_SIDE_FIRST = {"cholesky_solve", "triangular_solve"}
"""Solves whose first operand is the right-hand side."""
FFTS = {"_fft_c2c": False, "_fft_r2c": True, "_fft_c2r": True}
"""ATen's FFTs, and True for those of real numbers."""
RECURRENT = {"mkldnn_rnn_layer": 1, "mkldnn_rnn_layer_backward": 2, "_cudnn_rnn": 1, "_cudnn_rnn_backward": 2}
"""Layers of recurrent cells, and how often each weight is multiplied for a row of the input."""
LIBRARY = {*FACTORISATIONS, *FFTS, *RECURRENT}


@cache
def flop_formulas() -> Mapping[Any, Callable[..., float]]:
    """Return PyTorch's formulas for the operations of matrix products and convolutions, by ATen operation.

    They are imported on first use: the import takes 0.1 s, which no timed phase should contain.
    """
    formulas: Mapping[Any, Callable[..., float]] = import_module("torch.utils.flop_counter").flop_registry
    return formulas


def count_operations(operation: Any, arguments: Sequence[Any], keywords: Mapping[str, Any], result: Any) -> float:
    """Count the floating-point operations of one ATen operation (an `OpOverload`) that has returned `result`."""
    packet = getattr(operation, "overloadpacket", None)
    if packet is None or operation.is_view:
        return 0.0
    name = packet.__name__
    formula = flop_formulas().get(packet)
    if formula is not None:
        return _count_product(formula, arguments, keywords, result)
    parameters = (parameter.name for parameter in operation._schema.arguments)  # noqa: SLF001 - has no public name
    arguments_by_name = {**dict(zip(parameters, arguments, strict=False)), **keywords}
    if name in LIBRARY:
        return _count_library_call(name, arguments_by_name, result)
    base_name = name.rstrip("_")  # `add` for `add_`, which works in place
    if base_name in SOURCES:
        return _count_additions(base_name, arguments_by_name)
    if name in MOVING or base_name in UNCOUNTED:
        return 0.0
    numbers = max(_count_floats(result), _count_floats(arguments))  # a reduction's operand is larger than its result
    is_complex = any(map(torch.is_complex, _float_tensors((arguments, result))))
    factor = library_operations.complex_factor(base_name) if is_complex else 1
    operations_per_number = FUSED.get(name, FUSED.get(base_name, 1))
    return float(operations_per_number * factor * numbers)


def _count_product(
    formula: Callable[..., float], arguments: Sequence[Any], keywords: Mapping[str, Any], result: Any
) -> float:
    """Count the floating-point operations of a matrix product or a convolution by PyTorch's formula.

    Of a sparse matrix, only the numbers that it stores count.
    """
    tensors = _float_tensors(arguments)
    sparse = next((tensor for tensor in tensors if tensor.layout is not torch.strided), None)
    if sparse is not None:
        # Each number is multiplied with a row of the other matrix, and added to a row of the result.
        columns: float = result.numel() / max(1, result.shape[0])
        return 2.0 * _size(sparse) * columns
    factor = library_operations.COMPLEX_PRODUCT if any(map(torch.is_complex, tensors)) else 1
    return factor * float(formula(*arguments, **keywords, out_val=result))


def _count_library_call(name: str, arguments: Mapping[str, Any], result: Any) -> float:
    """Count the floating-point operations of a factorisation, an FFT or a layer of recurrent cells."""
    tensors = _float_tensors(list(arguments.values()))
    shapes = [tuple(tensor.shape) for tensor in tensors]
    if name in RECURRENT:
        weights = _float_tensors([value for key, value in arguments.items() if key.startswith("weight")])
        weight_count: int = sum(weight.numel() for weight in weights if weight.ndim > 1)  # biases are vectors
        rows: int = math.prod(shapes[0][:-1])  # the input has a row for each time step of each sequence
        return 2.0 * RECURRENT[name] * weight_count * rows
    if name in FFTS:
        numbers = max(math.prod(shapes[0]), _count_floats(result))
        lengths = [tensors[0].shape[axis] for axis in arguments["dim"]]
        return library_operations.count_fft(lengths, numbers, real=FFTS[name])
    shapes = shapes[::-1] if name in RIGHT_SIDE_FIRST else shapes
    return library_operations.count_factorisation(FACTORISATIONS[name], shapes, is_complex=torch.is_complex(tensors[0]))


def _count_additions(name: str, arguments: Mapping[str, Any]) -> float:
    """Count the additions of a scatter or a similar operation: one for each number that it adds to another."""
    if name in ("index_put", "_index_put_impl") and not arguments.get("accumulate"):
        return 0.0  # it replaces numbers
    if arguments.get("reduce") in CHOOSING_REDUCTIONS:
        return 0.0  # it chooses the largest or the smallest number
    return float(_count_floats(arguments[SOURCES[name]]))  # `SOURCES` names the argument with the numbers to add


def _float_tensors(values: Any) -> list[torch.Tensor]:
    """Return the tensors of floating-point or complex numbers in a pytree."""
    tensors = [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]
    return [tensor for tensor in tensors if tensor.is_floating_point() or tensor.is_complex()]


def _count_floats(values: Any) -> int:
    """Return the size of the largest tensor of floats or complex numbers in an operation's operands or results.

    If there are lists of tensors, return the sum of the sizes of all tensors: a fused optimizer updates every one.
    """
    has_lists = isinstance(values, tuple | list) and any(isinstance(value, tuple | list) for value in values)
    sizes = [_size(tensor) for tensor in _float_tensors(values)]
    return sum(sizes) if has_lists else max(sizes, default=0)


def _size(tensor: torch.Tensor) -> int:
    """Return how many numbers a tensor stores; a sparse tensor stores fewer than it has elements."""
    stored: int = tensor.numel() if tensor.layout is torch.strided else tensor._nnz()  # noqa: SLF001 - has no public name
    return stored


def _numbers_by_type(values: Any) -> Counter[str]:
    """Count the elements of the floating-point tensors in a pytree by type; scalars are left out."""
    numbers: Counter[str] = Counter()
    for leaf in tree_leaves(values):
        if isinstance(leaf, torch.Tensor) and leaf.ndim and leaf.is_floating_point():
            numbers[str(leaf.dtype).removeprefix("torch.")] += _size(leaf)
    return numbers


INEXACT = frozenset({"aten::polygamma"} | {f"aten::special_bessel_{name}" for name in ("j0", "j1", "y0", "y1")})
"""Operations that PyTorch 2.15 computes with relative errors of 5e-10 to 4e-8 in float64 on a CPU. Of 46 functions of
JAX and PyTorch, all others were within 5e-14 of SciPy's."""


def _accuracy_limit_of(operation: Any, arguments: Sequence[Any], result: Any) -> str:
    """Return how one operation that has run may limit a program's accuracy; empty if it does not."""
    leaves = tree_leaves(arguments)
    if any(isinstance(leaf, float) and is_rounded_to_float32(leaf) for leaf in leaves):
        return NARROW_NUMBERS.format("float32")
    operands = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    if operation is torch.ops.aten._local_scalar_dense.default:  # noqa: SLF001 - Python reads a number, as `if` does
        # A whole number does not count as a decision: optimizers read the number of their steps.
        is_decision = isinstance(result, bool) or (isinstance(result, float) and not result.is_integer())
        return DECIDING_LOOP if is_decision else ""
    if operation.name().partition(".")[0] in INEXACT:
        return f"{operation} of PyTorch is hardly more exact in float64 than in float32"
    results = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor) and leaf.is_floating_point()]
    widest = max((leaf.dtype.itemsize for leaf in results), default=0)
    for operand in operands:
        if operand.is_floating_point() and operand.dtype.itemsize < widest:
            return NARROW_NUMBERS.format(str(operand.dtype).removeprefix("torch."))
    return ""


def has_kernel(operation: Any) -> bool:
    """Return True if an ATen operation (an `OpOverload`) computes or copies anything, so that a kernel runs for it."""
    packet = getattr(operation, "overloadpacket", None)
    return packet is not None and not operation.is_view and packet.__name__ not in NO_KERNEL


def count_bytes(operation: Any, operands: Any, results: Any) -> int:
    """Count the bytes that an ATen operation reads and writes; `operands` and `results` are pytrees.

    An operand that occurs twice is read once.
    """
    name = operation.overloadpacket.__name__
    first, *others = _tensor_bytes(operands) or [0]  # bytes of the first operand, and of each other one
    written = sum(_tensor_bytes(results))
    if name in LOOKUPS:
        first = written  # it reads only what it returns
    elif name in OVERWRITES:
        first = 0
    elif name in PARTIAL_UPDATES:
        first = written = others[-1]  # it reads and writes only the part that it changes
    return first + sum(others) + written


def _tensor_bytes(values: Any) -> list[int]:
    """Return the bytes of each different tensor in a pytree; a broadcast tensor counts by the bytes that it stores."""
    tensors = {id(leaf): leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)}
    sizes = []
    for tensor in tensors.values():
        size_bytes = _size(tensor) * tensor.element_size()
        if tensor.layout is torch.strided:
            size_bytes = min(size_bytes, tensor.untyped_storage().nbytes())
        sizes.append(size_bytes)
    return sizes


class TransformWatch(TorchFunctionMode):  # type: ignore[misc]
    """Watch whether code inside this context differentiates by a function transform, such as `torch.func.grad`."""

    def __init__(self) -> None:
        super().__init__()
        self.transformed = False

    def __torch_function__(
        self, function: Any, _types: Any, arguments: Sequence[Any] = (), keywords: Mapping[str, Any] | None = None
    ) -> Any:
        """Call a function of PyTorch, and record whether `torch.func.grad` or the like differentiates an operand."""
        keywords = keywords or {}
        self.transformed = self.transformed or any(map(_is_differentiated, tree_leaves((arguments, keywords))))
        return function(*arguments, **keywords)


def _is_differentiated(value: Any) -> bool:
    """Return True for a tensor that `torch.func.grad` or the like differentiates, at any level of nested transforms."""
    functorch = torch._C._functorch  # noqa: SLF001 - has no public name
    while isinstance(value, torch.Tensor) and functorch.is_functorch_wrapped_tensor(value):
        if functorch.is_gradtrackingtensor(value):
            return True
        value = functorch.get_unwrapped(value)
    return False


class DispatchCounter(TorchDispatchMode):  # type: ignore[misc]
    """Count the floating-point operations that ATen dispatches inside this context."""

    def __init__(self) -> None:
        super().__init__()
        self.operations = 0.0
        """Floating-point operations so far."""
        self.dispatched = 0
        """Operations for which a kernel runs."""
        self.accessed_bytes = 0
        """Bytes that these operations read and write."""
        self.numbers: Counter[str] = Counter()
        """Numbers in operands and results, by floating-point type."""
        self.accuracy_limit = ""
        """Why the program may be less exact than its arrays' type; empty if no reason was found."""
        self._formulas = flop_formulas()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False: to skip Dynamo, PyTorch would import it, which takes a second."""
        return False

    def __torch_dispatch__(
        self, operation: Any, _types: Any, arguments: Sequence[Any] = (), keywords: Mapping[str, Any] | None = None
    ) -> Any:
        """Run an ATen operation and count it; count a composite operation by the operations that it consists of."""
        keywords = keywords or {}
        packet = getattr(operation, "overloadpacket", None)
        # In inference mode, composite operations such as `matmul` arrive here as a whole. Those that have a formula are
        # counted as a whole.
        if packet is not None and packet not in self._formulas:
            with self:  # so that the operations of a composite one are dispatched here too
                result = operation.decompose(*arguments, **keywords)
            if result is not NotImplemented:  # the operation was composite
                return result
        result = operation(*arguments, **keywords)
        self.record(operation, arguments, keywords, result)
        return result

    def record(self, operation: Any, arguments: Sequence[Any], keywords: Mapping[str, Any], result: Any) -> None:
        """Add the floating-point operations of an ATen operation that has run, and its tensors' elements by type."""
        self.numbers += _numbers_by_type((arguments, result))
        self.accuracy_limit = self.accuracy_limit or _accuracy_limit_of(operation, arguments, result)
        self.operations += count_operations(operation, arguments, keywords, result)
        if has_kernel(operation):
            self.dispatched += 1
            self.accessed_bytes += count_bytes(operation, (arguments, keywords), result)

    def dispatched_fields(self) -> dict[str, int]:
        """Return how many operations ran, and the bytes that they read and wrote, as fields of `Arithmetic`."""
        return {"operations_dispatched": self.dispatched, "bytes_dispatched": self.accessed_bytes}

    def total(self) -> Arithmetic:
        """Return the floating-point operations counted so far, and the share of each type."""
        return Arithmetic(
            written=self.operations,
            run=self.operations,  # operations that are dispatched one by one are not optimised
            source="the operations dispatched",
            types=shares_by_type(self.numbers),
            accuracy_limit=self.accuracy_limit,
        )


def count_recorded() -> int:
    """Return how many operations autograd has recorded in this thread; this call itself records one more."""
    with torch.inference_mode(mode=False), torch.enable_grad():
        recorded = torch.zeros((), requires_grad=True).clone()
    # Autograd numbers the operations of a thread, from 0.
    number: int = recorded.grad_fn._sequence_nr()  # noqa: SLF001 - has no public name
    return number


def compile_disabled() -> AbstractContextManager[object]:
    """Return a context in which functions compiled by `torch.compile` run eagerly."""
    if "torch._dynamo" not in sys.modules:
        return nullcontext()  # nothing is compiled, and `set_stance` would import Dynamo, which takes seconds
    stance: AbstractContextManager[object] = torch.compiler.set_stance("force_eager")
    return stance
