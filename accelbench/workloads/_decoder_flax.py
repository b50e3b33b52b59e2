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
"""Mesh axes that divide the batch."""
SCALES = ("gain", "gain1", "gain2")
"""Weights of layer normalisations."""


class Block(nnx.Module):  # type: ignore[misc]  # flax has no types here
    """Apply causal attention, then a perceptron, each after layer normalisation and added to its input."""

    def __init__(self, sizes: decoder.Sizes, options: Mapping[str, Any]) -> None:
        """Create the layers of the block; `options` are arguments of every nnx layer, such as `dtype`."""
        width, hidden = sizes.width, transformer.HIDDEN_RATIO * sizes.width
        self.heads = sizes.heads
        self.gain1 = _normalisation(width, options)
        self.query, self.key, self.value = (nnx.Linear(width, width, use_bias=False, **options) for _ in range(3))
        self.project = nnx.Linear(width, width, use_bias=False, **options)
        self.gain2 = _normalisation(width, options)
        self.expand = nnx.Linear(width, hidden, use_bias=False, **options)
        self.contract = nnx.Linear(hidden, width, use_bias=False, **options)

    def __call__(self, x: Any) -> Any:
        """Apply the block to x (batch, sequence, width).

        The mesh axis `tensor` divides the heads in attention, the hidden units in the perceptron, and elsewhere the
        sequence.
        """
        batch, sequence, _ = x.shape
        normalised = self.gain1(x)
        q, k, v = (
            _constrain_sharding(linear(normalised).reshape(batch, sequence, self.heads, -1), BATCH, None, "tensor")
            for linear in (self.query, self.key, self.value)
        )
        attended = _constrain_sharding(_attend(q, k, v), BATCH, None, "tensor").reshape(x.shape)
        x = _constrain_sharding(x + self.project(attended), BATCH, "tensor")
        hidden = _constrain_sharding(self.expand(self.gain2(x)), BATCH, None, "tensor")
        return _constrain_sharding(x + self.contract(nnx.gelu(hidden, approximate=False)), BATCH, "tensor")


class Decoder(nnx.Module):  # type: ignore[misc]
    """Map tokens to the logits of the next word: embedding, positions, blocks, layer normalisation, head.

    `scanned`: one block runs in a loop over the stacked weights of all layers. `recomputed`: only the input of each
    block is kept, and the rest is recomputed in the backward pass.
    """

    def __init__(self, sizes: decoder.Sizes, dtype: Any, *, scanned: bool, recomputed: bool) -> None:
        """Create the layers with weights of type `dtype`; if `scanned`, all blocks are one with stacked weights."""
        rngs = nnx.Rngs(0)
        options = {"dtype": dtype, "param_dtype": dtype, "rngs": rngs}
        self.embed = nnx.Embed(sizes.vocabulary, sizes.width, **options)
        self.positions = nnx.Embed(sizes.sequence, sizes.width, **options)
        self.gain = _normalisation(sizes.width, options)
        self.head = None if sizes.tied else nnx.Linear(sizes.width, sizes.vocabulary, use_bias=False, **options)
        self.scanned, self.recomputed = scanned, recomputed
        if scanned:
            # vmap over the random states of all layers creates one block with stacked weights.
            create_blocks = nnx.vmap(lambda rngs: Block(sizes, {**options, "rngs": rngs}))
            self.blocks = nnx.split_rngs(splits=sizes.layers)(create_blocks)(rngs)
        else:
            self.blocks = nnx.List([Block(sizes, options) for _ in range(sizes.layers)])

    def __call__(self, tokens: Any) -> Any:
        """Return logits (batch, sequence, words) from tokens (batch, sequence).

        If `recomputed`, the backward pass computes activations again, which saves memory.
        """
        x = _constrain_sharding(self.embed(tokens) + self.positions.embedding, BATCH, "tensor")

        def apply_block(x: Any, block: Any) -> Any:
            return block(x)

        if self.recomputed:
            # JAX's documentation says that the body of a scan needs no barrier against common subexpressions.
            apply_block = nnx.remat(apply_block, prevent_cse=not self.scanned)
        if self.scanned:
            x = nnx.scan(apply_block, in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)(x, self.blocks)
        else:
            for block in self.blocks:
                x = apply_block(x, block)
        x = self.gain(x)
        logits = self.embed.attend(x) if self.head is None else self.head(x)
        return _constrain_sharding(logits, BATCH, "tensor")


def _attend(q: Any, k: Any, v: Any) -> Any:
    """Apply causal attention to q, k and v (batch, sequence, heads, features)."""
    if q.dtype != jnp.float64:
        return jax.nn.dot_product_attention(q, k, v, is_causal=True)
    # JAX's function computes its softmax in float32 even for float64.
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / math.sqrt(q.shape[-1])
    causal = jnp.tri(q.shape[1], dtype=bool)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(jnp.where(causal, scores, -jnp.inf)), v)


def _normalisation(width: int, options: Mapping[str, Any]) -> nnx.LayerNorm:
    """Return layer normalisation with a gain, but without a bias."""
    return nnx.LayerNorm(width, epsilon=transformer.EPSILON, use_bias=False, **options)


def _constrain_sharding(x: Any, *axes: Any) -> Any:
    """Make the compiler shard x over `axes`: for each dimension a mesh axis, a tuple of mesh axes, or None."""
    if jax.sharding.get_abstract_mesh().empty:  # a single device
        return x
    return jax.lax.with_sharding_constraint(x, PartitionSpec(*axes))


def axes_of_batches() -> PartitionSpec:
    """Return the mesh axes of tokens and targets, whose first dimension is the batch."""
    return PartitionSpec(BATCH)


class Training:
    """Train a decoder by AdamW: make its state, shard it over devices, update it, export it."""

    def __init__(
        self, sizes: decoder.Sizes, dtype: Any, learning_rate: float, *, scanned: bool, recomputed: bool
    ) -> None:
        """Create the decoder's graph and the optimizer, without weights."""
        decoder.reject_float16(str(dtype))
        self._sizes, self._scanned = sizes, scanned
        # eval_shape computes only shapes: random weights would be overwritten.
        self._graph, self._weight_shapes = nnx.split(
            nnx.eval_shape(lambda: Decoder(sizes, dtype, scanned=scanned, recomputed=recomputed))
        )
        self._optimizer = optax.adamw(
            learning_rate, b1=decoder.BETA1, b2=decoder.BETA2, eps=decoder.EPSILON, weight_decay=decoder.DECAY
        )

    def state(self, arrays: Mapping[str, Any], put: Callable[[Any], Any]) -> tuple[Any, Any]:
        """Return the state of a step: the decoder's weights, and the optimizer's state for them.

        `arrays` are weights, named as in `decoder.shapes`; `put` places an array on the device.
        """

        def weights_of(name: str, layer: int | None) -> Any:
            """Return a weight, or one layer's part of the weight, on the device."""
            return put(arrays[name] if layer is None else arrays[name][layer])

        weights = self._tree_of_weights(weights_of)
        return weights, self._optimizer.init(weights)

    def axes(self) -> tuple[Any, Any]:
        """Return a tree like the state that has, instead of each array, the mesh axes that divide the array."""

        def axes_of(name: str, layer: int | None) -> PartitionSpec:
            """Return the mesh axes that divide a weight, or one layer's part of the weight."""
            is_stacked = layer is None and name in decoder.IN_BLOCKS
            layer_axes = decoder.MESH_AXES[name]
            # The first dimension of stacked weights, the layers, is not divided.
            return PartitionSpec(None, *layer_axes) if is_stacked else PartitionSpec(*layer_axes)

        weights = self._tree_of_weights(axes_of)
        # Moments are sharded like their weights. The rest, such as the step count, is replicated.
        moments = optax.tree_utils.tree_map_params(
            self._optimizer,
            lambda _, axes: axes,
            jax.eval_shape(self._optimizer.init, self._weight_shapes),
            weights,
            transform_non_params=lambda _: PartitionSpec(),
        )
        return weights, moments

    def loss(self, weights: Any, batch: Any) -> Any:
        """Return the mean cross-entropy of predicting each token's next token; `targets` are (batch, sequence)."""
        logits = nnx.merge(self._graph, weights)(batch["tokens"])
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch["targets"]).mean()

    def step(self, state: Any, batch: Any) -> tuple[Any, Any]:
        """Train on one batch; return the next state and the loss."""
        weights, moments = state
        loss, gradients = jax.value_and_grad(self.loss)(weights, batch)
        updates, moments = self._optimizer.update(gradients, moments, weights)
        return (optax.apply_updates(weights, updates), moments), loss

    def export(self, state: Any, loss: Any) -> dict[str, Any]:
        """Return the loss and all weights, named as in `decoder.shapes`."""
        weights, _optimizer_state = state
        tree = nnx.to_pure_dict(weights)
        blocks = tree["blocks"]
        # A decoder with tied embeddings has no head.
        exported = {name: tree[name][_attribute(name)] for name in decoder.OUTSIDE if name in tree}
        for name in decoder.IN_BLOCKS:
            attribute = _attribute(name)
            if self._scanned:
                exported[name] = blocks[name][attribute]
            else:
                layers = range(self._sizes.layers)
                exported[name] = jnp.stack([blocks[layer][name][attribute] for layer in layers])
        return {**exported, "loss": loss}

    def _tree_of_weights(self, value_of: Callable[[str, int | None], Any]) -> Any:
        """Return a tree like the decoder's weights, with `value_of(name, layer)` in place of each weight.

        Names are those of `decoder.shapes`. `layer` is None for weights outside the blocks, and for stacked weights.
        """
        tree: dict[Any, Any] = {}
        for name in decoder.OUTSIDE:
            if name == "head" and self._sizes.tied:  # a tied head uses the embedding's weights
                continue
            tree[name] = {_attribute(name): value_of(name, None)}
        if self._scanned:
            tree["blocks"] = self._tree_of_block(value_of, None)
        else:
            tree["blocks"] = {layer: self._tree_of_block(value_of, layer) for layer in range(self._sizes.layers)}
        weights = jax.tree.map(lambda leaf: leaf, self._weight_shapes)  # a copy, whose leaves are replaced
        nnx.replace_by_pure_dict(weights, tree)
        return weights

    @staticmethod
    def _tree_of_block(value_of: Callable[[str, int | None], Any], layer: int | None) -> dict[str, Any]:
        """Return the part of `_tree_of_weights` for one block or, if `layer` is None, for all blocks stacked."""
        return {name: {_attribute(name): value_of(name, layer)} for name in decoder.IN_BLOCKS}


def _attribute(name: str) -> str:
    """Return the attribute in which an nnx layer keeps the weights that `decoder.shapes` calls `name`."""
    if name in ("embed", "positions"):
        return "embedding"
    return "scale" if name in SCALES else "kernel"
