"""Count floating-point operations of a JAX program: as written (jaxpr) and as optimised (HLO).

One rule makes both counts comparable: 2 m n k for a product, one for each result of elementwise arithmetic, one for
each operand of a reduction, none for moving, comparing and selecting. XLA's cost analysis is no use here, because it
counts a loop's body once.
"""

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

from accelbench_runner.frameworks.xla_operations import (
    Instruction,
    Module,
    UncountableError,
    common_count,
    inner_jaxprs,
    is_convolution_call,
    is_product_call,
    trip_count,
)

ELEMENTWISE = {
    *("add", "add_any", "sub", "subtract", "mul", "multiply", "div", "divide", "pow", "power", "integer_pow", "square"),
    *("sqrt", "rsqrt", "cbrt", "exp", "exponential", "exp2", "expm1", "exponential-minus-one", "log", "log1p"),
    *("log-plus-one", "tanh", "logistic", "sin", "sine", "cos", "cosine", "tan", "atan2", "erf", "erfc", "erf_inv"),
}
REDUCTIONS = {
    *("reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "cumsum", "cumprod", "cumlogsumexp", "cummax", "cummin"),
    *("reduce", "reduce-window", "reduce_window_sum", "reduce_window"),
}
SHAPE = re.compile(r"^\s*(?:ROOT )?%?([\w.\-]+) = \(?(bf16|f\d+\w*)\[([\d,]*)\]")
"""Matches the type of an instruction's first result: a library's call also returns its workspace."""
OPERANDS = re.compile(r"%([\w.\-]+)")
CONTRACTED = re.compile(r"lhs_contracting_dims=\{([\d,]*)\}")
LABELS = re.compile(r"dim_labels=\w+_(\w+)->(\w+)")
"""Matches the dimension labels of a convolution's kernel and result: `o` and `f` are output features, `i` input
features. A library's call for a gradient carries the labels of the forward convolution."""

Shape = tuple[int, ...]


def count_hlo(text: str) -> float | None:
    """Count the floating-point operations of one run of an optimised HLO module.

    The result is None if they depend on data.
    """
    module = Module(text)
    if not module.entry:
        return None
    shapes = {}  # of floating-point results, by name
    for line in text.splitlines():
        if match := SHAPE.match(line):
            name, dimensions = match[1], match[3]
            shapes[name] = _dimensions(dimensions)
    return _count_or_none(lambda: _count_computation(module, shapes, {}, module.entry))


def _count_computation(module: Module, shapes: dict[str, Shape], counts: dict[str, float], name: str) -> float:
    """Count the floating-point operations of one run of a computation.

    `counts` is a cache.
    """
    if name not in counts:
        instructions = module.instructions(name)
        counts[name] = math.fsum(
            _count_instruction(module, shapes, counts, instruction) for instruction in instructions
        )
    return counts[name]


def _count_instruction(  # noqa: PLR0911 - one return for each kind of instruction
    module: Module, shapes: dict[str, Shape], counts: dict[str, float], instruction: Instruction
) -> float:
    """Count the floating-point operations of one HLO instruction.

    `shapes` maps the names of floating-point results to their shapes.
    """
    line = instruction.line
    result = SHAPE.match(line)
    shape = _dimensions(result[3]) if result else None  # None: the result is not of a floating-point type
    right_hand_side = line.partition(" = ")[2]
    operands = [shapes[name] for name in OPERANDS.findall(right_hand_side) if name in shapes]
    match instruction.opcode:
        case "dot" | "convolution" | "custom-call":
            return _count_product(instruction.opcode, line, shape or (), operands)
        case "while":
            body = math.fsum(_count_computation(module, shapes, counts, name) for name in instruction.called)
            return body * trip_count(line) if body else 0.0  # a loop that computes nothing may be of unknown length
        case "conditional":
            return common_count([_count_computation(module, shapes, counts, name) for name in instruction.called])
        case opcode if opcode in REDUCTIONS:
            return float(math.prod(operands[0])) if operands else 0.0
        case opcode if opcode in ELEMENTWISE:
            return float(math.prod(shape)) if shape is not None else 0.0
        case "fusion" | "call" | "async-start" | "call-start":
            return math.fsum(_count_computation(module, shapes, counts, name) for name in instruction.called)
        case _:
            return 0.0


def _count_product(opcode: str, line: str, shape: Shape, operands: Sequence[Shape]) -> float:
    """Count 2 operations for each multiplication in a product or a convolution.

    `shape` is that of the result.
    """
    if len(operands) < 2:  # noqa: PLR2004 - a product has two
        return 0.0
    left, right = operands[:2]
    if opcode == "dot" and (contracted := CONTRACTED.search(line)):
        contracted_lengths = [left[index] for index in _dimensions(contracted[1])]
        return 2.0 * math.prod(shape) * math.prod(contracted_lengths)
    if (labels := LABELS.search(line)) and (opcode == "convolution" or is_convolution_call(line)):
        feature_index = _feature_dimension(line, kernel_labels=labels[1], result_labels=labels[2])
        # Each number of the result sums over all elements of the second operand that belong to one feature.
        return 2.0 * math.prod(shape) * math.prod(right) / max(1, right[feature_index])
    if opcode == "custom-call" and is_product_call(line):
        # A library's call does not say which dimensions it contracts. With operands (m, k) and (k, n) and a result
        # (m, n), the count is 2 mn k, and k = sqrt(mk * kn / mn).
        size = math.prod(shape)
        return 2.0 * size * math.sqrt(math.prod(left) * math.prod(right) / max(1, size))
    return 0.0


def _feature_dimension(line: str, kernel_labels: str, result_labels: str) -> int:
    """Return which dimension of a convolution's second operand holds the result's features.

    For a gradient, the labels are those of the forward convolution.
    """
    if "BackwardInput" in line:
        return kernel_labels.index("i")  # the second operand is the kernel, the result the input's gradient
    if "BackwardFilter" in line:
        return result_labels.index("f")  # the second operand is the forward result's gradient
    return kernel_labels.index("o")  # the second operand is the kernel


def _dimensions(text: str) -> Shape:
    """Parse dimensions such as `2,3`."""
    return tuple(int(number) for number in text.split(",") if number)


def count_jaxpr(jaxpr: Any) -> float | None:
    """Count the floating-point operations of a jaxpr; None if they depend on data."""
    return _count_or_none(lambda: _count_jaxpr(jaxpr))


def has_callback(jaxpr: Any) -> bool:
    """Return True if a jaxpr contains a callback into Python."""
    return any(
        equation.primitive.name in {"pure_callback", "io_callback"}
        or any(map(has_callback, inner_jaxprs(equation.params)))
        for equation in jaxpr.eqns
    )


def float_types(jaxpr: Any) -> set[str]:
    """Return the floating-point types of all arrays in a jaxpr, without scalars."""
    variables = [*jaxpr.invars]
    types: set[str] = set()
    for equation in jaxpr.eqns:
        variables += equation.outvars
        for inner in inner_jaxprs(equation.params):
            types |= float_types(inner)
    return types | {str(variable.aval.dtype) for variable in variables if _is_float_array(variable.aval)}


def _is_float_array(aval: Any) -> bool:
    return _is_float(aval) and bool(aval.shape)


def _count_jaxpr(jaxpr: Any) -> float:
    """Count the floating-point operations of a jaxpr, or raise UncountableError."""
    return math.fsum(map(_count_equation, jaxpr.eqns))


def _count_equation(equation: Any) -> float:  # noqa: PLR0911 - one return for each kind of primitive
    """Count the floating-point operations of one equation, or raise UncountableError."""
    inner_counts = [_count_jaxpr(inner) for inner in inner_jaxprs(equation.params)]
    first_operand: Any = equation.invars[0].aval if equation.invars else None
    results = [out.aval for out in equation.outvars if _is_float(out.aval)]
    size = float(sum(math.prod(result.shape) for result in results))
    match equation.primitive.name:
        case "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            contracted_lengths: Shape = tuple(first_operand.shape[index] for index in contracted)
            return 2.0 * size * math.prod(contracted_lengths)
        case "conv_general_dilated":
            kernel: Shape = equation.invars[1].aval.shape
            # `rhs_spec` lists the kernel's dimensions: output features, input features, then space.
            output_features: int = kernel[equation.params["dimension_numbers"].rhs_spec[0]]
            return 2.0 * size * math.prod(kernel) / max(1, output_features)
        case "scan":
            return math.fsum(inner_counts) * int(equation.params["length"])
        case "while" if any(inner_counts):
            raise UncountableError  # a jaxpr does not hold a while loop's length
        case "cond":
            return common_count(inner_counts)
        case name if name in REDUCTIONS:
            return float(math.prod(first_operand.shape)) if _is_float(first_operand) else 0.0
        case name if name in ELEMENTWISE:
            return size
        case _:
            return math.fsum(inner_counts)


def _is_float(aval: Any) -> bool:
    return "float" in str(getattr(aval, "dtype", ""))


def _count_or_none(count: Callable[[], float]) -> float | None:
    """Return the count; None if it depends on data."""
    try:
        return count()
    except UncountableError:
        return None
