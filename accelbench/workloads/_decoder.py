"""A decoder in NumPy: its weights, its loss with the chain rule by hand, and AdamW as it is printed.

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
"""Of AdamW, as Llama 2 was trained (Touvron and others 2023, section 2.2); 1e-8 would be zero in float16."""
OUTSIDE = ("embed", "positions", "gain", "head")
"""The weights that are no block's."""
QUERIES_KEYS_VALUES = ("query", "key", "value")
IN_BLOCKS = (*QUERIES_KEYS_VALUES, "project", "expand", "contract", "gain1", "gain2")
"""Those of all blocks, stacked: the first dimension is the layer."""
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
"""By the names of axes, one for each dimension of one layer's weights.

tensor: heads, hidden numbers and words lie apart (Shoeybi and others 2019); fsdp: what is left of a weight lies apart,
and is gathered where it is used (Rajbhandari and others 2020; Zhao and others 2023).
"""


class Sizes(Protocol):
    """Of the network; the parameters of the workload have them."""

    @property
    def layers(self) -> int:
        """Blocks."""
        ...

    @property
    def width(self) -> int:
        """Numbers for each token."""
        ...

    @property
    def heads(self) -> int:
        """Of attention."""
        ...

    @property
    def vocabulary(self) -> int:
        """Words."""
        ...

    @property
    def sequence(self) -> int:
        """Tokens of an example."""
        ...

    @property
    def tied(self) -> bool:
        """The words that come out are those that go in."""
        ...


def shapes(sizes: Sizes) -> dict[str, tuple[int, ...]]:
    """Of every weight: (in, out), (words, width), (width,); those of the blocks with all layers before it."""
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
    """How many weights: 12 width^2 + 2 width a layer, width a word (twice, unless tied) and a position, width more."""
    words = sizes.vocabulary * (1 if sizes.tied else 2)
    return sizes.layers * (12 * sizes.width**2 + 2 * sizes.width) + sizes.width * (words + sizes.sequence + 1)


def check_type(name: str) -> None:
    """Raises ValueError for a type that AdamW's second moments do not fit into."""
    if name.endswith("float16") and not name.endswith("bfloat16"):
        raise ValueError("the squares of gradients are zero in float16: train in bfloat16 or in float32")


def draw(sizes: Sizes, rng: "Generator") -> NamedArrays:
    """Variance 1/in, and 1/(2 layers in) for what is added to x, so that x keeps its size; gains around 1."""
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
    """The mean cross-entropy of the next words, and its gradient by each weight."""
    import numpy as np

    x = w["embed"][tokens] + w["positions"]
    backs = []
    for layer in range(sizes.layers):
        x, back = transformer.block_vjp(x, _as_theirs(w, layer), sizes.heads, causal=True)
        backs.append(back)
    last, back_to_x = transformer.normalised_vjp(x, w["gain"], np.zeros(sizes.width))
    head = w["embed"].T if sizes.tied else w["head"]
    logits = (last @ head).reshape(-1, sizes.vocabulary)
    loss, at_flat = training.cross_entropy_and_gradient(logits, targets.reshape(-1))
    at_logits = at_flat.reshape(*tokens.shape, -1)
    at_head = np.tensordot(last, at_logits, ((0, 1), (0, 1)))
    at_x, at_gain, _ = back_to_x(at_logits @ head.T)
    by_block = []
    for back in reversed(backs):
        at_x, gradients = back(at_x)
        by_block.append(gradients | dict(zip(QUERIES_KEYS_VALUES, np.split(gradients["attend"], 3, -1), strict=True)))
    at_embed = at_head.T.copy() if sizes.tied else np.zeros_like(w["embed"])
    np.add.at(at_embed, tokens, at_x)
    return loss, {
        "embed": at_embed,
        "positions": at_x.sum(0),
        "gain": at_gain,
        **({} if sizes.tied else {"head": at_head}),
        **{name: np.stack([gradients[name] for gradients in reversed(by_block)]) for name in IN_BLOCKS},
    }


def _as_theirs(w: NamedArrays, layer: int) -> dict[str, Array]:
    """One layer's weights by the names of `_transformer`: queries, keys and values as one, and zeros for biases."""
    import numpy as np

    own = transformer.one({name: w[name] for name in IN_BLOCKS}, layer)
    own["attend"] = np.concatenate([own.pop(name) for name in QUERIES_KEYS_VALUES], -1)
    return own | {f"{name}_bias": np.zeros(array.shape[-1]) for name, array in own.items()}


def train(
    start: NamedArrays, batch: NamedArrays, sizes: Sizes, learning_rate: float, steps: int
) -> tuple[dict[str, Array], Array]:
    """The weights after so many steps of AdamW (Loshchilov and Hutter 2019, algorithm 2), and the last loss."""
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
