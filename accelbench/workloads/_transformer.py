"""A transformer's block as ViT and GPT-2 have it, layer normalisation first: in NumPy, in JAX and in PyTorch.

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
"""Gradients by what was given and by each weight, from the gradient by what came out."""
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
    return block_vjp(x, w, heads)[0]


def block_vjp(x: Array, w: NamedArrays, heads: int, *, causal: bool = False) -> tuple[Array, Vjp]:
    """The same, and its chain rule: what the loss's gradient by the block's output makes by x, and by each weight.

    `causal`: each of x attends to itself and to what comes before it.
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
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    attended = all_heads(shares @ v)
    middle = x + attended @ w["project"] + w["project_bias"]
    second, back_to_middle = normalised_vjp(middle, w["gain2"], w["gain2_bias"])
    before = second @ w["expand"] + w["expand_bias"]
    below = (1 + erf(before / math.sqrt(2))) / 2
    hidden = before * below
    out = middle + hidden @ w["contract"] + w["contract_bias"]

    def back(at: Array) -> tuple[Array, dict[str, Array]]:
        slope = below + before * np.exp(-(before**2) / 2) / math.sqrt(2 * math.pi)
        at_before = at @ w["contract"].T * slope
        at_second, *by_gain2 = back_to_middle(at_before @ w["expand"].T)
        at_middle = at + at_second
        at_heads = by_head(at_middle @ w["project"].T)
        at_shares = at_heads @ v.swapaxes(2, 3)
        at_scores = shares * (at_shares - (at_shares * shares).sum(-1, keepdims=True)) / root
        parts = (at_scores @ k, at_scores.swapaxes(2, 3) @ q, shares.swapaxes(2, 3) @ at_heads)
        at_mixed = np.concatenate([all_heads(part) for part in parts], -1)
        at_first, *by_gain1 = back_to_x(at_mixed @ w["attend"].T)
        products = {
            "attend": (first, at_mixed),
            "project": (attended, at_middle),
            "expand": (second, at_before),
            "contract": (hidden, at),
        }
        gradients = {name: np.tensordot(given, at_out, ((0, 1), (0, 1))) for name, (given, at_out) in products.items()}
        gradients |= {f"{name}_bias": at_out.sum((0, 1)) for name, (_, at_out) in products.items()}
        gradients |= {"gain1": by_gain1[0], "gain1_bias": by_gain1[1], "gain2": by_gain2[0], "gain2_bias": by_gain2[1]}
        return at_middle + at_first, gradients

    return out, back


def normalised(x: Array, gain: Array, bias: Array) -> Array:
    """Layer normalisation over the last axis."""
    return normalised_vjp(x, gain, bias)[0]


def normalised_vjp(x: Array, gain: Array, bias: Array) -> tuple[Array, Callable[[Array], tuple[Array, Array, Array]]]:
    """The same, and its chain rule: gradients by x, by the gain and by the bias."""
    import numpy as np

    deviation = x - x.mean(-1, keepdims=True)
    scale = 1 / np.sqrt((deviation**2).mean(-1, keepdims=True) + EPSILON)
    found = deviation * scale

    def back(at: Array) -> tuple[Array, Array, Array]:
        at_found = at * gain
        along = found * (at_found * found).mean(-1, keepdims=True)
        others = tuple(range(x.ndim - 1))
        at_x = scale * (at_found - at_found.mean(-1, keepdims=True) - along)
        return at_x, (at * found).sum(others), at.sum(others)

    return np.asarray(found * gain + bias), back


def jax_block(x: Any, w: Mapping[str, Any], heads: int, valid: Any = None) -> Any:
    """In JAX; `valid` (length,) says which of x may be attended to, where not all."""
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
    """jax.nn.dot_product_attention of (batch, length, heads, features), where it has the policy's precision.

    It takes its softmax in float32 whatever it is given, and has no float16 on a CPU: there attention is written out.
    """
    import jax
    import jax.numpy as jnp

    if q.dtype in (jnp.float32, jnp.bfloat16):
        return jax.nn.dot_product_attention(q, k, v, mask=None if valid is None else valid[None, None, None, :])
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
    shares = jax.nn.softmax(scores if valid is None else jnp.where(valid, scores, -jnp.inf), -1)
    return jnp.einsum("bhqk,bkhd->bqhd", shares, v)


def jax_normalised(x: Any, gain: Any, bias: Any) -> Any:
    """Layer normalisation, written out: JAX has no kernel for it."""
    import jax

    deviation = x - x.mean(-1, keepdims=True)
    return deviation * jax.lax.rsqrt((deviation**2).mean(-1, keepdims=True) + EPSILON) * gain + bias


def torch_block(weights: Mapping[str, Any], heads: int) -> Any:
    """In PyTorch: a torch.nn.Module that takes x, of its layers, and with its kernel for attention."""
    return _torch_block()(weights, heads)


@cache
def _torch_block() -> Any:
    """Its class, made once: what is compiled for one class is compiled again for another."""
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
    """One block's weights by their names, from a model's parameters; `block` is the module's name."""
    layers = {"gain1": "first", "gain2": "second"} | {
        name: name for name in ("attend", "project", "expand", "contract")
    }
    found: dict[str, Any] = {}
    for name, layer in layers.items():
        weights, bias = (parameters[f"{block}.{layer}.{part}"] for part in ("weight", "bias"))
        found |= {name: weights.T if weights.ndim > 1 else weights, f"{name}_bias": bias}
    return found


def torch_linear(weights: Any, bias: Any = None) -> Any:
    """torch.nn.Linear of weights (in, out) and a bias (out,)."""
    import torch

    linear = torch.nn.Linear(*weights.shape, bias=bias is not None, device="meta")  # what it would draw is overwritten
    linear.weight = torch.nn.Parameter(weights.T.contiguous())
    if bias is not None:
        linear.bias = torch.nn.Parameter(bias)
    return linear


def torch_normalisation(gain: Any, bias: Any) -> Any:
    """torch.nn.LayerNorm over the last axis."""
    import torch

    layer = torch.nn.LayerNorm(len(gain), EPSILON, device="meta")
    layer.weight, layer.bias = torch.nn.Parameter(gain), torch.nn.Parameter(bias)
    return layer
