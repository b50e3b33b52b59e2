"""Implement the decoder of `_decoder` with Flax nnx and optax, as one program for one or many devices.

If a mesh is set, activations are divided over it: the batch over data and fsdp; between blocks the sequence over tensor
(Korthikanti and others 2022), inside blocks the heads and hidden units.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import PartitionSpec

from accelbench.workloads import _decoder as decoder
from accelbench.workloads import _transformer as transformer

BATCH = ("data", "fsdp")
SCALES = ("gain", "gain1", "gain2")


class Block(nnx.Module):  # type: ignore[misc]  # flax has no types here
    """Apply causal attention, then a perceptron, each after layer normalisation and added to its input."""

    def __init__(self, sizes: decoder.Sizes, own: Mapping[str, Any]) -> None:
        width, hidden = sizes.width, transformer.WIDER * sizes.width
        self.heads = sizes.heads
        self.gain1 = _normalisation(width, own)
        self.query, self.key, self.value = (nnx.Linear(width, width, use_bias=False, **own) for _ in range(3))
        self.project = nnx.Linear(width, width, use_bias=False, **own)
        self.gain2 = _normalisation(width, own)
        self.expand = nnx.Linear(width, hidden, use_bias=False, **own)
        self.contract = nnx.Linear(hidden, width, use_bias=False, **own)

    def __call__(self, x: Any) -> Any:
        """Map x (batch, sequence, width) to the same shape."""
        batch, sequence, _ = x.shape
        first = self.gain1(x)
        q, k, v = (
            _divided(part(first).reshape(batch, sequence, self.heads, -1), BATCH, None, "tensor")
            for part in (self.query, self.key, self.value)
        )
        attended = _divided(_attend(q, k, v), BATCH, None, "tensor").reshape(x.shape)
        x = _divided(x + self.project(attended), BATCH, "tensor")
        hidden = _divided(self.expand(self.gain2(x)), BATCH, None, "tensor")
        return _divided(x + self.contract(nnx.gelu(hidden, approximate=False)), BATCH, "tensor")


class Decoder(nnx.Module):  # type: ignore[misc]
    """Map tokens to the logits of the next word: embedding, positions, blocks, layer normalisation, head.

    `scanned`: one block runs in a loop over the stacked weights of all layers. `recomputed`: only the input of each
    block is kept, and the rest is recomputed in the backward pass.
    """

    def __init__(self, sizes: decoder.Sizes, dtype: Any, *, scanned: bool, recomputed: bool) -> None:
        rngs = nnx.Rngs(0)
        own = {"dtype": dtype, "param_dtype": dtype, "rngs": rngs}
        self.embed = nnx.Embed(sizes.vocabulary, sizes.width, **own)
        self.positions = nnx.Embed(sizes.sequence, sizes.width, **own)
        self.gain = _normalisation(sizes.width, own)
        self.head = None if sizes.tied else nnx.Linear(sizes.width, sizes.vocabulary, use_bias=False, **own)
        self.scanned, self.recomputed = scanned, recomputed
        if scanned:
            stacked = nnx.vmap(lambda rngs: Block(sizes, {**own, "rngs": rngs}))
            self.blocks = nnx.split_rngs(splits=sizes.layers)(stacked)(rngs)
        else:
            self.blocks = nnx.List([Block(sizes, own) for _ in range(sizes.layers)])

    def __call__(self, tokens: Any) -> Any:
        """Return logits (batch, sequence, words) from tokens (batch, sequence)."""
        x = _divided(self.embed(tokens) + self.positions.embedding, BATCH, "tensor")

        def through(x: Any, block: Any) -> Any:
            return block(x)

        if self.recomputed:
            # A scan keeps both computations apart; JAX's documentation advises against the barrier there.
            through = nnx.remat(through, prevent_cse=not self.scanned)
        if self.scanned:
            x = nnx.scan(through, in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)(x, self.blocks)
        else:
            for block in self.blocks:
                x = through(x, block)
        x = self.gain(x)
        logits = self.embed.attend(x) if self.head is None else self.head(x)
        return _divided(logits, BATCH, "tensor")


def _attend(q: Any, k: Any, v: Any) -> Any:
    """Apply causal attention to q, k and v of (batch, sequence, heads, depth)."""
    if q.dtype != jnp.float64:
        return jax.nn.dot_product_attention(q, k, v, is_causal=True)
    # JAX's function computes its softmax in float32 even for float64.
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
    causal = jnp.tri(q.shape[1], dtype=bool)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(jnp.where(causal, scores, -jnp.inf)), v)


def _normalisation(width: int, own: Mapping[str, Any]) -> nnx.LayerNorm:
    return nnx.LayerNorm(width, epsilon=transformer.EPSILON, use_bias=False, **own)


def _divided(x: Any, *axes: Any) -> Any:
    """Constrain x to be divided by these mesh axes; return it unchanged without a mesh."""
    if jax.sharding.get_abstract_mesh().empty:
        return x
    return jax.lax.with_sharding_constraint(x, PartitionSpec(*axes))


def axes_of_batches() -> PartitionSpec:
    """Return the mesh axes of tokens and targets: examples are divided, each is whole."""
    return PartitionSpec(BATCH)


class Training:
    """Train such a decoder by AdamW: graph, weights, optimizer state, and how they lie on devices."""

    def __init__(
        self, sizes: decoder.Sizes, dtype: Any, learning_rate: float, *, scanned: bool, recomputed: bool
    ) -> None:
        decoder.check_type(str(dtype))
        self._sizes, self._scanned = sizes, scanned
        # Shapes alone: random initial weights would be overwritten.
        self._graph, self._empty = nnx.split(
            nnx.eval_shape(lambda: Decoder(sizes, dtype, scanned=scanned, recomputed=recomputed))
        )
        self._optimizer = optax.adamw(
            learning_rate, b1=decoder.BETA1, b2=decoder.BETA2, eps=decoder.EPSILON, weight_decay=decoder.DECAY
        )

    def state(self, arrays: Mapping[str, Any], put: Callable[[Any], Any]) -> tuple[Any, Any]:
        """Return (weights, optimizer state) from arrays by the names of `decoder.shapes`."""
        weights = self._filled(arrays, put, lambda stacked, layer: stacked[layer])
        return weights, self._optimizer.init(weights)

    def axes(self) -> tuple[Any, Any]:
        """Return the tree of `state` with mesh axes in place of arrays."""
        of_layer = {name: PartitionSpec(*axes) for name, axes in decoder.DIVIDED.items()}
        stacked = {name: PartitionSpec(None, *of_layer[name]) for name in decoder.IN_BLOCKS} if self._scanned else {}
        weights = self._filled(of_layer | stacked, lambda axes: axes, lambda axes, _: axes)
        abstract = jax.eval_shape(self._optimizer.init, self._empty)
        moments = optax.tree_utils.tree_map_params(
            self._optimizer,
            lambda _, axes: axes,
            abstract,
            weights,
            transform_non_params=lambda _: PartitionSpec(),
        )
        return weights, moments

    def loss(self, weights: Any, batch: Any) -> Any:
        """Return the mean cross-entropy of the next words."""
        logits = nnx.merge(self._graph, weights)(batch["tokens"])
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch["targets"]).mean()

    def step(self, state: Any, batch: Any) -> tuple[Any, Any]:
        """Return the next state, and the loss before it."""
        weights, moments = state
        loss, gradients = jax.value_and_grad(self.loss)(weights, batch)
        updates, moments = self._optimizer.update(gradients, moments, weights)
        return (optax.apply_updates(weights, updates), moments), loss

    def export(self, state: Any, loss: Any) -> dict[str, Any]:
        """Return the weights by the names of `decoder.shapes`, and the loss."""
        weights = nnx.to_pure_dict(state[0])
        blocks = weights["blocks"]
        layers = None if self._scanned else [blocks[layer] for layer in range(self._sizes.layers)]

        def named(name: str, module: Mapping[str, Any]) -> Any:
            return module[name][_leaf(name)]

        outside = {name: named(name, weights) for name in decoder.OUTSIDE if name in weights}
        inside = {
            name: named(name, blocks) if layers is None else jnp.stack([named(name, layer) for layer in layers])
            for name in decoder.IN_BLOCKS
        }
        return {**outside, **inside, "loss": loss}

    def _filled(self, values: Mapping[str, Any], put: Callable[[Any], Any], one: Callable[[Any, int], Any]) -> Any:
        """Return the tree of weights with `put` of these values; `one` takes a layer's value out of a stack."""
        tree: dict[Any, Any] = {
            name: {_leaf(name): put(values[name])}
            for name in decoder.OUTSIDE
            if name in values and not (name == "head" and self._sizes.tied)
        }
        if self._scanned:
            tree["blocks"] = {name: {_leaf(name): put(values[name])} for name in decoder.IN_BLOCKS}
        else:
            tree["blocks"] = {
                layer: {name: {_leaf(name): put(one(values[name], layer))} for name in decoder.IN_BLOCKS}
                for layer in range(self._sizes.layers)
            }
        weights = jax.tree.map(lambda leaf: leaf, self._empty)  # a copy, whose leaves are replaced
        nnx.replace_by_pure_dict(weights, tree)
        return weights


def _leaf(name: str) -> str:
    """Return the attribute in which nnx keeps the weights of this layer."""
    if name in ("embed", "positions"):
        return "embedding"
    return "scale" if name in SCALES else "kernel"
