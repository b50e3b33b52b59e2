"""Answer one request: classify an image, or decode the next token with a cache of keys and values."""

import math
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, model_validator

from accelbench.workload import (
    Array,
    Arrays,
    Cost,
    Measure,
    NamedArrays,
    Operations,
    Program,
    Tools,
    Workload,
    WorkloadParameters,
)

if TYPE_CHECKING:
    from numpy.random import Generator

COLOURS, TAPS = 3, 3
HIDDEN_RATIO = 4
"""Hidden units of a decoder's perceptron, as a multiple of the width."""
EPSILON = 1e-5
"""Added to the variance in a layer normalisation, as in torch.nn.functional.layer_norm."""
BLOCK = ("query", "key", "value", "project", "expand", "contract")
"""Weights of a decoder's blocks, stacked along a first dimension of layers."""


class InferenceLatency(Workload):
    """Answer requests one by one with a small network: `model: cnn` classifies an image, `decoder` decodes a token.

    Row 81 of the claims: the latency of inference at batch 1. `cnn` is conv (3 x 3), relu, max-pool (2 x 2), twice, and
    a linear layer. `decoder` has blocks of causal attention and a perceptron with relu, each after a layer
    normalisation, without biases or positions. Its keys and values are in a buffer of fixed size, full from the start:
    a request writes those of its token over the oldest ones and attends to all, so every request costs the same. With
    `protocol: arrivals`, a run shows how long users wait when requests arrive at a given rate.
    """

    name = "inference-latency"
    modes = {"jax": ("jit",), "pytorch": ("eager", "compile"), "pytorch_channels_last": ("eager", "compile")}

    class Parameters(WorkloadParameters):
        """Choose the network and its size."""

        model: Literal["cnn", "decoder"] = Field(
            default="cnn", description="cnn: one image is classified. decoder: one token is decoded."
        )
        size: int = Field(default=32, ge=4, le=512, multiple_of=4, description="cnn: rows and columns of the image.")
        channels: int = Field(
            default=32, ge=1, le=4096, description="cnn: of the first convolution; the second has twice as many."
        )
        classes: int = Field(default=10, ge=2, le=100_000, description="cnn: classes.")
        layers: int = Field(default=4, ge=1, le=200, description="decoder: blocks.")
        width: int = Field(default=256, ge=1, le=32_768, description="decoder: features of a token.")
        heads: int = Field(default=4, ge=1, le=256, description="decoder: attention heads, which divide the width.")
        vocabulary: int = Field(default=1024, ge=2, le=1_000_000, description="decoder: words in the vocabulary.")
        context: int = Field(default=128, ge=1, le=131_072, description="decoder: tokens that the cache holds.")

        @model_validator(mode="after")
        def _heads_divide_the_width(self) -> Self:
            if self.width % self.heads:
                raise ValueError("width must be a multiple of heads, which divide it evenly")
            return self

    def measure(self, parameters: Parameters) -> Measure:
        """Time each request by itself; compare after three, when a decoder has read keys and values that it wrote."""
        del parameters
        return Measure(protocol="latency", unit="request", parity_units=3)

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Draw an image or tokens, the weights, and for a decoder the keys and values of earlier tokens.

        The image is (1, size, size, 3). A decoder's cache is (layers, context, width), and full from the start: `place`
        is the row that the next token overwrites, at first 0. `tokens` (context,) has the token for each place.
        """
        p = parameters
        if p.model == "cnn":
            shapes = {
                "kernel1": (TAPS, TAPS, COLOURS, p.channels),
                "kernel2": (TAPS, TAPS, p.channels, 2 * p.channels),
                "linear": (_features(p), p.classes),
            }
            network = {name: _draw(rng, shape, math.prod(shape[:-1])) for name, shape in shapes.items()}
            return Arrays(state={}, batches=({"image": rng.standard_normal((1, p.size, p.size, COLOURS)), **network},))
        # (in, out) of each weight of a block.
        widths = dict.fromkeys(BLOCK, (p.width, p.width))
        widths |= {"expand": (p.width, HIDDEN_RATIO * p.width), "contract": (HIDDEN_RATIO * p.width, p.width)}
        weights = {name: _draw(rng, (p.layers, *widths[name]), widths[name][0]) for name in BLOCK}
        weights |= {"embed": rng.standard_normal((p.vocabulary, p.width))}
        weights |= {"head": _draw(rng, (p.width, p.vocabulary), p.width)}
        cache = {name: rng.standard_normal((p.layers, p.context, p.width)) for name in ("keys", "values")}
        tokens = rng.integers(p.vocabulary, size=p.context)
        return Arrays(state={**cache, "place": _first_place()}, batches=({"tokens": tokens, **weights},))

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """Answer `units` requests in NumPy; return the last logits, and a decoder's cache."""
        batch = arrays.batches[0]
        if parameters.model == "cnn":
            return {"logits": _classify(batch)}
        state = {name: array.copy() for name, array in arrays.state.items()}
        logits = _decode(state, batch, parameters.heads)
        for _ in range(units - 1):
            logits = _decode(state, batch, parameters.heads)
        return {"logits": logits, "keys": state["keys"], "values": state["values"]}

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Count the operations of convolutions and products; weights and the cache are read.

        A kernel's products with the padding around the image do not count.
        """
        p = parameters
        if p.model == "cnn":
            # In each dimension, a pixel has three taps inside the image, but the first and the last pixel have two.
            first_taps, second_taps = (TAPS * p.size - 2) ** 2, (TAPS * p.size // 2 - 2) ** 2
            first = 2.0 * first_taps * COLOURS * p.channels
            second = 2.0 * second_taps * p.channels * 2 * p.channels
            linear = _features(p) * p.classes
            weights = TAPS**2 * (COLOURS * p.channels + 2 * p.channels**2) + linear
            return Cost(flops=first + second + 2.0 * linear, bytes=float(weights + p.size**2 * COLOURS) * float_bytes)
        weights = p.layers * 12 * p.width**2 + p.width * p.vocabulary
        cache = 2 * p.layers * p.context * p.width  # keys and values; each number has a product and a sum
        return Cost(flops=2.0 * (weights + cache), bytes=float(weights + cache) * float_bytes)

    def operations(self, parameters: Parameters) -> Operations | None:
        """Count the convolutions; products of one row are no matrix products, as compilers may turn them into sums."""
        return Operations(convolutions=2) if parameters.model == "cnn" else None

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use jax.lax and jax.nn; each block has its own arrays, and the cache is donated and so written in place."""
        if parameters.model == "cnn":
            batches = tools.put(arrays.batches)
            return Program(state={}, step=_jax_classify, batches=batches, export=_export_logits)
        return Program(
            state=tools.put(_split_cache(arrays.state, parameters)),
            step=_jax_decode,
            batches=(tools.put(_split_weights(arrays.batches[0])),),
            donate=True,
            export=_export_split_cache,
        )

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use torch.nn; the cache is buffers of modules, which are written in place."""
        from accelbench.workloads import _inference_latency_torch as in_torch

        if parameters.model == "cnn":
            return in_torch.classifying(parameters, arrays, tools, channels_last=False)
        return in_torch.decoding(parameters, arrays, tools)

    def pytorch_channels_last(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Keep image and kernels in torch.channels_last, the layout of a GPU's fastest convolutions.

        Raises ValueError for `model: decoder`, which has no images.
        """
        from accelbench.workloads import _inference_latency_torch as in_torch

        if parameters.model == "decoder":
            raise ValueError(
                "a decoder has no images to keep in channels_last: leave this variant out, or set model: cnn"
            )
        return in_torch.classifying(parameters, arrays, tools, channels_last=True)


def _features(p: InferenceLatency.Parameters) -> int:
    """Return the number of inputs of the linear layer: the second convolution's outputs after both poolings."""
    return (p.size // 4) ** 2 * 2 * p.channels


def _draw(rng: "Generator", shape: tuple[int, ...], inputs: int) -> Array:
    """Draw weights such that an output, a sum over `inputs` numbers, has about the scale of one of them."""
    return rng.standard_normal(shape) / math.sqrt(inputs)


def _first_place() -> Array:
    """Return the first row of the cache, as an array of one integer."""
    import numpy as np

    return np.zeros(1, np.int64)


def _export_logits(_state: Any, logits: Any) -> dict[str, Any]:
    """Return the logits by name, to compare them with the reference."""
    return {"logits": logits}


# -- NumPy ------------------------------------------------------------------------------------------------------------


def _classify(batch: NamedArrays) -> Array:
    """Return the logits of the image, (1, classes)."""
    import numpy as np

    x = batch["image"]
    for kernel in (batch["kernel1"], batch["kernel2"]):
        padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (TAPS, TAPS), axis=(1, 2))
        x = np.einsum("nhwcij,ijco->nhwo", windows, kernel).clip(min=0)
        rows, columns = x.shape[1] // 2, x.shape[2] // 2
        x = x.reshape(1, rows, 2, columns, 2, -1).max((2, 4))
    logits: Array = x.reshape(1, -1) @ batch["linear"]
    return logits


def _decode(state: dict[str, Array], batch: NamedArrays, heads: int) -> Array:
    """Decode the token at the current place, and return logits (vocabulary,).

    `state` is changed in place: it gets the token's keys and values, and the next place.
    """
    import numpy as np

    def normalise(x: Array) -> Array:
        """Return x with mean 0 and variance 1."""
        result: Array = (x - x.mean()) / np.sqrt(x.var() + EPSILON)
        return result

    place = int(state["place"][0])
    x = batch["embed"][batch["tokens"][place]]
    for layer in range(len(batch["query"])):
        w = {name: batch[name][layer] for name in BLOCK}
        n = normalise(x)
        state["keys"][layer, place], state["values"][layer, place] = n @ w["key"], n @ w["value"]
        query, keys, values = (
            array.reshape(-1, heads, len(x) // heads)
            for array in (n @ w["query"], state["keys"][layer], state["values"][layer])
        )
        # q is the one query, k the tokens of the cache, h the heads and d the features of a head.
        scores = np.einsum("qhd,khd->hk", query, keys) / math.sqrt(query.shape[-1])
        # `shares` is the softmax of the scores.
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        x = x + np.einsum("hk,khd->hd", shares, values).reshape(-1) @ w["project"]
        x = x + (normalise(x) @ w["expand"]).clip(min=0) @ w["contract"]
    state["place"] = (state["place"] + 1) % len(batch["tokens"])
    logits: Array = normalise(x) @ batch["head"]
    return logits


# -- JAX --------------------------------------------------------------------------------------------------------------


def _jax_classify(state: Any, batch: Any) -> tuple[Any, Any]:
    """Return the state and the logits of the image."""
    import jax
    from jax import lax

    x = batch["image"]
    for kernel in (batch["kernel1"], batch["kernel2"]):
        x = lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = lax.reduce_window(jax.nn.relu(x), -math.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return state, x.reshape(1, -1) @ batch["linear"]


def _split_cache(state: NamedArrays, p: InferenceLatency.Parameters) -> dict[str, Any]:
    """Return the state with a list of the keys and of the values of each block, (heads, context, features of a head).

    XLA for CPUs copies each block's part of a stacked array, and transposes a cache whose first axis is not the heads.
    """
    by_head = {
        name: state[name].reshape(p.layers, p.context, p.heads, -1).swapaxes(1, 2) for name in ("keys", "values")
    }
    return {"place": state["place"], **{name: list(blocks) for name, blocks in by_head.items()}}


def _split_weights(batch: NamedArrays) -> dict[str, Any]:
    """Return tokens and weights outside the blocks by name and, as `blocks`, a list of the weights of each block."""
    outside = {name: array for name, array in batch.items() if name not in BLOCK}
    return {**outside, "blocks": [{name: batch[name][layer] for name in BLOCK} for layer in range(len(batch["query"]))]}


def _export_split_cache(state: Any, logits: Any) -> dict[str, Any]:
    """Return the logits and the cache by name, as (layers, context, width), to compare them with the reference."""
    import jax.numpy as jnp

    cache = {name: jnp.stack(state[name]).swapaxes(1, 2) for name in ("keys", "values")}
    return {"logits": logits, **{name: blocks.reshape(*blocks.shape[:2], -1) for name, blocks in cache.items()}}


def _jax_decode(state: Any, batch: Any) -> tuple[Any, Any]:
    """Decode a token; return the state with its keys and values, and the logits."""
    import jax
    import jax.numpy as jnp

    def normalise(x: Any) -> Any:
        """Return x with mean 0 and variance 1."""
        return jax.nn.standardize(x, epsilon=EPSILON)

    place = state["place"][0]
    heads, context, features = state["keys"][0].shape
    x = batch["embed"][batch["tokens"][place]]
    all_keys, all_values = [], []
    for w, old_keys, old_values in zip(batch["blocks"], state["keys"], state["values"], strict=True):
        n = normalise(x)
        query, key, value = ((n @ w[name]).reshape(heads, features) for name in ("query", "key", "value"))
        keys, values = old_keys.at[:, place].set(key), old_values.at[:, place].set(value)
        # k are the tokens of the cache, h the heads and d the features of a head.
        scores = jnp.einsum("hd,hkd->hk", query, keys) / math.sqrt(features)
        attended = jnp.einsum("hk,hkd->hd", jax.nn.softmax(scores), values)
        x = x + attended.reshape(-1) @ w["project"]
        x = x + jax.nn.relu(normalise(x) @ w["expand"]) @ w["contract"]
        all_keys.append(keys)
        all_values.append(values)
    place = jnp.mod(state["place"] + 1, context)
    return {"keys": all_keys, "values": all_values, "place": place}, normalise(x) @ batch["head"]
