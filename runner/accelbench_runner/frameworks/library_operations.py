"""Count the floating-point operations of library calls that both frameworks make: factorisations, FFTs.

The same call gets the same count in JAX, in XLA and in PyTorch. The counts are the leading terms in G. H. Golub and
C. F. Van Loan, Matrix Computations, for n columns and m >= n rows, or the transpose.
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
"""Operations on real numbers in one operation on complex numbers; an operation that is not listed has 2."""


def complex_factor(name: str) -> int:
    """Return how many operations on real numbers one elementwise operation on complex numbers takes."""
    return COMPLEX_FACTORS.get(name, 2)


def count_fft(lengths: Sequence[int], numbers: int, *, real: bool) -> float:
    """Count the floating-point operations of a batch of FFTs over dimensions of these lengths.

    `numbers` is the size of the operand or of the result, whichever is larger. The radix-2 algorithm of Cooley and
    Tukey takes 5 n log2(n) operations for n complex numbers, and half as many for real numbers.
    """
    operations = 5.0 * numbers * math.log2(max(1, math.prod(lengths)))
    return operations / 2 if real else operations


# The functions below take the shape of the matrices, then that of the right-hand sides, which most kinds lack.


def _matrix_count(shape: Shape) -> int:
    """Return how many matrices an array of this shape contains."""
    return math.prod(shape[:-2])


def _lu(matrices: Shape, _: Shape) -> float:
    """Count the operations of LU factorisations: n^2 (m - n/3) for each (m, n) matrix, where m >= n."""
    m, n = max(matrices[-2:]), min(matrices[-2:])  # the transpose of a matrix takes as many
    return _matrix_count(matrices) * n**2 * (m - n / 3)


def _cholesky(matrices: Shape, _: Shape) -> float:
    """Count the operations of Cholesky factorisations: n^3 / 3 for each (n, n) matrix."""
    return _matrix_count(matrices) * matrices[-1] ** 3 / 3


def _triangular_solve(matrices: Shape, right_sides: Shape) -> float:
    """Count the operations of solves with triangular (n, n) matrices: n^2 for each right-hand side of n numbers."""
    return float(matrices[-1] * math.prod(right_sides))


def _qr(matrices: Shape, _: Shape) -> float:
    """Count the operations of QR factorisations by Householder reflections: 2 n^2 (m - n/3) for an (m, n) matrix."""
    m, n = max(matrices[-2:]), min(matrices[-2:])  # the transpose of a matrix takes as many
    return _matrix_count(matrices) * 2 * n**2 * (m - n / 3)


def _symmetric_eigenvalues(matrices: Shape, _: Shape) -> float:
    """Count the operations of eigenvalues and eigenvectors: 9 n^3 for each symmetric (n, n) matrix."""
    return _matrix_count(matrices) * 9.0 * matrices[-1] ** 3


def _eigenvalues(matrices: Shape, _: Shape) -> float:
    """Count the operations of eigenvalues and eigenvectors: 25 n^3 for each (n, n) matrix."""
    return _matrix_count(matrices) * 25.0 * matrices[-1] ** 3


def _singular_values(matrices: Shape, _: Shape) -> float:
    """Count the operations of singular values by Golub and Reinsch: 4 m n^2 + 8 n^3 for an (m, n) matrix, m >= n."""
    m, n = max(matrices[-2:]), min(matrices[-2:])  # the transpose of a matrix takes as many
    return _matrix_count(matrices) * (4.0 * m * n**2 + 8.0 * n**3)


def _solve_factorised(matrices: Shape, right_sides: Shape) -> float:
    """Count the operations of solves with factorised matrices: one triangular solve for each of the two factors."""
    return 2 * _triangular_solve(matrices, right_sides)


def _solve(matrices: Shape, right_sides: Shape) -> float:
    """Count the operations of solves: LU factorisations, and triangular solves with their factors."""
    return _lu(matrices, right_sides) + _solve_factorised(matrices, right_sides)


def _inverse(matrices: Shape, _: Shape) -> float:
    """Count the operations of inverting matrices: of solves whose right-hand sides are identity matrices."""
    return _solve(matrices, matrices)  # an identity matrix has the shape of the matrix


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


def count_factorisation(kind: str, shapes: Sequence[Shape], *, is_complex: bool) -> float:
    """Count the floating-point operations of a factorisation or a solve, batched or not.

    `kind` is a key of `FACTORISATIONS`. `shapes` are those of the operands: the matrices, then any right-hand sides.
    """
    matrices = shapes[0]
    if len(matrices) < 2:  # noqa: PLR2004 - a vector, which has nothing to factorise
        return 0.0
    right_sides = shapes[1] if len(shapes) > 1 else matrices  # ignored by kinds without right-hand sides
    return FACTORISATIONS[kind](matrices, right_sides) * (COMPLEX_PRODUCT if is_complex else 1)
