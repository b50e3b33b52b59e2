"""Return the adjoint of a spectrum, and an imaginary part: in PyTorch both are flags on the tensor."""


def arrays(rng, n: int = 64):
    return {"x": rng.standard_normal((n, n))}


def jax(x):
    import jax.numpy as jnp

    spectrum = jnp.fft.fft2(x)
    return spectrum.mT.conj(), spectrum.conj().imag


def pytorch(x):
    import torch

    spectrum = torch.fft.fft2(x)
    return spectrum.mH, spectrum.conj().imag
