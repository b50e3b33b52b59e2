"""A transformer's block as ViT and GPT-2 have it, layer normalisation first: in NumPy, in JAX and in PyTorch.

Vaswani and others (2017); Dosovitskiy and others (2021), equations 2 and 3. x is (batch, length, width).
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from accelbench.workload import Array, NamedArrays

if TYPE_CHECKING:
    from numpy.random import Generator

EPSILON = 1e-6
WIDER = 4
"""How much wider the perceptron's hidden layer is than the block."""


def draw(layers: int, width: int, rng: "Generator") -> NamedArrays:
    """The weights of all blocks, each stacked: (layers, in, out), biases and gains (layers, width).

    Variance 1/in, and 1/(2 layers in) for what is added to x, so that x keeps its size; gains around 1.
    """
    hidden, small = WIDER * width, 1 / math.sqrt(2 * layers)
    shapes = {
        "attend": (width, 3 * width, 1.0),
        "project": (width, width, small),
        "expand": (width, hidden, 1.0),
        "contract": (hidden, width, small),
    }
    found = {}
    for name, (fan_in, fan_out, scale) in shapes.items():
        found[name] = rng.standard_normal((layers, fan_in, fan_out)) * scale / math.sqrt(fan_in)
        found[f"{name}_bias"] = 0.02 * rng.standard_normal((layers, fan_out))
    for name in ("gain1", "gain2"):
        found[name] = 1 + 0.02 * rng.standard_normal((layers, width))
        found[f"{name}_bias"] = 0.02 * rng.standard_normal((layers, width))
    return found


def one(weights: Mapping[str, Any], layer: int) -> dict[str, Any]:
    """The weights of one block out of all."""
    return {name: stacked[layer] for name, stacked in weights.items()}


def block_flops(batch: int, length: int, width: int) -> float:
    """Of its products alone, in which nearly all of a block's time is spent: 2 n m k for each."""
    tokens = batch * length
    return 2.0 * tokens * width**2 * (4 + 2 * WIDER) + 4.0 * tokens * length * width


PRODUCTS = 6
"""Of a block: queries, keys and values as one, scores, mixed values, projection, and two of the perceptron."""


def block(x: Array, w: NamedArrays, heads: int) -> Array:
    """In NumPy: attention to everything in x, then the perceptron, each added to what it was given."""
    import numpy as np
    from scipy.special import erf

    batch, length, width = x.shape
    mixed = normalised(x, w["gain1"], w["gain1_bias"]) @ w["attend"] + w["attend_bias"]
    q, k, v = (part.reshape(batch, length, heads, -1).swapaxes(1, 2) for part in np.split(mixed, 3, -1))
    scores = q @ k.swapaxes(2, 3) / math.sqrt(width // heads)
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    attended = (scores / scores.sum(-1, keepdims=True) @ v).swapaxes(1, 2).reshape(x.shape)
    x = x + attended @ w["project"] + w["project_bias"]
    hidden = normalised(x, w["gain2"], w["gain2_bias"]) @ w["expand"] + w["expand_bias"]
    hidden = hidden * (1 + erf(hidden / math.sqrt(2))) / 2
    return np.asarray(x + hidden @ w["contract"] + w["contract_bias"])


def normalised(x: Array, gain: Array, bias: Array) -> Array:
    """Layer normalisation over the last axis."""
    import numpy as np

    deviation = x - x.mean(-1, keepdims=True)
    return np.asarray(deviation / np.sqrt((deviation**2).mean(-1, keepdims=True) + EPSILON) * gain + bias)


def jax_block(x: Any, w: Mapping[str, Any], heads: int, valid: Any = None) -> Any:
    """In JAX; `valid` (length,) says which of x may be attended to, where not all."""
    import jax
    import jax.numpy as jnp

    batch, length, _ = x.shape
    mixed = jax_normalised(x, w["gain1"], w["gain1_bias"]) @ w["attend"] + w["attend_bias"]
    q, k, v = (part.reshape(batch, length, heads, -1) for part in jnp.split(mixed, 3, -1))
    # Written out: jax.nn.dot_product_attention takes its softmax in float32 whatever the policy, and has no float16 on
    # a CPU.
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(x.shape[-1] // heads)
    shares = jax.nn.softmax(scores if valid is None else jnp.where(valid, scores, -jnp.inf), -1)
    attended = jnp.einsum("bhqk,bkhd->bqhd", shares, v).reshape(x.shape)
    x = x + attended @ w["project"] + w["project_bias"]
    hidden = jax_normalised(x, w["gain2"], w["gain2_bias"]) @ w["expand"] + w["expand_bias"]
    return x + jax.nn.gelu(hidden, approximate=False) @ w["contract"] + w["contract_bias"]


def jax_normalised(x: Any, gain: Any, bias: Any) -> Any:
    """Layer normalisation, written out: JAX has no kernel for it."""
    import jax

    deviation = x - x.mean(-1, keepdims=True)
    return deviation * jax.lax.rsqrt((deviation**2).mean(-1, keepdims=True) + EPSILON) * gain + bias


def torch_block(x: Any, w: Mapping[str, Any], heads: int) -> Any:
    """In PyTorch, with its kernels for attention and layer normalisation."""
    from torch.nn import functional

    batch, length, width = x.shape
    mixed = torch_normalised(x, w["gain1"], w["gain1_bias"]) @ w["attend"] + w["attend_bias"]
    q, k, v = (part.view(batch, length, heads, -1).transpose(1, 2) for part in mixed.split(width, -1))
    attended = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape)
    x = x + attended @ w["project"] + w["project_bias"]
    hidden = torch_normalised(x, w["gain2"], w["gain2_bias"]) @ w["expand"] + w["expand_bias"]
    return x + functional.gelu(hidden) @ w["contract"] + w["contract_bias"]


def torch_normalised(x: Any, gain: Any, bias: Any) -> Any:
    """torch.nn.functional.layer_norm."""
    from torch.nn import functional

    return functional.layer_norm(x, x.shape[-1:], gain, bias, EPSILON)
