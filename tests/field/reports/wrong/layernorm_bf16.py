"""Normalise rows of 768 features (LayerNorm) in bfloat16, by the library and written out, in PyTorch and JAX.

A notebook cell. Wrong in `jax`: the standard deviation is the unbiased one (n - 1), and epsilon is added to it
instead of to the variance. Both are smaller than bfloat16 can tell.
"""

import numpy as np
import torch

import accelbench


def torch_layer_norm(x, scale, bias):
    return torch.nn.functional.layer_norm(x, x.shape[-1:], scale, bias, eps=1e-5)


def torch_written(x, scale, bias):
    mean = x.mean(-1, keepdim=True)
    variance = x.var(-1, keepdim=True, unbiased=False)
    return (x - mean) / torch.sqrt(variance + 1e-5) * scale + bias


def jax_written(x, scale, bias):
    mean = x.mean(-1, keepdims=True)
    deviation = x.std(-1, keepdims=True, ddof=1)
    return (x - mean) / (deviation + 1e-5) * scale + bias


if __name__ == "__main__":
    rng = np.random.default_rng(4)
    found = accelbench.compare(
        pytorch=torch_layer_norm,
        pytorch_written=torch_written,
        jax=jax_written,
        arrays={
            "x": rng.standard_normal((256, 768)) * 2 + 1,
            "scale": 1 + 0.1 * rng.standard_normal(768),
            "bias": 0.1 * rng.standard_normal(768),
        },
        precision="bfloat16",
    )
    print(found)
