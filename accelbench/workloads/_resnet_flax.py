"""Implement the network of `_resnet` with Flax nnx and optax."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import nnx

from accelbench.workload import NamedArrays
from accelbench.workloads import _resnet as resnet


class Unit(nnx.Module):  # type: ignore[misc]  # flax has no types here
    """Apply a convolution and batch normalisation."""

    def __init__(self, conv: resnet.Convolution, options: Mapping[str, Any]) -> None:
        """Create both layers; `options` are arguments of every nnx layer, such as `dtype`."""
        self.convolution = nnx.Conv(
            conv.inputs,
            conv.outputs,
            (conv.taps, conv.taps),
            strides=conv.stride,
            padding=conv.padding,
            use_bias=False,
            **options,
        )
        self.normalisation = nnx.BatchNorm(conv.outputs, momentum=resnet.MOMENTUM, epsilon=resnet.EPSILON, **options)

    def __call__(self, x: Any) -> Any:
        """Apply the unit to x (batch, rows, columns, channels), and update the running statistics."""
        return self.normalisation(self.convolution(x))


class Block(nnx.Module):  # type: ignore[misc]
    """Apply three units, and add the block's input."""

    def __init__(self, block: resnet.Block, options: Mapping[str, Any]) -> None:
        """Create the units, with a shortcut where the shape changes."""
        self.reduce, self.spatial, self.expand = (
            Unit(block[name], options) for name in ("reduce", "spatial", "expand")
        )
        self.shortcut = Unit(block["shortcut"], options) if "shortcut" in block else None

    def __call__(self, x: Any) -> Any:
        """Apply the block to x (batch, rows, columns, channels)."""
        y = self.expand(nnx.relu(self.spatial(nnx.relu(self.reduce(x)))))
        return nnx.relu(y + (x if self.shortcut is None else self.shortcut(x)))


class ResNet(nnx.Module):  # type: ignore[misc]
    """Map images (batch, rows, columns, 3) to logits (batch, classes)."""

    def __init__(self, sizes: resnet.Sizes, dtype: Any) -> None:
        """Create the layers with weights of type `dtype`."""
        options = {"dtype": dtype, "param_dtype": dtype, "rngs": nnx.Rngs(0)}
        self.stem = Unit(resnet.stem(sizes), options)
        self.blocks = nnx.List([Block(block, options) for block in resnet.blocks(sizes)])
        self.head = nnx.Linear(resnet.features(sizes), sizes.classes, **options)

    def __call__(self, images: Any) -> Any:
        """Return the logits of the images."""
        x = nnx.relu(self.stem(images))
        x = nnx.max_pool(x, (resnet.POOL,) * 2, (resnet.POOL_STRIDE,) * 2, padding=((1, 1), (1, 1)))
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean((1, 2)))


class Training:
    """Train by optax.sgd with momentum. The state is (weights, running statistics, optimizer state)."""

    def __init__(self, sizes: resnet.Sizes, dtype: Any, learning_rate: float) -> None:
        """Create the network's structure without drawing weights."""
        self._sizes = sizes
        abstract = nnx.eval_shape(lambda: ResNet(sizes, dtype))
        self._graph, self._weights, self._statistics = nnx.split(abstract, nnx.Param, nnx.BatchStat)
        # Running statistics are float32, as flax creates them, unless weights are float64.
        self._statistics_type = jnp.promote_types(dtype, jnp.float32)
        self._optimizer = optax.sgd(learning_rate, momentum=resnet.MOMENTUM)

    def state(self, arrays: NamedArrays, put: Callable[[Any], Any]) -> Any:
        """Return the initial state from weights, named as in `draw_weights`; `put` places them on the device."""
        weights = put(dict(arrays))

        def layer(conv: resnet.Convolution) -> dict[str, Any]:
            """Return the weights of a unit, by the names in flax."""
            gain, bias = weights[f"{conv.name}.gain"], weights[f"{conv.name}.bias"]
            return {"convolution": {"kernel": weights[conv.name]}, "normalisation": {"scale": gain, "bias": bias}}

        def statistics(conv: resnet.Convolution) -> dict[str, Any]:
            """Return the initial running statistics of a unit."""
            shape = (conv.outputs,)
            mean, variance = jnp.zeros(shape, self._statistics_type), jnp.ones(shape, self._statistics_type)
            return {"normalisation": {"mean": mean, "var": variance}}

        head = {"kernel": weights["head"], "bias": weights["head.bias"]}
        nnx.replace_by_pure_dict(self._weights, resnet.tree(self._sizes, layer, head))
        of_statistics = resnet.tree(self._sizes, statistics, None)
        del of_statistics["head"]  # a linear layer has no statistics
        nnx.replace_by_pure_dict(self._statistics, of_statistics)
        return self._weights, self._statistics, self._optimizer.init(self._weights)

    def step(self, state: Any, batch: Any) -> tuple[Any, Any]:
        """Train on one batch; return the next state and the loss."""
        weights, statistics, optimizer_state = state

        def loss_of(weights: Any) -> tuple[Any, Any]:
            """Return the mean cross-entropy, and the running statistics after the forward pass."""
            model = nnx.merge(self._graph, weights, statistics, copy=True)  # the forward pass changes the copy
            logits = model(batch["images"])
            loss = optax.softmax_cross_entropy_with_integer_labels(logits, batch["labels"]).mean()
            return loss, nnx.state(model, nnx.BatchStat)

        (loss, statistics), gradients = jax.value_and_grad(loss_of, has_aux=True)(weights)
        updates, optimizer_state = self._optimizer.update(gradients, optimizer_state, weights)
        return (optax.apply_updates(weights, updates), statistics, optimizer_state), loss

    def export(self, state: Any, loss: Any) -> dict[str, Any]:
        """Return the weights by the names of `draw_weights`, and the loss."""
        layers = nnx.to_pure_dict(state[0])
        exported = {"head": layers["head"]["kernel"], "head.bias": layers["head"]["bias"], "loss": loss}
        units = {"stem": layers["stem"]}
        units |= {
            f"block{index}.{name}": unit for index, block in layers["blocks"].items() for name, unit in block.items()
        }
        for name, unit in units.items():
            exported[name] = unit["convolution"]["kernel"]
            exported[f"{name}.gain"] = unit["normalisation"]["scale"]
            exported[f"{name}.bias"] = unit["normalisation"]["bias"]
        return exported
