"""Implement a transformer block with layer normalisation first, as in ViT and GPT-2, in NumPy, JAX and PyTorch.

Vaswani and others (2017); Dosovitskiy and others (2021), equations 2 and 3. x is (batch, length, width).
"""

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from accelbench.workload import Array, NamedArrays

if TYPE_CHECKING:
    from numpy.random import Generator

Vjp = Callable[[Array], tuple[Array, dict[str, Array]]]
"""Function from the gradient by the output to the gradients by the input and by each weight."""
EPSILON = 1e-6
WIDER = 4
"""Width of the perceptron's hidden layer, in block widths."""


def draw(layers: int, width: int, rng: "Generator") -> NamedArrays:
    """Draw the stacked weights of all blocks: (layers, in, out); biases and gains (layers, width).

    The variance is 1/in, or 1/(2 layers in) for residual branches, so that x keeps its scale; gains are around 1.
    """
    hidden, small = WIDER * width, 1 / math.sqrt(2 * layers)
    shapes = {
        "attend": (width, 3 * width, 1.0),
        "project": (width, width, small),
        "expand": (width, hidden, 1.0),
        "contract": (hidden, width, small),
    }
    weights = {}
    for name, (fan_in, fan_out, scale) in shapes.items():
        weights[name] = rng.standard_normal((layers, fan_in, fan_out)) * scale / math.sqrt(fan_in)
        weights[f"{name}_bias"] = 0.02 * rng.standard_normal((layers, fan_out))
    for name in ("gain1", "gain2"):
        weights[name] = 1 + 0.02 * rng.standard_normal((layers, width))
        weights[f"{name}_bias"] = 0.02 * rng.standard_normal((layers, width))
    return weights


def block_weights(weights: Mapping[str, Any], layer: int) -> dict[str, Any]:
    """Return one block's weights out of the stack."""
    return {name: stacked[layer] for name, stacked in weights.items()}


def block_flops(batch: int, length: int, width: int) -> float:
    """Count the operations of a block's products, 2 n m k each, which take nearly all of its time."""
    tokens = batch * length
    return 2.0 * tokens * width**2 * (4 + 2 * WIDER) + 4.0 * tokens * length * width


PRODUCTS = 6
"""Matrix products of a block: QKV, scores, values, projection, and two of the perceptron."""


def block(x: Array, w: NamedArrays, heads: int) -> Array:
    """Apply a block in NumPy: attention without a mask, then the perceptron, each added to its input."""
    return block_vjp(x, w, heads)[0]


def block_vjp(x: Array, w: NamedArrays, heads: int, *, causal: bool = False) -> tuple[Array, Vjp]:
    """Apply a block in NumPy, and return its output with its `Vjp`.

    `causal`: each token attends to itself and to earlier tokens.
    """
    import numpy as np
    from scipy.special import erf

    batch, length, width = x.shape
    root = math.sqrt(width // heads)

    def by_head(part: Array) -> Array:
        return part.reshape(batch, length, heads, -1).swapaxes(1, 2)

    def all_heads(part: Array) -> Array:
        return part.swapaxes(1, 2).reshape(x.shape)

    first, back_to_x = normalised_vjp(x, w["gain1"], w["gain1_bias"])
    q, k, v = map(by_head, np.split(first @ w["attend"] + w["attend_bias"], 3, -1))
    scores = q @ k.swapaxes(2, 3) / root
    if causal:
        scores = np.where(np.tri(length, dtype=bool), scores, -np.inf)
    attention = np.exp(scores - scores.max(-1, keepdims=True))
    attention /= attention.sum(-1, keepdims=True)
    attended = all_heads(attention @ v)
    middle = x + attended @ w["project"] + w["project_bias"]
    second, back_to_middle = normalised_vjp(middle, w["gain2"], w["gain2_bias"])
    pre = second @ w["expand"] + w["expand_bias"]
    cdf = (1 + erf(pre / math.sqrt(2))) / 2
    hidden = pre * cdf
    out = middle + hidden @ w["contract"] + w["contract_bias"]

    def back(d_out: Array) -> tuple[Array, dict[str, Array]]:
        slope = cdf + pre * np.exp(-(pre**2) / 2) / math.sqrt(2 * math.pi)
        d_before = d_out @ w["contract"].T * slope
        d_second, *by_gain2 = back_to_middle(d_before @ w["expand"].T)
        d_middle = d_out + d_second
        d_heads = by_head(d_middle @ w["project"].T)
        d_attention = d_heads @ v.swapaxes(2, 3)
        d_scores = attention * (d_attention - (d_attention * attention).sum(-1, keepdims=True)) / root
        parts = (d_scores @ k, d_scores.swapaxes(2, 3) @ q, attention.swapaxes(2, 3) @ d_heads)
        d_mixed = np.concatenate([all_heads(part) for part in parts], -1)
        d_first, *by_gain1 = back_to_x(d_mixed @ w["attend"].T)
        products = {
            "attend": (first, d_mixed),
            "project": (attended, d_middle),
            "expand": (second, d_before),
            "contract": (hidden, d_out),
        }
        gradients = {name: np.tensordot(given, d_out, ((0, 1), (0, 1))) for name, (given, d_out) in products.items()}
        gradients |= {f"{name}_bias": d_out.sum((0, 1)) for name, (_, d_out) in products.items()}
        gradients |= {"gain1": by_gain1[0], "gain1_bias": by_gain1[1], "gain2": by_gain2[0], "gain2_bias": by_gain2[1]}
        return d_middle + d_first, gradients

    return out, back


def normalised(x: Array, gain: Array, bias: Array) -> Array:
    """Apply layer normalisation over the last axis."""
    return normalised_vjp(x, gain, bias)[0]


def normalised_vjp(x: Array, gain: Array, bias: Array) -> tuple[Array, Callable[[Array], tuple[Array, Array, Array]]]:
    """Apply layer normalisation, and return a function to the gradients by x, gain and bias."""
    import numpy as np

    deviation = x - x.mean(-1, keepdims=True)
    scale = 1 / np.sqrt((deviation**2).mean(-1, keepdims=True) + EPSILON)
    unit = deviation * scale

    def back(d_out: Array) -> tuple[Array, Array, Array]:
        d_unit = d_out * gain
        along = unit * (d_unit * unit).mean(-1, keepdims=True)
        others = tuple(range(x.ndim - 1))
        d_x = scale * (d_unit - d_unit.mean(-1, keepdims=True) - along)
        return d_x, (d_out * unit).sum(others), d_out.sum(others)

    return np.asarray(unit * gain + bias), back


def jax_block(x: Any, w: Mapping[str, Any], heads: int, valid: Any = None) -> Any:
    """Apply a block in JAX; `valid` (length,) masks tokens that may not be attended to."""
    import jax
    import jax.numpy as jnp

    batch, length, _ = x.shape
    mixed = jax_normalised(x, w["gain1"], w["gain1_bias"]) @ w["attend"] + w["attend_bias"]
    q, k, v = (part.reshape(batch, length, heads, -1) for part in jnp.split(mixed, 3, -1))
    attended = jax_attention(q, k, v, valid).reshape(x.shape)
    x = x + attended @ w["project"] + w["project_bias"]
    hidden = jax_normalised(x, w["gain2"], w["gain2_bias"]) @ w["expand"] + w["expand_bias"]
    return x + jax.nn.gelu(hidden, approximate=False) @ w["contract"] + w["contract_bias"]


def jax_attention(q: Any, k: Any, v: Any, valid: Any = None) -> Any:
    """Apply jax.nn.dot_product_attention to (batch, length, heads, features), or write it out.

    JAX's function computes its softmax in float32 for every type, and has no float16 on a CPU: there attention is
    written out to keep the policy's precision.
    """
    import jax
    import jax.numpy as jnp

    if q.dtype in (jnp.float32, jnp.bfloat16):
        return jax.nn.dot_product_attention(q, k, v, mask=None if valid is None else valid[None, None, None, :])
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
    attention = jax.nn.softmax(scores if valid is None else jnp.where(valid, scores, -jnp.inf), -1)
    return jnp.einsum("bhqk,bkhd->bqhd", attention, v)


def jax_normalised(x: Any, gain: Any, bias: Any) -> Any:
    """Write out layer normalisation, for which JAX has no kernel."""
    import jax

    deviation = x - x.mean(-1, keepdims=True)
    return deviation * jax.lax.rsqrt((deviation**2).mean(-1, keepdims=True) + EPSILON) * gain + bias


def torch_block(weights: Mapping[str, Any], heads: int) -> Any:
    """Return a block as a torch.nn.Module with PyTorch's attention kernel."""
    return _torch_block()(weights, heads)


@cache
def _torch_block() -> Any:
    """Create the block's class once, because torch.compile compiles again for another class."""
    import torch
    from torch.nn import functional

    class Block(torch.nn.Module):  # type: ignore[misc]
        def __init__(self, w: Mapping[str, Any], heads: int) -> None:
            super().__init__()
            self.heads = heads
            self.first = torch_normalisation(w["gain1"], w["gain1_bias"])
            self.attend = torch_linear(w["attend"], w["attend_bias"])
            self.project = torch_linear(w["project"], w["project_bias"])
            self.second = torch_normalisation(w["gain2"], w["gain2_bias"])
            self.expand = torch_linear(w["expand"], w["expand_bias"])
            self.contract = torch_linear(w["contract"], w["contract_bias"])

        def forward(self, x: Any) -> Any:
            batch, length, _ = x.shape
            mixed = self.attend(self.first(x)).chunk(3, -1)
            q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in mixed)
            attended = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape)
            x = x + self.project(attended)
            return x + self.contract(functional.gelu(self.expand(self.second(x))))

    return Block


def torch_block_weights(parameters: Mapping[str, Any], block: str) -> dict[str, Any]:
    """Return one block's weights by their names; `block` is the module's name in `parameters`."""
    layers = {"gain1": "first", "gain2": "second"} | {
        name: name for name in ("attend", "project", "expand", "contract")
    }
    by_name: dict[str, Any] = {}
    for name, layer in layers.items():
        weights, bias = (parameters[f"{block}.{layer}.{part}"] for part in ("weight", "bias"))
        by_name |= {name: weights.T if weights.ndim > 1 else weights, f"{name}_bias": bias}
    return by_name


def torch_linear(weights: Any, bias: Any = None) -> Any:
    """Return torch.nn.Linear with weights (in, out) and a bias (out,)."""
    import torch

    linear = torch.nn.Linear(
        *weights.shape, bias=bias is not None, device="meta"
    )  # its random weights would be overwritten
    linear.weight = torch.nn.Parameter(weights.T.contiguous())
    if bias is not None:
        linear.bias = torch.nn.Parameter(bias)
    return linear


def torch_normalisation(gain: Any, bias: Any) -> Any:
    """Return torch.nn.LayerNorm over the last axis."""
    import torch

    layer = torch.nn.LayerNorm(len(gain), EPSILON, device="meta")
    layer.weight, layer.bias = torch.nn.Parameter(gain), torch.nn.Parameter(bias)
    return layer
