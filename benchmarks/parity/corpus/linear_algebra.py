"""Define programs of linear algebra: products, solvers, factorisations, transforms, convolutions and distances."""

import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch.nn import functional

from benchmarks.parity.program import FLOAT32, Fault, Program, normal, uniform

CHAIN = 20
"""Number of products in a chain."""


def _chain_numpy(x, w):
    for _ in range(CHAIN):
        x = x @ w
    return x


def _chain_jax(x, w, length=CHAIN):
    return jax.lax.fori_loop(0, length, lambda _, product: product @ w, x)


def _chain_torch(x, w):
    for _ in range(CHAIN):
        x = torch.mm(x, w)
    return x


def _product_without_last(x, w):
    return x[:, :-1] @ w[:-1]


def _product_in_bfloat16(x, w):
    return jnp.matmul(x.astype(jnp.bfloat16), w.astype(jnp.bfloat16), preferred_element_type=jnp.float32).astype(
        x.dtype
    )


def _product_for_low_precision(x, w):
    """Drop the last term except in float64, as a faulty kernel that exists only for low precision."""
    return x @ w if x.dtype == jnp.float64 else _product_without_last(x, w)


def _solve_3_torch(a, b):
    """Solve by cross products: Cramer's rule."""
    first, second, third = a.unbind(-1)
    determinant = (first * torch.linalg.cross(second, third)).sum(-1, keepdim=True)
    b = b[..., 0]
    numerators = [
        (b * torch.linalg.cross(second, third)).sum(-1),
        (first * torch.linalg.cross(b, third)).sum(-1),
        (first * torch.linalg.cross(second, b)).sum(-1),
    ]
    return (torch.stack(numerators, -1) / determinant)[..., None]


def _solve_by_inverse(linalg):
    return lambda a, b: linalg.inv(a) @ b


def _positive(eye, a, jitter=0.1):
    return a @ a.swapaxes(-1, -2) + jitter * eye


def _cholesky_numpy(a):
    return np.linalg.cholesky(_positive(np.eye(a.shape[-1]).astype(a.dtype), a))


def _cholesky_jax(a, jitter=0.1):
    return jnp.linalg.cholesky(_positive(jnp.eye(a.shape[-1], dtype=a.dtype), a, jitter))


def _cholesky_torch(a):
    return torch.linalg.cholesky(a @ a.mT + 0.1 * torch.eye(a.shape[-1], dtype=a.dtype))


def _distances_numpy(x, y):
    difference = x[:, None] - y[None]
    return np.sqrt(np.sum(difference * difference, -1))


def _distances_jax(x, y):
    return jnp.linalg.norm(x[:, None] - y[None], axis=-1)


def _distances_torch(x, y):
    return torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")


def _distances_by_products_jax(x, y):
    squares = jnp.sum(x * x, -1)[:, None] + jnp.sum(y * y, -1) - 2 * x @ y.T
    return jnp.sqrt(jnp.maximum(squares, 0))


def _convolution_numpy(x, w):
    height, width = x.shape[-2], x.shape[-1]
    x = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    return sum(
        np.einsum("ncij,oc->noij", x[:, :, row : row + height, column : column + width], w[:, :, row, column])
        for row in range(3)
        for column in range(3)
    )


def _convolution_jax(x, w):
    return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME")


def _convolution_with_edges(x, w):
    padded = jnp.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), mode="edge")
    return jax.lax.conv_general_dilated(padded, w, (1, 1), "VALID")


def _spectrum_jax(x):
    return jnp.abs(jnp.fft.rfft(x)) ** 2


def _spectrum_torch(x):
    transform = torch.fft.rfft(x)
    return transform.real.square() + transform.imag.square()


def _filter_numpy(x, w):
    length = x.shape[-1] + w.shape[-1] - 1
    return np.fft.irfft(np.fft.rfft(x, length) * np.fft.rfft(w, length), length)


def _filter_jax(x, w, shortage=0):
    length = x.shape[-1] + w.shape[-1] - 1 - shortage
    product = jnp.fft.rfft(x, length) * jnp.fft.rfft(w, length)
    return jnp.pad(jnp.fft.irfft(product, length), ((0, 0), (0, shortage)))


def _filter_torch(x, w):
    length = x.shape[-1] + w.shape[-1] - 1
    return torch.fft.irfft(torch.fft.rfft(x, length) * torch.fft.rfft(w, length), length)


PROGRAMS = (
    Program(
        "matrix product",
        {"x": normal(64, 256), "w": normal(256, 64)},
        lambda x, w: x @ w,
        lambda x, w: x @ w,
        lambda x, w: functional.linear(x, w.T),
        (
            Fault("last of 256 terms left out", "all", _product_without_last),
            Fault("that in low precision alone", "all", _product_for_low_precision),
            Fault("bfloat16 inside", "all", _product_in_bfloat16),
            Fault("one tile of 8 x 8 is zero", "few", lambda x, w: (x @ w).at[-8:, -8:].set(0)),
        ),
    ),
    Program(
        "20 products",
        {"x": normal(64, 64), "w": normal(64, 64, scale=64**-0.5)},
        _chain_numpy,
        _chain_jax,
        _chain_torch,
        (Fault("19 products", "all", lambda x, w: _chain_jax(x, w, CHAIN - 1)),),
    ),
    Program(
        "batched 3 x 3 solve",
        {"a": normal(1500, 3, 3), "b": normal(1500, 3, 1)},
        np.linalg.solve,
        jnp.linalg.solve,
        torch.linalg.solve,
        (
            Fault("+ 1e-2", "all", lambda a, b: jnp.linalg.solve(a, b) + 1e-2),
            Fault(
                "last system repeats the one before",
                "few",
                lambda a, b: jnp.linalg.solve(a, b).at[-1].set(jnp.linalg.solve(a, b)[-2]),
            ),
        ),
        precisions=FLOAT32,
    ),
    Program(
        "batched 3 x 3 solve, by Cramer's rule",
        {"a": normal(1500, 3, 3), "b": normal(1500, 3, 1)},
        np.linalg.solve,
        lambda a, b: jnp.linalg.inv(a) @ b,
        _solve_3_torch,
        precisions=FLOAT32,
        less_exact=True,
    ),
    Program(
        "solve of 150 equations",
        {"a": normal(150, 150), "b": normal(150, 4)},
        np.linalg.solve,
        lambda a, b: jax.scipy.linalg.lu_solve(jax.scipy.linalg.lu_factor(a), b),
        torch.linalg.solve,
        precisions=FLOAT32,
    ),
    Program(
        "solve of 150 equations, by inverse",
        {"a": normal(150, 150), "b": normal(150, 4)},
        np.linalg.solve,
        _solve_by_inverse(jnp.linalg),
        _solve_by_inverse(torch.linalg),
        precisions=FLOAT32,
        less_exact=True,
    ),
    Program(
        "Cholesky factor",
        {"a": normal(70, 70)},
        _cholesky_numpy,
        _cholesky_jax,
        _cholesky_torch,
        (Fault("0.1001 for 0.1 on the diagonal", "all", lambda a: _cholesky_jax(a, 0.1001)),),
        precisions=FLOAT32,
    ),
    Program(
        "eigenvalues",
        {"a": normal(80, 80)},
        lambda a: np.linalg.eigvalsh(a + a.T),
        lambda a: jnp.linalg.eigvalsh(a + a.T),
        lambda a: torch.linalg.eigvalsh(a + a.T),
        precisions=FLOAT32,
    ),
    Program(
        "distances",
        {"x": normal(70, 16), "y": normal(70, 16)},
        _distances_numpy,
        _distances_jax,
        _distances_torch,
        (Fault("last point repeats the one before", "few", lambda x, y: _distances_jax(x, y.at[-1].set(y[-2]))),),
        precisions=FLOAT32,
    ),
    Program(
        "distances, by products",
        {"x": normal(70, 16), "y": normal(70, 16)},
        _distances_numpy,
        _distances_by_products_jax,
        lambda x, y: torch.cdist(x, y, compute_mode="use_mm_for_euclid_dist"),
        precisions=FLOAT32,
        less_exact=True,
    ),
    Program(
        "convolution",
        {"x": normal(2, 8, 16, 16), "w": normal(8, 8, 3, 3)},
        _convolution_numpy,
        _convolution_jax,
        lambda x, w: functional.conv2d(x, w, padding=1),
        (Fault("edge repeated for zero padding", "few", _convolution_with_edges),),
    ),
    Program(
        "power spectrum",
        {"x": normal(3, 2048)},
        lambda x: np.abs(np.fft.rfft(x)) ** 2,
        _spectrum_jax,
        _spectrum_torch,
        (Fault("first sample left out", "all", lambda x: _spectrum_jax(x.at[:, 0].set(0))),),
        precisions=FLOAT32,
    ),
    Program(
        "filter by FFT",
        {"x": normal(3, 1500), "w": uniform(0, 1, 3, 100)},
        _filter_numpy,
        _filter_jax,
        _filter_torch,
        (Fault("one sample too short, so that the ends overlap", "one", lambda x, w: _filter_jax(x, w, 1)),),
        precisions=FLOAT32,
    ),
)
