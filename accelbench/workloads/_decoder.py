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
DIVIDED: Mapping[str, tuple[str | None, ...]] = {
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
and words (Shoeybi and others 2019); fsdp divides what is left of a weight, which is gathered where it is used
(Rajbhandari and others 2020; Zhao and others 2023)."""


class Sizes(Protocol):
    """Describe the network's sizes; the workload's parameters have them."""

    @property
    def layers(self) -> int:
        """Return the number of blocks."""
        ...

    @property
    def width(self) -> int:
        """Return the features of each token."""
        ...

    @property
    def heads(self) -> int:
        """Return the number of attention heads."""
        ...

    @property
    def vocabulary(self) -> int:
        """Return the number of words."""
        ...

    @property
    def sequence(self) -> int:
        """Return the tokens of an example."""
        ...

    @property
    def tied(self) -> bool:
        """Return True if input and output embedding share their weights."""
        ...


def shapes(sizes: Sizes) -> dict[str, tuple[int, ...]]:
    """Return the shape of every weight: (in, out), (words, width) or (width,); the blocks' begin with layers."""
    width, hidden = sizes.width, transformer.WIDER * sizes.width
    block = {
        **dict.fromkeys(QUERIES_KEYS_VALUES, (width, width)),
        "project": (width, width),
        "expand": (width, hidden),
        "contract": (hidden, width),
        "gain1": (width,),
        "gain2": (width,),
    }
    return {
        "embed": (sizes.vocabulary, width),
        "positions": (sizes.sequence, width),
        "gain": (width,),
        **({} if sizes.tied else {"head": (width, sizes.vocabulary)}),
        **{name: (sizes.layers, *shape) for name, shape in block.items()},
    }


def numbers(sizes: Sizes) -> int:
    """Count the weights: 12 width^2 + 2 width a layer, width a word (twice unless tied) and a position, and width."""
    words = sizes.vocabulary * (1 if sizes.tied else 2)
    return sizes.layers * (12 * sizes.width**2 + 2 * sizes.width) + sizes.width * (words + sizes.sequence + 1)


def check_type(name: str) -> None:
    """Raise ValueError for a type that cannot hold AdamW's second moments."""
    if name.endswith("float16") and not name.endswith("bfloat16"):
        raise ValueError("the squares of gradients are zero in float16: train in bfloat16 or in float32")


def draw(sizes: Sizes, rng: "Generator") -> NamedArrays:
    """Draw weights of variance 1/in, or 1/(2 layers in) for residual branches, so x keeps its scale; gains around 1."""
    small = 1 / math.sqrt(2 * sizes.layers)
    scales = {
        **dict.fromkeys(QUERIES_KEYS_VALUES, 1 / math.sqrt(sizes.width)),
        "project": small / math.sqrt(sizes.width),
        "expand": 1 / math.sqrt(sizes.width),
        "contract": small / math.sqrt(transformer.WIDER * sizes.width),
        "head": 1 / math.sqrt(sizes.width),
    }
    return {
        name: ("gain" in name) + scales.get(name, 0.02) * rng.standard_normal(shape)
        for name, shape in shapes(sizes).items()
    }


def loss_and_gradients(w: NamedArrays, tokens: Array, targets: Array, sizes: Sizes) -> tuple[Array, dict[str, Array]]:
    """Return the mean cross-entropy of the next words, and its gradient by each weight."""
    import numpy as np

    x = w["embed"][tokens] + w["positions"]
    backs = []
    for layer in range(sizes.layers):
        x, back = transformer.block_vjp(x, _block_weights(w, layer), sizes.heads, causal=True)
        backs.append(back)
    last, back_to_x = transformer.normalised_vjp(x, w["gain"], np.zeros(sizes.width))
    head = w["embed"].T if sizes.tied else w["head"]
    logits = (last @ head).reshape(-1, sizes.vocabulary)
    loss, d_flat = training.cross_entropy_and_gradient(logits, targets.reshape(-1))
    d_logits = d_flat.reshape(*tokens.shape, -1)
    d_head = np.tensordot(last, d_logits, ((0, 1), (0, 1)))
    d_x, d_gain, _ = back_to_x(d_logits @ head.T)
    by_block = []
    for back in reversed(backs):
        d_x, gradients = back(d_x)
        by_block.append(gradients | dict(zip(QUERIES_KEYS_VALUES, np.split(gradients["attend"], 3, -1), strict=True)))
    d_embed = d_head.T.copy() if sizes.tied else np.zeros_like(w["embed"])
    np.add.at(d_embed, tokens, d_x)
    return loss, {
        "embed": d_embed,
        "positions": d_x.sum(0),
        "gain": d_gain,
        **({} if sizes.tied else {"head": d_head}),
        **{name: np.stack([gradients[name] for gradients in reversed(by_block)]) for name in IN_BLOCKS},
    }


def _block_weights(w: NamedArrays, layer: int) -> dict[str, Array]:
    """Return one layer's weights by the names of `_transformer`: queries, keys and values joined, biases zero."""
    import numpy as np

    own = transformer.block_weights({name: w[name] for name in IN_BLOCKS}, layer)
    own["attend"] = np.concatenate([own.pop(name) for name in QUERIES_KEYS_VALUES], -1)
    return own | {f"{name}_bias": np.zeros(array.shape[-1]) for name, array in own.items()}


def train(
    start: NamedArrays, batch: NamedArrays, sizes: Sizes, learning_rate: float, steps: int
) -> tuple[dict[str, Array], Array]:
    """Return the weights after `steps` steps of AdamW (Loshchilov and Hutter 2019, algorithm 2), and the last loss."""
    import numpy as np

    w, loss = dict(start), np.zeros(())
    m = {name: np.zeros_like(array) for name, array in w.items()}
    v = dict(m)
    for t in range(1, steps + 1):
        loss, gradients = loss_and_gradients(w, batch["tokens"], batch["targets"], sizes)
        for name, gradient in gradients.items():
            m[name] = BETA1 * m[name] + (1 - BETA1) * gradient
            v[name] = BETA2 * v[name] + (1 - BETA2) * gradient**2
            adam = (m[name] / (1 - BETA1**t)) / (np.sqrt(v[name] / (1 - BETA2**t)) + EPSILON)
            w[name] = w[name] - learning_rate * (adam + DECAY * w[name])
    return w, loss
