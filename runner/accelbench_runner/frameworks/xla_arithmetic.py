"""Count floating-point operations of a JAX program: as written (jaxpr) and as optimised (HLO).

One rule makes both counts comparable: 2 m n k for a product, one per result of elementwise arithmetic, one per operand
of a reduction, none for moving, comparing and selecting. XLA's own cost analysis counts a loop's body once.
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
    """Count one run of an optimised module; None without a module, or if a count depends on data."""
    module = Module(text)
    if not module.entry:
        return None
    shapes = {match[1]: _dimensions(match[3]) for line in text.splitlines() if (match := SHAPE.match(line))}
    return _count_or_none(lambda: _count_computation(module, shapes, {}, module.entry))


def _count_computation(module: Module, shapes: dict[str, Shape], counts: dict[str, float], name: str) -> float:
    """Count a computation; `counts` holds those that have been counted before."""
    if name not in counts:
        instructions = module.instructions(name)
        counts[name] = math.fsum(
            _count_instruction(module, shapes, counts, instruction) for instruction in instructions
        )
    return counts[name]


def _count_instruction(  # noqa: PLR0911 - one return a kind of instruction
    module: Module, shapes: dict[str, Shape], counts: dict[str, float], instruction: Instruction
) -> float:
    """Count one instruction, with the computations that it runs; raise UncountableError."""
    line, result = instruction.line, SHAPE.match(instruction.line)
    shape = _dimensions(result[3]) if result else None
    operands = [shapes[name] for name in OPERANDS.findall(line.partition(" = ")[2]) if name in shapes]
    match instruction.opcode:
        case "dot" | "convolution" | "custom-call":
            return _count_product(instruction.opcode, line, shape or (), operands)
        case "while":
            body = math.fsum(_count_computation(module, shapes, counts, name) for name in instruction.called)
            return body * trip_count(line) if body else 0.0
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
    """Count a product or convolution, also of a library: 2 operations per multiplied pair; 0 for other calls."""
    if len(operands) < 2:  # noqa: PLR2004 - a product has two
        return 0.0
    left, right = operands[:2]
    if opcode == "dot" and (contracted := CONTRACTED.search(line)):
        return 2.0 * math.prod(shape) * math.prod(left[index] for index in _dimensions(contracted[1]))
    if (labels := LABELS.search(line)) and (opcode == "convolution" or is_convolution_call(line)):
        kernel, result = labels[1], labels[2]
        features = {
            "BackwardInput": kernel.index("i"),
            "BackwardFilter": result.index("f"),  # the operand is the gradient at the result
        }
        index = next((position for kind, position in features.items() if kind in line), kernel.index("o"))
        return 2.0 * math.prod(shape) * math.prod(right) / max(1, right[index])
    if opcode == "custom-call" and is_product_call(line):
        size = math.prod(shape) or math.prod(left)
        return 2.0 * size * math.sqrt(math.prod(left) * math.prod(right) / max(1, size))
    return 0.0


def _dimensions(text: str) -> Shape:
    """Parse dimensions such as `2,3`; empty for a scalar."""
    return tuple(int(number) for number in text.split(",") if number)


def count_jaxpr(jaxpr: Any) -> float | None:
    """Count one run of a jaxpr, unused results included; None if a count depends on data."""
    return _count_or_none(lambda: _count_jaxpr(jaxpr))


def has_callback(jaxpr: Any) -> bool:
    """Return True if a jaxpr calls back into Python, whose operations cannot be counted."""
    return any(
        equation.primitive.name in {"pure_callback", "io_callback"}
        or any(map(has_callback, inner_jaxprs(equation.params)))
        for equation in jaxpr.eqns
    )


def float_types(jaxpr: Any) -> set[str]:
    """Return the floating-point types of the arrays in a jaxpr; scalars do not count."""
    variables = [*jaxpr.invars, *(variable for equation in jaxpr.eqns for variable in equation.outvars)]
    own = {str(variable.aval.dtype) for variable in variables if _is_float(variable.aval) and variable.aval.shape}
    return own.union(*(float_types(inner) for equation in jaxpr.eqns for inner in inner_jaxprs(equation.params)))


def _count_jaxpr(jaxpr: Any) -> float:
    return math.fsum(map(_count_equation, jaxpr.eqns))


def _count_equation(equation: Any) -> float:  # noqa: PLR0911 - one return a primitive
    """Count one equation, with the jaxprs that it runs; raise UncountableError."""
    inner_counts = [_count_jaxpr(inner) for inner in inner_jaxprs(equation.params)]
    operand: Any = equation.invars[0].aval if equation.invars else None
    size: float = float(sum(math.prod(out.aval.shape) for out in equation.outvars if _is_float(out.aval)))
    match equation.primitive.name:
        case "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            lengths: Shape = tuple(operand.shape[index] for index in contracted)
            return 2.0 * size * math.prod(lengths)
        case "conv_general_dilated":
            kernel: Shape = equation.invars[1].aval.shape
            features: int = kernel[equation.params["dimension_numbers"].rhs_spec[0]]
            return 2.0 * size * math.prod(kernel) / max(1, features)
        case "scan":
            return math.fsum(inner_counts) * int(equation.params["length"])
        case "while" if any(inner_counts):
            raise UncountableError
        case "cond":
            return common_count(inner_counts)
        case name if name in REDUCTIONS:
            return float(math.prod(operand.shape)) if _is_float(operand) else 0.0
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
