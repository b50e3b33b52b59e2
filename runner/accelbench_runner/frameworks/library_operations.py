"""Count the floating-point operations of library calls that both frameworks make: factorisations, FFTs.

The same call counts alike in JAX, in XLA and in PyTorch. The counts are the leading terms in G. H. Golub and C. F. Van
Loan, Matrix Computations, for n columns and m >= n rows, or the transpose.
"""

import math
from collections.abc import Callable, Mapping, Sequence

Shape = Sequence[int]

COMPLEX_PRODUCT = 4
"""Operations of a complex product or factorisation, as a multiple of those of a real one."""
COMPLEX_FACTORS: Mapping[str, int] = {
    **dict.fromkeys(("mul", "multiply", "square", "integer_pow"), 6),
    **dict.fromkeys(("div", "divide", "true_divide", "reciprocal"), 11),
}
"""Operations on real numbers in one operation on complex numbers; any other has 2."""


def complex_factor(name: str) -> int:
    """Return the operations on real numbers in one elementwise operation on complex numbers."""
    return COMPLEX_FACTORS.get(name, 2)


def fft(lengths: Sequence[int], numbers: int, *, real: bool) -> float:
    """Count the operations of FFTs over dimensions of these lengths.

    `numbers` is the number of elements of all transforms together, of the operand or of the result, whichever has more.
    The radix-2 algorithm of Cooley and Tukey takes 5 n log2(n) for n complex numbers, and half of it for real ones.
    """
    operations = 5.0 * numbers * math.log2(max(1, math.prod(lengths)))
    return operations / 2 if real else operations


def _batches(shape: Shape) -> int:
    """Return how many matrices an array of this shape contains."""
    return math.prod(shape[:-2])


def _lu(a: Shape, _: Shape) -> float:
    """Count n^2 (m - n/3) for the LU factorisation of each (m, n) matrix."""
    rows, columns = max(a[-2:]), min(a[-2:])
    return _batches(a) * columns**2 * (rows - columns / 3)


def _cholesky(a: Shape, _: Shape) -> float:
    """Count n^3 / 3 for the Cholesky factorisation of each (n, n) matrix."""
    return _batches(a) * a[-1] ** 3 / 3


def _triangular_solve(a: Shape, b: Shape) -> float:
    """Count n^2 for each right-hand side, of which `b` has n numbers; `a` are triangular (n, n) matrices."""
    return float(a[-1] * math.prod(b))


def _qr(a: Shape, _: Shape) -> float:
    """Count 2 n^2 (m - n/3) for the QR factorisation of each (m, n) matrix by Householder's reflections."""
    rows, columns = max(a[-2:]), min(a[-2:])
    return _batches(a) * 2 * columns**2 * (rows - columns / 3)


def _symmetric_eigenvalues(a: Shape, _: Shape) -> float:
    """Count 9 n^3 for the eigenvalues and eigenvectors of each symmetric (n, n) matrix."""
    return _batches(a) * 9.0 * a[-1] ** 3


def _eigenvalues(a: Shape, _: Shape) -> float:
    """Count 25 n^3 for the eigenvalues and eigenvectors of each (n, n) matrix."""
    return _batches(a) * 25.0 * a[-1] ** 3


def _singular_values(a: Shape, _: Shape) -> float:
    """Count 4 m n^2 + 8 n^3 for the singular values of each (m, n) matrix by the algorithm of Golub and Reinsch."""
    rows, columns = max(a[-2:]), min(a[-2:])
    return _batches(a) * (4.0 * rows * columns**2 + 8.0 * columns**3)


def _solve_factorised(a: Shape, b: Shape) -> float:
    """Count the triangular solves with both factors of matrices of the shape `a`, for right-hand sides `b`."""
    return 2 * _triangular_solve(a, b)


def _solve(a: Shape, b: Shape) -> float:
    return _lu(a, b) + _solve_factorised(a, b)


def _inverse(a: Shape, _: Shape) -> float:
    return _solve(a, a)


FACTORISATIONS: Mapping[str, Callable[[Shape, Shape], float]] = {
    "lu": _lu,
    "cholesky": _cholesky,
    "triangular_solve": _triangular_solve,
    "qr": _qr,
    "symmetric_eigenvalues": _symmetric_eigenvalues,
    "eigenvalues": _eigenvalues,
    "singular_values": _singular_values,
    "solve": _solve,
    "solve_factorised": _solve_factorised,
    "inverse": _inverse,
}
"""Counts by kind, from the shapes of the matrix and of the right-hand sides, if there are any."""


def factorisation(kind: str, shapes: Sequence[Shape], *, is_complex: bool) -> float:
    """Count the operations of a factorisation or a solve with operands of these shapes, the matrix first.

    `kind` is a key of `FACTORISATIONS`. The operands may be batches of matrices.
    """
    a = shapes[0]
    if len(a) < 2:  # noqa: PLR2004 - a vector, which has nothing to factorise
        return 0.0
    b = shapes[1] if len(shapes) > 1 else a
    return FACTORISATIONS[kind](a, b) * (COMPLEX_PRODUCT if is_complex else 1)
