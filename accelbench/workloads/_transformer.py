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
"""Maps the gradient with respect to the output to the gradients with respect to the input and to each weight."""
EPSILON = 1e-6
"""Added to the variance in layer normalisation."""
HIDDEN_RATIO = 4
"""Width of the perceptron's hidden layer, in block widths."""


def draw_weights(layers: int, width: int, rng: "Generator") -> NamedArrays:
    """Draw weights (layers, in, out), and gains and biases (layers, out), of all blocks.

    `attend` has the weights of queries, keys and values side by side. Gains and their biases are those of the two layer
    normalisations.
    """
    hidden = HIDDEN_RATIO * width
    residual_scale = 1 / math.sqrt(2 * layers)  # so that x keeps its scale: each layer adds two products
    linear_layers = {  # in, out, and a factor of the weights' standard deviation
        "attend": (width, 3 * width, 1.0),
        "project": (width, width, residual_scale),
        "expand": (width, hidden, 1.0),
        "contract": (hidden, width, residual_scale),
    }
    weights = {}
    for name, (fan_in, fan_out, scale) in linear_layers.items():
        weights[name] = rng.standard_normal((layers, fan_in, fan_out)) * scale / math.sqrt(fan_in)
        weights[f"{name}_bias"] = 0.02 * rng.standard_normal((layers, fan_out))
    for name in ("gain1", "gain2"):
        weights[name] = 1 + 0.02 * rng.standard_normal((layers, width))
        weights[f"{name}_bias"] = 0.02 * rng.standard_normal((layers, width))
    return weights


def block_weights(weights: Mapping[str, Any], layer: int) -> dict[str, Any]:
    """Return the weights of one block from stacked arrays."""
    return {name: stacked[layer] for name, stacked in weights.items()}


def block_flops(batch: int, length: int, width: int) -> float:
    """Count the operations of a block's matrix products for x (batch, length, width)."""
    tokens = batch * length
    # Four matrices have width x width numbers: queries, keys, values, projection. The perceptron's two are each
    # `HIDDEN_RATIO` times as large.
    linear_layers = 2.0 * tokens * width**2 * (4 + 2 * HIDDEN_RATIO)
    scores_and_values = 4.0 * tokens * length * width  # queries @ keys, and attention @ values
    return linear_layers + scores_and_values


PRODUCTS = 6
"""Matrix products of a block: QKV, scores, values, projection, and two of the perceptron."""


def block(x: Array, w: NamedArrays, heads: int) -> Array:
    """Apply a transformer block in NumPy to x (batch, length, width), without a mask."""
    out, _backward = block_vjp(x, w, heads)
    return out


def block_vjp(x: Array, w: NamedArrays, heads: int, *, causal: bool = False) -> tuple[Array, Vjp]:
    """Apply a block in NumPy to x (batch, length, width); return the output, and a function for the gradients.

    `w` has the weights of one block, named as in `draw_weights`. If `causal`, a token attends only to itself and to
    earlier tokens. A name `d_x` stands for the gradient of the loss with respect to x.
    """
    import numpy as np
    from scipy.special import erf

    batch, length, width = x.shape
    score_divisor = math.sqrt(width // heads)  # root of the number of features of a head

    def split_heads(array: Array) -> Array:
        """Split (batch, length, width) into heads: (batch, heads, length, features of a head)."""
        return array.reshape(batch, length, heads, -1).swapaxes(1, 2)

    def join_heads(array: Array) -> Array:
        """Join the heads: the inverse of `split_heads`."""
        return array.swapaxes(1, 2).reshape(x.shape)

    normalised1, backward1 = normalise_vjp(x, w["gain1"], w["gain1_bias"])
    q, k, v = map(split_heads, np.split(normalised1 @ w["attend"] + w["attend_bias"], 3, -1))
    scores = q @ k.swapaxes(2, 3) / score_divisor
    if causal:
        scores = np.where(np.tri(length, dtype=bool), scores, -np.inf)
    attention = np.exp(scores - scores.max(-1, keepdims=True))
    attention /= attention.sum(-1, keepdims=True)
    attended = join_heads(attention @ v)
    middle = x + attended @ w["project"] + w["project_bias"]
    normalised2, backward2 = normalise_vjp(middle, w["gain2"], w["gain2_bias"])
    before_gelu = normalised2 @ w["expand"] + w["expand_bias"]
    cdf = (1 + erf(before_gelu / math.sqrt(2))) / 2  # of the standard normal distribution
    hidden = before_gelu * cdf  # GELU (Hendrycks and Gimpel 2016)
    out = middle + hidden @ w["contract"] + w["contract_bias"]

    def backward(d_out: Array) -> tuple[Array, dict[str, Array]]:
        """Return the gradients with respect to x and to each weight; `d_out` is that with respect to the output."""
        # The derivative of z * cdf(z) is cdf(z) + z * density(z).
        gelu_slope = cdf + before_gelu * np.exp(-(before_gelu**2) / 2) / math.sqrt(2 * math.pi)
        d_before_gelu = d_out @ w["contract"].T * gelu_slope
        d_through_perceptron, d_gain2, d_gain2_bias = backward2(d_before_gelu @ w["expand"].T)
        d_middle = d_out + d_through_perceptron
        d_heads = split_heads(d_middle @ w["project"].T)
        d_attention = d_heads @ v.swapaxes(2, 3)
        # The gradient through a = softmax(s) is a * (d_a - sum(d_a * a)).
        d_scores = attention * (d_attention - (d_attention * attention).sum(-1, keepdims=True)) / score_divisor
        d_q, d_k, d_v = d_scores @ k, d_scores.swapaxes(2, 3) @ q, attention.swapaxes(2, 3) @ d_heads
        d_qkv = np.concatenate([join_heads(d_q), join_heads(d_k), join_heads(d_v)], -1)
        d_through_attention, d_gain1, d_gain1_bias = backward1(d_qkv @ w["attend"].T)
        gradients = {"gain1": d_gain1, "gain1_bias": d_gain1_bias, "gain2": d_gain2, "gain2_bias": d_gain2_bias}
        inputs_and_output_gradients = {
            "attend": (normalised1, d_qkv),
            "project": (attended, d_middle),
            "expand": (normalised2, d_before_gelu),
            "contract": (hidden, d_out),
        }
        for name, (inputs, d_outputs) in inputs_and_output_gradients.items():
            gradients[name] = np.tensordot(inputs, d_outputs, ((0, 1), (0, 1)))
            gradients[f"{name}_bias"] = d_outputs.sum((0, 1))
        return d_middle + d_through_attention, gradients

    return out, backward


def normalise_vjp(x: Array, gain: Array, bias: Array) -> tuple[Array, Callable[[Array], tuple[Array, Array, Array]]]:
    """Apply layer normalisation over the last axis; return the output, and a function for the gradients.

    That function maps the gradient with respect to the output to those with respect to x, gain and bias.
    """
    import numpy as np

    deviation = x - x.mean(-1, keepdims=True)
    scale = 1 / np.sqrt((deviation**2).mean(-1, keepdims=True) + EPSILON)
    unit = deviation * scale  # mean 0, variance 1

    def backward(d_out: Array) -> tuple[Array, Array, Array]:
        """Return the gradients with respect to x, gain and bias, from the gradient with respect to the output."""
        d_unit = d_out * gain
        # Shifting or scaling a row leaves the output as it is, so the gradient's mean and its part along `unit` vanish.
        along_unit = unit * (d_unit * unit).mean(-1, keepdims=True)
        d_x = scale * (d_unit - d_unit.mean(-1, keepdims=True) - along_unit)
        axes_but_last = tuple(range(x.ndim - 1))
        return d_x, (d_out * unit).sum(axes_but_last), d_out.sum(axes_but_last)

    return np.asarray(unit * gain + bias), backward


def jax_block(x: Any, w: Mapping[str, Any], heads: int, valid: Any = None) -> Any:
    """Apply a block in JAX to x (batch, length, width), with the weights of one block, named as in `draw_weights`.

    `valid` (length,) is False for padding; None means no padding.
    """
    import jax
    import jax.numpy as jnp

    batch, length, _ = x.shape
    qkv = jax_normalise(x, w["gain1"], w["gain1_bias"]) @ w["attend"] + w["attend_bias"]
    q, k, v = (array.reshape(batch, length, heads, -1) for array in jnp.split(qkv, 3, -1))
    attended = jax_attention(q, k, v, valid).reshape(x.shape)
    x = x + attended @ w["project"] + w["project_bias"]
    hidden = jax_normalise(x, w["gain2"], w["gain2_bias"]) @ w["expand"] + w["expand_bias"]
    return x + jax.nn.gelu(hidden, approximate=False) @ w["contract"] + w["contract_bias"]


def jax_attention(q: Any, k: Any, v: Any, valid: Any = None) -> Any:
    """Apply attention in JAX to q, k and v (batch, length, heads, features).

    `valid` (length,) is False for padding; None means no padding.
    """
    import jax
    import jax.numpy as jnp

    if q.dtype in (jnp.float32, jnp.bfloat16):
        mask = None if valid is None else valid[None, None, None, :]
        return jax.nn.dot_product_attention(q, k, v, mask=mask)
    # JAX's function computes the softmax of float64 in float32, and has no float16 on a CPU.
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
    if valid is not None:
        scores = jnp.where(valid, scores, -jnp.inf)
    attention = jax.nn.softmax(scores, -1)
    return jnp.einsum("bhqk,bkhd->bqhd", attention, v)


def jax_normalise(x: Any, gain: Any, bias: Any) -> Any:
    """Apply layer normalisation over the last axis in plain operations.

    JAX has no layer normalisation with a gain and a bias; jax.nn.standardize is the part without them.
    """
    import jax

    deviation = x - x.mean(-1, keepdims=True)
    return deviation * jax.lax.rsqrt((deviation**2).mean(-1, keepdims=True) + EPSILON) * gain + bias


def torch_block(weights: Mapping[str, Any], heads: int) -> Any:
    """Return a torch.nn.Module that applies a block with these weights, named as in `draw_weights`."""
    return _torch_block_class()(weights, heads)


@cache
def _torch_block_class() -> Any:
    """Return the class of transformer blocks, created once, as torch.compile would compile a second class again."""
    import torch
    from torch.nn import functional

    class Block(torch.nn.Module):  # type: ignore[misc]
        def __init__(self, w: Mapping[str, Any], heads: int) -> None:
            """Create the layers from the weights of one block, named as in `draw_weights`."""
            super().__init__()
            self.heads = heads
            self.gain1 = torch_normalisation(w["gain1"], w["gain1_bias"])
            self.attend = torch_linear(w["attend"], w["attend_bias"])
            self.project = torch_linear(w["project"], w["project_bias"])
            self.gain2 = torch_normalisation(w["gain2"], w["gain2_bias"])
            self.expand = torch_linear(w["expand"], w["expand_bias"])
            self.contract = torch_linear(w["contract"], w["contract_bias"])

        def forward(self, x: Any) -> Any:
            """Apply the block to x (batch, length, width)."""
            batch, length, _ = x.shape
            qkv = self.attend(self.gain1(x)).chunk(3, -1)
            q, k, v = (tensor.view(batch, length, self.heads, -1).transpose(1, 2) for tensor in qkv)
            attended = functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape)
            x = x + self.project(attended)
            return x + self.contract(functional.gelu(self.expand(self.gain2(x))))

    return Block


def torch_block_weights(parameters: Mapping[str, Any], block: str) -> dict[str, Any]:
    """Return the weights and biases of one block, named as in `draw_weights`, from the parameters of a PyTorch model.

    `block` is the block's name in the model, such as `blocks.0`.
    """
    by_name: dict[str, Any] = {}
    for name in ("gain1", "gain2", "attend", "project", "expand", "contract"):
        weights = parameters[f"{block}.{name}.weight"]
        by_name[name] = weights.T if weights.ndim > 1 else weights  # a torch linear layer has them as (out, in)
        by_name[f"{name}_bias"] = parameters[f"{block}.{name}.bias"]
    return by_name


def torch_linear(weights: Any, bias: Any = None) -> Any:
    """Return torch.nn.Linear with these weights (in, out) and this bias (out,)."""
    import torch

    # The device `meta` draws no random weights: they would be overwritten.
    linear = torch.nn.Linear(*weights.shape, bias=bias is not None, device="meta")
    linear.weight = torch.nn.Parameter(weights.T.contiguous())
    if bias is not None:
        linear.bias = torch.nn.Parameter(bias)
    return linear


def torch_normalisation(gain: Any, bias: Any) -> Any:
    """Return torch.nn.LayerNorm over the last axis, with this gain (width,) and bias (width,)."""
    import torch

    layer = torch.nn.LayerNorm(len(gain), EPSILON, device="meta")
    layer.weight, layer.bias = torch.nn.Parameter(gain), torch.nn.Parameter(bias)
    return layer
