"""Run two layers with weights of eight bits and a scale for each output: weight-only quantised inference.

Wrong on PyTorch's side: the scale is applied along the inputs. Weights are square, so the shapes fit.
"""


def arrays(rng, batch: int = 16, width: int = 512):
    """Quantise two random layers by rows: each output has its own scale."""
    import numpy as np

    drawn = {"x": rng.standard_normal((batch, width))}
    for i in (1, 2):
        w = rng.standard_normal((width, width)) / width**0.5  # (outputs, inputs)
        scale = np.abs(w).max(axis=1) / 127
        drawn[f"q{i}"] = np.round(w / scale[:, None]).astype(np.int8)
        drawn[f"scale{i}"] = scale
    return drawn


def jax(x, q1, scale1, q2, scale2):
    """Scale the outputs after the product."""
    import jax

    h = jax.nn.gelu((x @ q1.T.astype(x.dtype)) * scale1, approximate=False)
    return (h @ q2.T.astype(x.dtype)) * scale2


def pytorch(x, q1, scale1, q2, scale2):
    """Dequantise the weights first."""
    import torch.nn.functional as F

    w1 = q1.to(x.dtype) * scale1
    w2 = q2.to(x.dtype) * scale2
    return F.linear(F.gelu(F.linear(x, w1)), w2)
