"""Answer requests with torch.nn: a small convolutional network, and a decoder with a cache of keys and values.

Weights are parameters of modules, and the cache is buffers: CUDA graphs read and write these where they are. Tensors of
no module would be copied before each replay, and one that a replay changes would prevent a graph altogether.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from accelbench.workload import Arrays, Program, Tools
from accelbench.workloads import _transformer as transformer
from accelbench.workloads.inference_latency import BLOCK, EPSILON, TAPS, InferenceLatency


class Classifier(nn.Module):  # type: ignore[misc]  # torch has no types here
    """Map images (batch, 3, rows, columns) to logits (batch, classes)."""

    def __init__(self, kernels: list[Any], linear: Any) -> None:
        """Create the layers from kernels (3, 3, in, out) and the weights (in, out) of the linear layer."""
        super().__init__()
        self.convolutions = nn.ModuleList(map(_convolution, kernels))
        self.linear = transformer.torch_linear(linear)

    def forward(self, images: Any) -> Any:
        """Return the logits of the images."""
        x = images
        for convolution in self.convolutions:
            x = functional.max_pool2d(functional.relu(convolution(x)), 2)
        return self.linear(x.flatten(1))


class Cache(nn.Module):  # type: ignore[misc]
    """Hold the keys and values of a block, (1, heads, context, features of a head)."""

    def __init__(self, keys: Any, values: Any, heads: int) -> None:
        """Create the buffers from keys and values (context, width)."""
        super().__init__()
        for name, rows in (("keys", keys), ("values", values)):
            self.register_buffer(name, rows.view(1, len(rows), heads, -1).transpose(1, 2).contiguous())

    def write(self, key: Any, value: Any, place: Any) -> None:
        """Write a token's key and value (1, heads, 1, features of a head) at a place."""
        self.keys.index_copy_(2, place, key)
        self.values.index_copy_(2, place, value)

    def rows(self, name: str) -> Any:
        """Return the keys or the values as (context, width)."""
        return getattr(self, name)[0].transpose(0, 1).flatten(1)


class Block(nn.Module):  # type: ignore[misc]
    """Apply attention to a cache, then a perceptron, each after layer normalisation and added to its input."""

    def __init__(self, w: Mapping[str, Any], heads: int) -> None:
        """Create the layers from the weights of one block; one product makes query, key and value."""
        super().__init__()
        self.heads = heads
        self.attend = transformer.torch_linear(torch.cat([w["query"], w["key"], w["value"]], 1))
        self.project, self.expand, self.contract = (
            transformer.torch_linear(w[name]) for name in ("project", "expand", "contract")
        )

    def forward(self, x: Any, cache: Any, place: Any) -> Any:
        """Apply the block to one token x (1, width), and write its key and value at `place`."""
        query, key, value = (part.view(1, self.heads, 1, -1) for part in self.attend(_normalise(x)).chunk(3, -1))
        cache.write(key, value, place)
        attended = functional.scaled_dot_product_attention(query, cache.keys, cache.values)
        x = x + self.project(attended.reshape(x.shape))
        return x + self.contract(functional.relu(self.expand(_normalise(x))))


class Decoder(nn.Module):  # type: ignore[misc]
    """Map the token at a place to the logits of the next one, (vocabulary,)."""

    def __init__(self, w: Mapping[str, Any], layers: int, heads: int) -> None:
        """Create the layers from all weights, stacked for the blocks, and the tokens (context,)."""
        super().__init__()
        self.register_buffer("tokens", w["tokens"])
        self.embed = nn.Embedding.from_pretrained(w["embed"])
        self.blocks = nn.ModuleList(Block({name: w[name][layer] for name in BLOCK}, heads) for layer in range(layers))
        self.head = transformer.torch_linear(w["head"])

    def forward(self, caches: Any, place: Any) -> Any:
        """Return the logits; `place` (1,) is where the blocks write into their caches."""
        x = self.embed(self.tokens[place])
        for block, cache in zip(self.blocks, caches, strict=True):
            x = block(x, cache, place)
        return self.head(_normalise(x))[0]


def classifying(p: InferenceLatency.Parameters, arrays: Arrays, tools: Tools, *, channels_last: bool) -> Program:
    """Return a program that classifies an image; with `channels_last`, image and kernels have that memory format."""
    batch, side = tools.put(arrays.batches[0]), p.size // 4
    # PyTorch flattens an image channel by channel, the reference pixel by pixel.
    linear = batch["linear"].view(side, side, 2 * p.channels, p.classes).permute(2, 0, 1, 3).reshape(-1, p.classes)
    memory_format = torch.channels_last if channels_last else torch.contiguous_format
    model = Classifier([batch["kernel1"], batch["kernel2"]], linear).to(memory_format=memory_format)
    image = batch["image"].permute(0, 3, 1, 2).contiguous(memory_format=memory_format)

    def step(state: Any, request: Any) -> tuple[Any, Any]:
        """Return the state, which is empty, and the logits of the image."""
        model, image = request
        return state, model(image)

    return Program(state={}, step=step, batches=((model, image),), export=lambda _state, logits: {"logits": logits})


def decoding(p: InferenceLatency.Parameters, arrays: Arrays, tools: Tools) -> Program:
    """Return a program that decodes a token; its state has the caches and the next place."""
    state = tools.put(arrays.state)
    caches = nn.ModuleList(Cache(*rows, p.heads) for rows in zip(state["keys"], state["values"], strict=True))

    def step(state: Any, model: Any) -> tuple[Any, Any]:
        """Decode the token at the current place, write into the caches, and return the next state and the logits."""
        logits = model(state["caches"], state["place"])
        return {"caches": state["caches"], "place": (state["place"] + 1) % p.context}, logits

    def export(state: Any, logits: Any) -> dict[str, Any]:
        """Return the logits and the cache by the names that `reference` uses."""
        stacked = {name: torch.stack([cache.rows(name) for cache in state["caches"]]) for name in ("keys", "values")}
        return {**stacked, "logits": logits}

    return Program(
        state={"caches": caches, "place": state["place"]},
        step=step,
        batches=(Decoder(tools.put(arrays.batches[0]), p.layers, p.heads),),
        export=export,
    )


def _convolution(kernel: Any) -> Any:
    """Return torch.nn.Conv2d with this kernel (3, 3, in, out); PyTorch has kernels as (out, in, 3, 3)."""
    # The device `meta` draws no random weights: they would be overwritten.
    layer = nn.Conv2d(*kernel.shape[2:], TAPS, padding=1, bias=False, device="meta")
    layer.weight = nn.Parameter(kernel.permute(3, 2, 0, 1).contiguous())
    return layer


def _normalise(x: Any) -> Any:
    """Return x with mean 0 and variance 1 over the last axis."""
    return functional.layer_norm(x, x.shape[-1:], eps=EPSILON)
