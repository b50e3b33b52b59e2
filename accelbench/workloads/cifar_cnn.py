"""Train a small convolutional network on images of CIFAR-10's shape."""

import math
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import Field

from accelbench.workload import (
    SMALLEST_PRODUCT,
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
    variant,
)
from accelbench.workloads import _training as training

if TYPE_CHECKING:
    from numpy.random import Generator

COLOURS, CLASSES, TAPS = 3, 10, 3
NAMES = ("weights1", "biases1", "weights2", "biases2", "weights3", "biases3")


class CifarCnn(Workload):
    """Train conv (3 x 3), relu, max-pool (2 x 2), twice, then a linear layer: one step of SGD on the cross-entropy.

    Row 25 of the claims: "training a small CNN on CIFAR-10 with static input shapes", where jit is said to take the
    least time for a step, eager PyTorch the most, and torch.compile to be marginally behind jit. The images are
    `cifar-shaped`: a pattern for each class plus noise, so nothing is downloaded. flax nnx and optax get images
    (height, width, channels), torch.nn and torch.optim (channels, height, width), the default of each. Both start from
    the same weights, U(-1/sqrt(in), 1/sqrt(in)).
    """

    name = "cifar-cnn"
    moves_once = True
    modes = {"jax": ("jit", "op-by-op"), "pytorch": ("eager",)}
    libraries = {"jax": ("flax.nnx", "optax")}

    class Parameters(WorkloadParameters):
        """Describe the network and the batch."""

        batch: int = Field(default=128, ge=1, le=65_536, description="Images in a step.")
        channels: int = Field(
            default=32, ge=1, le=4096, description="Of the first convolution; the second has twice as many."
        )
        size: int = Field(default=32, ge=4, le=512, multiple_of=4, description="Rows and columns of an image.")
        learning_rate: float = Field(default=0.01, gt=0, le=10, description="Step of the gradient descent.")

    def measure(self, parameters: Parameters) -> Measure:
        """Compare after three steps, which move every weight by more than rounding does."""
        del parameters
        return Measure(parity_units=3, differentiates=True)

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Draw the weights, images (batch, size, size, 3) and labels (batch,).

        Kernels are (3, 3, in, out), weights (in, out), biases (out,).
        """
        p = parameters
        shapes = {
            "weights1": (TAPS, TAPS, COLOURS, p.channels),
            "weights2": (TAPS, TAPS, p.channels, 2 * p.channels),
            "weights3": (_features(p), CLASSES),
        }
        network = {}
        for number, shape in enumerate(shapes.values(), start=1):
            bound = 1 / math.sqrt(math.prod(shape[:-1]))
            network[f"weights{number}"] = rng.uniform(-bound, bound, shape)
            network[f"biases{number}"] = rng.uniform(-bound, bound, shape[-1])
        labels = rng.integers(CLASSES, size=p.batch)
        patterns = rng.standard_normal((CLASSES, p.size, p.size, COLOURS))
        images = patterns[labels] + rng.standard_normal((p.batch, p.size, p.size, COLOURS))
        return Arrays(state=network, batches=({"images": images, "labels": labels},))

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """Apply the chain rule by hand."""
        import numpy as np

        network = dict(arrays.state)
        images, labels = arrays.batches[0]["images"], arrays.batches[0]["labels"]
        loss = np.zeros(())
        for _ in range(units):
            k1, b1, k2, b2, w3, b3 = (network[name] for name in NAMES)
            before1 = _convolved(images, k1) + b1
            pooled1 = _pooled(before1.clip(min=0))
            before2 = _convolved(pooled1, k2) + b2
            pooled2 = _pooled(before2.clip(min=0))
            features = pooled2.reshape(len(labels), -1)
            loss, d_logits = training.cross_entropy_and_gradient(features @ w3 + b3, labels)
            at2 = _unpooled((d_logits @ w3.T).reshape(pooled2.shape), pooled2, before2)
            at1 = _unpooled(_convolved(at2, k2[::-1, ::-1].swapaxes(2, 3)), pooled1, before1)
            gradients = (
                *(_kernel_gradient(images, at1), at1.sum((0, 1, 2))),
                *(_kernel_gradient(pooled1, at2), at2.sum((0, 1, 2))),
                *(features.T @ d_logits, d_logits.sum(0)),
            )
            for name, gradient in zip(NAMES, gradients, strict=True):
                network[name] = network[name] - parameters.learning_rate * gradient
        return {**network, "loss": loss}

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Count 2 operations a tap inside the image, forward and per gradient; every array moves once.

        The first layer's input needs no gradient. Each number before a pool adds bias, relu and pool, forward and
        backward; each weight adds two operations of the update.
        """
        p = parameters
        inside = [(TAPS * side - 2) ** 2 for side in (p.size, p.size // 2)]
        first = 2.0 * p.batch * inside[0] * COLOURS * p.channels
        second = 2.0 * p.batch * inside[1] * p.channels * 2 * p.channels
        linear = 2.0 * p.batch * _features(p) * CLASSES
        activations = p.batch * (p.size**2 * p.channels + (p.size // 2) ** 2 * 2 * p.channels)
        weights = TAPS**2 * (COLOURS * p.channels + 2 * p.channels**2) + _features(p) * CLASSES
        numbers = p.batch * p.size**2 * COLOURS + 2 * activations + 2 * weights
        flops = 2 * first + 3 * second + 3 * linear + 6.0 * activations + 2.0 * weights
        return Cost(flops=flops, bytes=float(numbers) * float_bytes)

    def operations(self, parameters: Parameters) -> Operations | None:
        """Count two convolutions forward with their two gradients each, and three matrix products."""
        least = min(parameters.batch, CLASSES) >= SMALLEST_PRODUCT
        return Operations(convolutions=4, products=3 * least)

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use flax nnx and optax."""
        import optax
        from flax import nnx

        p = parameters

        def build() -> nnx.Sequential:
            rngs = nnx.Rngs(0)
            pool = partial(nnx.max_pool, window_shape=(2, 2), strides=(2, 2))
            return nnx.Sequential(
                nnx.Conv(COLOURS, p.channels, kernel_size=(TAPS, TAPS), rngs=rngs),
                nnx.relu,
                pool,
                nnx.Conv(p.channels, 2 * p.channels, kernel_size=(TAPS, TAPS), rngs=rngs),
                nnx.relu,
                pool,
                lambda x: x.reshape(len(x), -1),
                nnx.Linear(_features(p), CLASSES, rngs=rngs),
            )

        graph, numbers = nnx.split(nnx.eval_shape(build))
        k1, b1, k2, b2, w3, b3 = tools.put([arrays.state[name] for name in NAMES])
        layers = {number: {"kernel": k, "bias": b} for number, k, b in ((0, k1, b1), (3, k2, b2), (7, w3, b3))}
        nnx.replace_by_pure_dict(numbers, {"layers": layers})
        optimizer = optax.sgd(p.learning_rate)

        def cross_entropy(numbers: Any, batch: Any) -> Any:
            logits = nnx.merge(graph, numbers)(batch["images"])
            return optax.softmax_cross_entropy_with_integer_labels(logits, batch["labels"]).mean()

        def export(state: Any, loss: Any) -> dict[str, Any]:
            layers = nnx.to_pure_dict(state[0])["layers"]
            weights = [layers[number][name] for number in (0, 3, 7) for name in ("kernel", "bias")]
            return {**dict(zip(NAMES, weights, strict=True)), "loss": loss}

        state = (numbers, optimizer.init(numbers))
        step = training.optax_step(cross_entropy, optimizer)
        return Program(state=state, step=step, batches=tools.put(arrays.batches), donate=True, export=export)

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use torch.nn and torch.optim."""
        return _torch_program(parameters, arrays, tools)

    @variant("pytorch/compile")
    def torch_compile(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compile forward pass and loss, and so the backward pass, with torch.compile; the optimizer runs eagerly."""
        return _torch_program(parameters, arrays, tools, "loss")

    @variant("pytorch/compile-step")
    def torch_compile_step(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compile the optimizer's step as well."""
        return _torch_program(parameters, arrays, tools, "step")


def _features(parameters: CifarCnn.Parameters) -> int:
    """Return how many numbers of an image reach the linear layer."""
    return (parameters.size // 4) ** 2 * 2 * parameters.channels


def _patches(images: Array) -> Array:
    """Return the 3 x 3 surroundings of each pixel, padded with zeros: (batch, rows, columns, channels, 3, 3)."""
    import numpy as np

    padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    return np.lib.stride_tricks.sliding_window_view(padded, (TAPS, TAPS), (1, 2))


def _convolved(images: Array, kernel: Array) -> Array:
    import numpy as np

    return np.asarray(np.tensordot(_patches(images), kernel.transpose(2, 0, 1, 3), 3))


def _kernel_gradient(images: Array, d_output: Array) -> Array:
    import numpy as np

    places = (0, 1, 2)
    return np.asarray(np.tensordot(_patches(images), d_output, (places, places)).transpose(1, 2, 0, 3))


def _pooled(x: Array) -> Array:
    import numpy as np

    batch, rows, columns, channels = x.shape
    return np.asarray(x.reshape(batch, rows // 2, 2, columns // 2, 2, channels).max((2, 4)))


def _unpooled(d_pooled: Array, pooled: Array, before: Array) -> Array:
    """Backpropagate through pool and relu: to the place of the maximum, if the maximum was above zero."""
    import numpy as np

    d_here, greatest = (array.repeat(2, 1).repeat(2, 2) for array in (d_pooled, pooled))
    return np.asarray(d_here * ((before == greatest) & (before > 0)))


def _torch_program(
    parameters: CifarCnn.Parameters, arrays: Arrays, tools: Tools, compiled: training.Compiled = "nothing"
) -> Program:
    import torch

    p = parameters
    side = p.size // 4
    model = torch.nn.Sequential(
        torch.nn.Conv2d(COLOURS, p.channels, TAPS, padding=1),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(p.channels, 2 * p.channels, TAPS, padding=1),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(_features(p), CLASSES),
    )
    k1, b1, k2, b2, w3, b3 = tools.put([arrays.state[name] for name in NAMES])
    for layer, kernel, biases in ((model[0], k1, b1), (model[3], k2, b2)):
        layer.weight = torch.nn.Parameter(kernel.permute(3, 2, 0, 1).contiguous())
        layer.bias = torch.nn.Parameter(biases)
    # PyTorch flattens images channel by channel, the reference pixel by pixel.
    by_channel = w3.view(side, side, 2 * p.channels, CLASSES).permute(3, 2, 0, 1)
    model[7].weight, model[7].bias = torch.nn.Parameter(by_channel.reshape(CLASSES, -1)), torch.nn.Parameter(b3)

    def cross_entropy(model: Any, batch: Any) -> Any:
        return torch.nn.functional.cross_entropy(model(batch["images"]), batch["labels"])

    def exported(trained: training.Tensors) -> dict[str, Any]:
        k1, k2, w3 = (trained[f"{number}.weight"] for number in (0, 3, 7))
        b1, b2, b3 = (trained[f"{number}.bias"] for number in (0, 3, 7))
        w3 = w3.view(CLASSES, 2 * p.channels, side, side).permute(2, 3, 1, 0).reshape(-1, CLASSES)
        weights = (k1.permute(2, 3, 1, 0), b1, k2.permute(2, 3, 1, 0), b2, w3, b3)
        return dict(zip(NAMES, weights, strict=True))

    batch = arrays.batches[0]
    batches = tools.put(({**batch, "images": batch["images"].transpose(0, 3, 1, 2).copy()},))
    return training.torch_program(model, cross_entropy, p.learning_rate, batches, exported, compiled)
