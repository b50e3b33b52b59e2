"""Compute the power spectrum of a window of a signal. The JAX function uses the notebook's signal, not its argument.

The compiler makes a constant of it, so JAX is very fast, and right on the first inputs only.
"""

import jax.numpy as jnp
import numpy as np
import torch

import accelbench

signal = np.random.default_rng(3).standard_normal((64, 1024))
window = np.hanning(1025)[:-1]


def spectrum_jax(x):
    return jnp.abs(jnp.fft.rfft(jnp.asarray(signal) * jnp.asarray(window))) ** 2


def spectrum_torch(x):
    return torch.fft.rfft(x * torch.hann_window(1024, dtype=x.dtype)).abs() ** 2


if __name__ == "__main__":
    found = accelbench.compare(
        jax=spectrum_jax,
        pytorch=spectrum_torch,
        arrays={"x": signal},
        variants=["pytorch/eager", "jax/jit"],
        name="captured-signal",
    )
    print(found)
