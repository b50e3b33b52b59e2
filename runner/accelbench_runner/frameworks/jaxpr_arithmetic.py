"""Count floating-point operations of JAX's equations.

The rule is that of `xla_arithmetic`: 2 m n k for a product, one for each result of elementwise arithmetic and for each
operand of a sum, and none for moving, comparing, choosing and sorting.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from accelbench_runner.frameworks import library_operations
from accelbench_runner.frameworks.adapter import DECIDING_LOOP, NARROW_NUMBERS, is_rounded_to_float32
from accelbench_runner.frameworks.xla_operations import executed_jaxprs

ELEMENTWISE = {
    *("add", "add_any", "sub", "mul", "div", "pow", "integer_pow", "square", "sqrt", "rsqrt", "cbrt", "logistic"),
    *("exp", "exp2", "expm1", "log", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "atan2"),
    *("sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "erf_inv", "lgamma", "digamma"),
}
REDUCTIONS = {
    *("reduce_sum", "reduce_prod", "reduce", "cumsum", "cumprod", "cumlogsumexp", "reduce_window_sum"),
    *("reduce_window",),
}
ADDING_SCATTERS = {"scatter-add", "scatter_add", "scatter-sub", "scatter_sub", "scatter-mul", "scatter_mul"}
"""Scatters that compute one number for each update; the others choose or move numbers."""
FACTORISATIONS: Mapping[str, str] = {
    "lu": "lu",
    "cholesky": "cholesky",
    "triangular_solve": "triangular_solve",
    "qr": "qr",
    "geqrf": "qr",
    "geqp3": "qr",
    "householder_product": "qr",
    "eigh": "symmetric_eigenvalues",
    "eig": "eigenvalues",
    "schur": "eigenvalues",
    "svd": "singular_values",
}
"""Kinds of `library_operations.FACTORISATIONS`, by primitive."""
REAL_FFTS = {"RFFT", "IRFFT"}
CALLBACKS = {"pure_callback", "io_callback"}


def count_equation(equation: Any) -> float:  # noqa: PLR0911 - one return for each kind of primitive
    """Count the floating-point operations of one equation of a jaxpr, without those of jaxprs that it calls."""
    name = equation.primitive.name
    operands = [variable.aval for variable in equation.invars]  # shapes and types ("abstract values")
    results = [variable.aval for variable in equation.outvars if is_float(variable.aval)]
    size: int = sum(math.prod(result.shape) for result in results)  # a complex number counts as one here
    has_complex_numbers = any(map(_is_complex, [*results, *operands]))
    product_factor = library_operations.COMPLEX_PRODUCT if has_complex_numbers else 1
    match name:
        case "dot_general":
            (contracted, _), _ = equation.params["dimension_numbers"]
            contracted_lengths: list[int] = [operands[0].shape[index] for index in contracted]
            return 2.0 * product_factor * size * math.prod(contracted_lengths)
        case "conv_general_dilated":
            kernel: tuple[int, ...] = operands[1].shape
            # `rhs_spec` lists the kernel's dimensions: output features, input features, then space.
            output_features: int = kernel[equation.params["dimension_numbers"].rhs_spec[0]]
            return 2.0 * product_factor * size * math.prod(kernel) / max(1, output_features)
        case "fft":
            numbers = max(math.prod(array.shape) for array in (*operands, *results))
            real = equation.params["fft_type"].name in REAL_FFTS
            return library_operations.count_fft(equation.params["fft_lengths"], numbers, real=real)
        case name if name in FACTORISATIONS:
            shapes = [operand.shape for operand in operands]
            return library_operations.count_factorisation(FACTORISATIONS[name], shapes, is_complex=has_complex_numbers)
        case name if name in ADDING_SCATTERS:
            return _count_real_numbers(operands[2])  # the updates, after the array and the indices
        case "select_and_scatter_add":
            return _count_real_numbers(operands[0])  # the numbers to add, which come first here
        case name if name in REDUCTIONS:
            return _count_real_numbers(operands[0])
        case name if name in ELEMENTWISE:
            factor = library_operations.complex_factor(name) if has_complex_numbers else 1
            return float(size * factor)
        case _:
            return 0.0


def _count_real_numbers(aval: Any) -> float:
    """Count the real numbers of a floating-point array: a complex number counts as two, an integer as none."""
    if not is_float(aval):
        return 0.0
    return float(math.prod(aval.shape) * (2 if _is_complex(aval) else 1))


def is_float(aval: Any) -> bool:
    """Return True for arrays of floating-point or complex numbers."""
    return "float" in str(getattr(aval, "dtype", "")) or _is_complex(aval)


def _is_complex(aval: Any) -> bool:
    return "complex" in str(getattr(aval, "dtype", ""))


def _bytes_of_part(aval: Any) -> int:
    """Return the bytes of a real number, or of a part of a complex one."""
    itemsize: int = aval.dtype.itemsize
    return itemsize // 2 if _is_complex(aval) else itemsize


def has_callback(jaxpr: Any) -> bool:
    """Return True if a jaxpr, or one that it calls, contains a callback into Python."""
    return any(
        equation.primitive.name in CALLBACKS or any(map(has_callback, executed_jaxprs(equation)))
        for equation in jaxpr.eqns
    )


def accuracy_limit(jaxpr: Any) -> str | None:
    """Return why a program may be less exact than its arrays' type, for `Arithmetic.accuracy_limit`.

    The text is empty if no reason is found. None if a callback into Python hides some operations.
    """
    if has_callback(jaxpr):
        return None
    return next(filter(None, map(_limit_of_equation, _all_equations(jaxpr))), "")


def _all_equations(jaxpr: Any) -> Iterator[Any]:
    """Yield the equations of a jaxpr, and of those that it calls."""
    for equation in jaxpr.eqns:
        yield equation
        for called_jaxpr in executed_jaxprs(equation):
            yield from _all_equations(called_jaxpr)


def _limit_of_equation(equation: Any) -> str:
    """Return how one equation may limit a program's accuracy; empty if it does not."""
    for variable in equation.invars:  # constants too, which have the attribute `val`
        is_number = hasattr(variable, "val") and np.ndim(variable.val) == 0
        is_float_number = is_number and "float" in str(variable.aval.dtype)
        if is_float_number and is_rounded_to_float32(float(np.asarray(variable.val))):
            return NARROW_NUMBERS.format("float32")
    match equation.primitive.name:
        case "while":
            return DECIDING_LOOP
        case "cond" if not equation.params.get("branches_platforms"):  # these depend on the platform, not on data
            return DECIDING_LOOP
        case "convert_element_type":
            operand, result = equation.invars[0].aval, equation.outvars[0].aval
            if is_float(operand) and is_float(result) and _bytes_of_part(operand) < _bytes_of_part(result):
                return NARROW_NUMBERS.format(operand.dtype)
    return ""


def numbers_by_type(jaxpr: Any) -> Counter[str]:
    """Count the elements of all arrays in a jaxpr by floating-point type; scalars are left out."""
    numbers = _numbers_of_variables(jaxpr.invars)
    for equation in jaxpr.eqns:
        numbers += _numbers_of_variables(equation.outvars)
        for called_jaxpr in executed_jaxprs(equation):
            numbers += numbers_by_type(called_jaxpr)
    return numbers


def _numbers_of_variables(variables: Iterable[Any]) -> Counter[str]:
    """Count the elements of the arrays in a jaxpr's variables by floating-point type; scalars are left out."""
    numbers: Counter[str] = Counter()
    for variable in variables:
        dtype = str(getattr(variable.aval, "dtype", ""))
        if "float" in dtype and variable.aval.shape:
            numbers[dtype] += math.prod(variable.aval.shape)
    return numbers
