"""Implement a decoder in NumPy: weights, loss with the chain rule by hand, and AdamW as printed.

Blocks are those of `_transformer`, causal and without biases. tokens and targets are (batch, sequence).
"""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from accelbench.workload import Array, NamedArrays
from accelbench.workloads import _training as training
from accelbench.workloads import _transformer as transformer

if TYPE_CHECKING:
    from numpy.random import Generator

BETA1, BETA2, EPSILON, DECAY = 0.9, 0.95, 1e-5, 0.1
"""AdamW's constants of Llama 2 (Touvron and others 2023, section 2.2); an epsilon of 1e-8 would be zero in float16."""
OUTSIDE = ("embed", "positions", "gain", "head")
"""Weights outside the blocks."""
QUERIES_KEYS_VALUES = ("query", "key", "value")
IN_BLOCKS = (*QUERIES_KEYS_VALUES, "project", "expand", "contract", "gain1", "gain2")
"""Weights of all blocks, stacked along a first dimension of layers."""
MESH_AXES: Mapping[str, tuple[str | None, ...]] = {
    "embed": ("tensor", "fsdp"),
    "positions": ("tensor", "fsdp"),
    "gain": ("fsdp",),
    "head": ("fsdp", "tensor"),
    "query": ("fsdp", "tensor"),
    "key": ("fsdp", "tensor"),
    "value": ("fsdp", "tensor"),
    "project": ("tensor", "fsdp"),
    "expand": ("fsdp", "tensor"),
    "contract": ("tensor", "fsdp"),
    "gain1": ("fsdp",),
    "gain2": ("fsdp",),
}
"""Mesh axes by which one layer's weights are divided, one name for each dimension. tensor divides heads, hidden units
and words (Shoeybi and others 2019); fsdp divides another dimension, whose parts are gathered when the weight is
used (Rajbhandari and others 2020; Zhao and others 2023)."""


class Sizes(Protocol):
    """Describe the network's sizes; the workload's parameters have them."""

    @property
    def layers(self) -> int:
        """Return the number of blocks."""
        ...

    @property
    def width(self) -> int:
        """Return the number of features of a token."""
        ...

    @property
    def heads(self) -> int:
        """Return the number of attention heads."""
        ...

    @property
    def vocabulary(self) -> int:
        """Return the number of words in the vocabulary."""
        ...

    @property
    def sequence(self) -> int:
        """Return the number of tokens in an example."""
        ...

    @property
    def tied(self) -> bool:
        """Return True if input and output embedding share their weights."""
        ...


def shapes(sizes: Sizes) -> dict[str, tuple[int, ...]]:
    """Return the shape of every weight of the decoder, by name; weights of all blocks are stacked."""
    width, hidden = sizes.width, transformer.HIDDEN_RATIO * sizes.width
    block_shapes = {
        **dict.fromkeys(QUERIES_KEYS_VALUES, (width, width)),
        "project": (width, width),
        "expand": (width, hidden),
        "contract": (hidden, width),
        "gain1": (width,),
        "gain2": (width,),
    }
    weight_shapes: dict[str, tuple[int, ...]] = {
        "embed": (sizes.vocabulary, width),
        "positions": (sizes.sequence, width),
        "gain": (width,),
    }
    if not sizes.tied:
        weight_shapes["head"] = (width, sizes.vocabulary)
    for name, shape in block_shapes.items():
        weight_shapes[name] = (sizes.layers, *shape)
    return weight_shapes


def count_weights(sizes: Sizes) -> int:
    """Return how many trained numbers the decoder has: the elements of all arrays in `shapes`."""
    width = sizes.width
    blocks = sizes.layers * (12 * width**2 + 2 * width)  # 4 width^2 of attention, 8 width^2 of the perceptron, 2 gains
    embedding_and_head = sizes.vocabulary * width * (1 if sizes.tied else 2)
    positions = sizes.sequence * width
    last_gain = width
    return blocks + embedding_and_head + positions + last_gain


def reject_float16(type_name: str) -> None:
    """Raise ValueError if the type is float16; `type_name` is as NumPy or PyTorch writes it."""
    if type_name.endswith("float16") and not type_name.endswith("bfloat16"):
        raise ValueError("the squares of gradients are zero in float16: train in bfloat16 or in float32")


def draw_weights(sizes: Sizes, rng: "Generator") -> NamedArrays:
    """Draw normally distributed weights, named as in `shapes`; gains are near 1, all other weights near 0."""
    residual_scale = 1 / math.sqrt(2 * sizes.layers)  # so that x keeps its scale: each layer adds two products
    deviations = {  # standard deviations of all weights but embeddings and gains
        **dict.fromkeys(QUERIES_KEYS_VALUES, 1 / math.sqrt(sizes.width)),
        "project": residual_scale / math.sqrt(sizes.width),
        "expand": 1 / math.sqrt(sizes.width),
        "contract": residual_scale / math.sqrt(transformer.HIDDEN_RATIO * sizes.width),
        "head": 1 / math.sqrt(sizes.width),
    }
    weights = {}
    for name, shape in shapes(sizes).items():
        mean = 1 if "gain" in name else 0
        weights[name] = mean + deviations.get(name, 0.02) * rng.standard_normal(shape)  # 0.02: embeddings and gains
    return weights


def loss_and_gradients(w: NamedArrays, tokens: Array, targets: Array, sizes: Sizes) -> tuple[Array, dict[str, Array]]:
    """Return the mean cross-entropy, and its gradient with respect to each weight, in NumPy.

    `w` has the weights, named as in `shapes`. `targets` are the tokens that follow `tokens`; both are (batch,
    sequence). A name `d_x` stands for the gradient of the loss with respect to x.
    """
    import numpy as np

    x = w["embed"][tokens] + w["positions"]
    backward_functions = []
    for layer in range(sizes.layers):
        x, backward = transformer.block_vjp(x, _block_weights(w, layer), sizes.heads, causal=True)
        backward_functions.append(backward)
    normalised, normalise_backward = transformer.normalise_vjp(x, w["gain"], np.zeros(sizes.width))
    head = w["embed"].T if sizes.tied else w["head"]
    logits = (normalised @ head).reshape(-1, sizes.vocabulary)
    loss, d_flat_logits = training.cross_entropy_and_gradient(logits, targets.reshape(-1))
    d_logits = d_flat_logits.reshape(*tokens.shape, -1)
    d_head = np.tensordot(normalised, d_logits, ((0, 1), (0, 1)))
    d_x, d_gain, _d_bias = normalise_backward(d_logits @ head.T)
    block_gradients: list[dict[str, Array]] = []  # from the first block to the last
    for backward in reversed(backward_functions):
        d_x, gradients = backward(d_x)
        # The block has the matrices of queries, keys and values side by side, as `attend`.
        gradients["query"], gradients["key"], gradients["value"] = np.split(gradients["attend"], 3, -1)
        block_gradients.insert(0, gradients)
    weight_gradients = {"positions": d_x.sum(0), "gain": d_gain}
    if sizes.tied:
        d_embed = d_head.T.copy()  # the embedding is used twice, so its gradients add up
    else:
        d_embed = np.zeros_like(w["embed"])
        weight_gradients["head"] = d_head
    np.add.at(d_embed, tokens, d_x)
    weight_gradients["embed"] = d_embed
    for name in IN_BLOCKS:
        weight_gradients[name] = np.stack([gradients[name] for gradients in block_gradients])
    return loss, weight_gradients


def _block_weights(w: NamedArrays, layer: int) -> dict[str, Array]:
    """Return the weights of one layer by the names that `_transformer` uses, with biases of zero.

    In `_transformer`, the matrices of queries, keys and values are a single array, `attend`.
    """
    import numpy as np

    weights = transformer.block_weights({name: w[name] for name in IN_BLOCKS}, layer)
    weights["attend"] = np.concatenate([weights.pop(name) for name in QUERIES_KEYS_VALUES], -1)
    biases = {f"{name}_bias": np.zeros(array.shape[-1]) for name, array in weights.items()}
    return weights | biases


def train(
    initial_weights: NamedArrays, batch: NamedArrays, sizes: Sizes, learning_rate: float, steps: int
) -> tuple[dict[str, Array], Array]:
    """Train in NumPy by AdamW on the same batch for `steps` steps; return the weights and the last loss."""
    import numpy as np

    w, loss = dict(initial_weights), np.zeros(())
    m = {name: np.zeros_like(array) for name, array in w.items()}  # first moments
    v = dict(m)  # second moments
    for t in range(1, steps + 1):  # Loshchilov and Hutter 2019, algorithm 2
        loss, gradients = loss_and_gradients(w, batch["tokens"], batch["targets"], sizes)
        for name, gradient in gradients.items():
            m[name] = BETA1 * m[name] + (1 - BETA1) * gradient
            v[name] = BETA2 * v[name] + (1 - BETA2) * gradient**2
            adam = (m[name] / (1 - BETA1**t)) / (np.sqrt(v[name] / (1 - BETA2**t)) + EPSILON)
            w[name] = w[name] - learning_rate * (adam + DECAY * w[name])
    return w, loss
