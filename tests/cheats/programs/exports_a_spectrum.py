"""Exports a Fourier transform, in JAX its conjugate."""

import numpy as np

from cheats.honest import Layer


class ExportsASpectrum(Layer):
    """y = the Fourier transform of x @ w."""

    def reference(self, p, a, units):
        return {"y": np.fft.fft(a.batches[0]["x"] @ a.state["w"])}

    def jax(self, p, arrays, tools):
        import jax.numpy as jnp

        return self.program(arrays, tools, lambda s, b: (s, jnp.conj(jnp.fft.fft(b["x"] @ s["w"]))))

    def pytorch(self, p, arrays, tools):
        import torch

        return self.program(arrays, tools, lambda s, b: (s, torch.fft.fft(b["x"] @ s["w"])))
