"""Multiply a complex matrix by a complex vector: directly, and by products of real and imaginary parts.

A notebook cell; three programs.
"""

import jax.numpy as jnp
import torch

import accelbench


def draw(rng, size=700):
    """Draw real and imaginary parts."""

    def complex_normal(*shape):
        return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)

    return {"m": complex_normal(size, size), "v": complex_normal(size)}


def split(m, v):
    real = m.real @ v.real - m.imag @ v.imag
    imag = m.real @ v.imag + m.imag @ v.real
    return torch.complex(real, imag)


found = accelbench.compare(
    pytorch=lambda m, v: torch.mv(m, v),
    pytorch_split=split,
    jax=lambda m, v: jnp.dot(m, v),
    arrays=draw,
    measure={"unit": "product"},
)
print(found)
