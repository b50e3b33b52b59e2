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
"""Colours of an image, classes of images, and rows and columns of a kernel."""
NAMES = ("weights1", "biases1", "weights2", "biases2", "weights3", "biases3")
"""Names of the weights and biases, from the first layer to the last."""


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
    modes = {"jax": ("jit", "op-by-op"), "pytorch": ("eager", "compile"), "pytorch_channels_last": ("eager", "compile")}
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
        """Request a comparison with the reference after three steps, when every weight has clearly changed."""
        del parameters
        return Measure(parity_units=3, differentiates=True)

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Draw the weights, images (batch, size, size, 3) and labels (batch,).

        Each label has a random pattern; an image is the pattern of its label plus noise.
        """
        p = parameters
        shapes = {
            "weights1": (TAPS, TAPS, COLOURS, p.channels),
            "weights2": (TAPS, TAPS, p.channels, 2 * p.channels),
            "weights3": (_features(p), CLASSES),
        }
        network = {}
        for name, shape in shapes.items():
            *input_shape, outputs = shape
            bound = 1 / math.sqrt(math.prod(input_shape))
            network[name] = rng.uniform(-bound, bound, shape)
            network[name.replace("weights", "biases")] = rng.uniform(-bound, bound, outputs)
        labels = rng.integers(CLASSES, size=p.batch)
        patterns = rng.standard_normal((CLASSES, p.size, p.size, COLOURS))
        images = patterns[labels] + rng.standard_normal((p.batch, p.size, p.size, COLOURS))
        return Arrays(state=network, batches=({"images": images, "labels": labels},))

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """Train in NumPy for `units` steps; return the weights and the last loss."""
        import numpy as np

        network = dict(arrays.state)
        images, labels = arrays.batches[0]["images"], arrays.batches[0]["labels"]
        loss = np.zeros(())
        for _ in range(units):
            k1, b1, k2, b2, w3, b3 = (network[name] for name in NAMES)
            before_relu1 = _convolve(images, k1) + b1
            pooled1 = _max_pool(before_relu1.clip(min=0))
            before_relu2 = _convolve(pooled1, k2) + b2
            pooled2 = _max_pool(before_relu2.clip(min=0))
            features = pooled2.reshape(len(labels), -1)
            loss, d_logits = training.cross_entropy_and_gradient(features @ w3 + b3, labels)
            d_pooled2 = (d_logits @ w3.T).reshape(pooled2.shape)
            d_before_relu2 = _relu_and_pool_gradient(d_pooled2, pooled2, before_relu2)
            # The gradient of a convolution's input is a convolution with the mirrored kernel.
            d_pooled1 = _convolve(d_before_relu2, k2[::-1, ::-1].swapaxes(2, 3))
            d_before_relu1 = _relu_and_pool_gradient(d_pooled1, pooled1, before_relu1)
            gradients = {
                "weights1": _kernel_gradient(images, d_before_relu1),
                "biases1": d_before_relu1.sum((0, 1, 2)),
                "weights2": _kernel_gradient(pooled1, d_before_relu2),
                "biases2": d_before_relu2.sum((0, 1, 2)),
                "weights3": features.T @ d_logits,
                "biases3": d_logits.sum(0),
            }
            for name, gradient in gradients.items():
                network[name] = network[name] - parameters.learning_rate * gradient
        return {**network, "loss": loss}

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Count the operations of a training step, and the bytes that it moves.

        Operations: convolutions and products with their gradients, but no gradient of the images; bias, relu, pool and
        update. A kernel's products with the padding around the image do not count. Bytes: images are read,
        activations written and read, weights read and written.
        """
        p = parameters
        first_side, second_side = p.size, p.size // 2
        # In each dimension, a pixel has three taps inside the image, but the first and the last pixel have two.
        first_taps, second_taps = (TAPS * first_side - 2) ** 2, (TAPS * second_side - 2) ** 2
        first = 2.0 * p.batch * first_taps * COLOURS * p.channels
        second = 2.0 * p.batch * second_taps * p.channels * 2 * p.channels
        linear = 2.0 * p.batch * _features(p) * CLASSES
        # Forward, gradient of the weights, gradient of the inputs; the images need no gradient.
        products = 2 * first + 3 * second + 3 * linear
        activations = p.batch * (first_side**2 * p.channels + second_side**2 * 2 * p.channels)
        bias_relu_pool = 6.0 * activations  # three operations, each forward and backward
        weights = TAPS**2 * (COLOURS * p.channels + 2 * p.channels**2) + _features(p) * CLASSES
        update = 2.0 * weights
        images = p.batch * p.size**2 * COLOURS
        moved = images + 2 * activations + 2 * weights
        return Cost(flops=products + bias_relu_pool + update, bytes=float(moved) * float_bytes)

    def operations(self, parameters: Parameters) -> Operations | None:
        """Count the convolutions and matrix products of a training step."""
        convolution_layers = 2
        convolutions_of_a_layer = 2  # forward, and backward: PyTorch computes both of its gradients in one
        products = 3  # of the linear layer: forward, gradient of the weights, gradient of the inputs
        if min(parameters.batch, CLASSES) < SMALLEST_PRODUCT:
            products = 0  # compilers turn small products into sums
        return Operations(convolutions=convolution_layers * convolutions_of_a_layer, products=products)

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Train the network with flax nnx and optax."""
        import optax
        from flax import nnx

        p = parameters

        def build() -> nnx.Sequential:
            """Create the network; `eval_shape` draws no weights, so the seed does not matter."""
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

        graph, weights = nnx.split(nnx.eval_shape(build))  # eval_shape computes only shapes, no random weights
        k1, b1, k2, b2, w3, b3 = tools.put([arrays.state[name] for name in NAMES])
        # 0 and 3 are the convolutions, 7 is the linear layer.
        layers = {0: {"kernel": k1, "bias": b1}, 3: {"kernel": k2, "bias": b2}, 7: {"kernel": w3, "bias": b3}}
        nnx.replace_by_pure_dict(weights, {"layers": layers})
        optimizer = optax.sgd(p.learning_rate)

        def cross_entropy(weights: Any, batch: Any) -> Any:
            logits = nnx.merge(graph, weights)(batch["images"])
            return optax.softmax_cross_entropy_with_integer_labels(logits, batch["labels"]).mean()

        def export(state: Any, loss: Any) -> dict[str, Any]:
            """Return the weights by the names that `reference` uses, and the loss."""
            weights, _optimizer_state = state
            layers = nnx.to_pure_dict(weights)["layers"]
            values = [layers[layer][attribute] for layer in (0, 3, 7) for attribute in ("kernel", "bias")]
            return {**dict(zip(NAMES, values, strict=True)), "loss": loss}

        state = (weights, optimizer.init(weights))
        step = training.optax_step(cross_entropy, optimizer)
        return Program(state=state, step=step, batches=tools.put(arrays.batches), donate=True, export=export)

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Train the network with torch.nn and torch.optim; torch.compile compiles all but the optimizer."""
        return _torch_program(parameters, arrays, tools)

    def pytorch_channels_last(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Keep images and kernels in torch.channels_last, the layout of a GPU's fastest convolutions."""
        return _torch_program(parameters, arrays, tools, channels_last=True)

    @variant("pytorch/compile-step", in_mode="compile")
    def torch_compile_step(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compile the optimizer's step too, besides forward pass, loss and backward pass."""
        return _torch_program(parameters, arrays, tools, "step")


def _features(parameters: CifarCnn.Parameters) -> int:
    """Return the number of inputs of the linear layer, which gets the image after both pools."""
    side = parameters.size // 4  # each of the two pools halves it
    return side**2 * 2 * parameters.channels


def _patches(images: Array) -> Array:
    """Return the 3 x 3 pixels around each pixel, with zeros outside the image.

    The result is (batch, rows, columns, channels, 3, 3).
    """
    import numpy as np

    padded = np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))
    return np.lib.stride_tricks.sliding_window_view(padded, (TAPS, TAPS), (1, 2))


def _convolve(images: Array, kernel: Array) -> Array:
    """Convolve images (batch, rows, columns, in) with a kernel (3, 3, in, out)."""
    import numpy as np

    # Sum the products over the last three axes of the patches: in, 3, 3.
    return np.asarray(np.tensordot(_patches(images), kernel.transpose(2, 0, 1, 3), 3))


def _kernel_gradient(images: Array, d_output: Array) -> Array:
    """Return the gradient of the loss with respect to a convolution's kernel (3, 3, in, out).

    `d_output` is the gradient with respect to the convolution's output (batch, rows, columns, out).
    """
    import numpy as np

    pixels = (0, 1, 2)  # the axes batch, rows, columns, over which products are summed
    return np.asarray(np.tensordot(_patches(images), d_output, (pixels, pixels)).transpose(1, 2, 0, 3))


def _max_pool(x: Array) -> Array:
    """Return the maximum of each square of 2 x 2 pixels of x (batch, rows, columns, channels)."""
    import numpy as np

    batch, rows, columns, channels = x.shape
    return np.asarray(x.reshape(batch, rows // 2, 2, columns // 2, 2, channels).max((2, 4)))


def _relu_and_pool_gradient(d_pooled: Array, pooled: Array, before_relu: Array) -> Array:
    """Return the gradient with respect to `before_relu`, from which relu and max pooling have made `pooled`.

    `d_pooled` is the gradient with respect to `pooled`. All are (batch, rows, columns, channels). In each square of
    2 x 2 pixels, only the maximum has a gradient.
    """
    import numpy as np

    # Repeat each pixel of the output for the four pixels of its square.
    d_squares = d_pooled.repeat(2, 1).repeat(2, 2)
    maxima = pooled.repeat(2, 1).repeat(2, 2)
    return np.asarray(d_squares * ((before_relu == maxima) & (before_relu > 0)))


def _torch_program(
    parameters: CifarCnn.Parameters,
    arrays: Arrays,
    tools: Tools,
    part: training.Part = "loss",
    *,
    channels_last: bool = False,
) -> Program:
    """Return a training program with torch.nn; see `torch_program` for `part`.

    If `channels_last`, images and kernels have the memory format torch.channels_last.
    """
    import torch

    p = parameters
    side = p.size // 4  # rows and columns after both pools
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
    # PyTorch has kernels as (out, in, 3, 3).
    for layer, kernel, biases in ((model[0], k1, b1), (model[3], k2, b2)):
        layer.weight = torch.nn.Parameter(kernel.permute(3, 2, 0, 1).contiguous())
        layer.bias = torch.nn.Parameter(biases)
    # PyTorch flattens images channel by channel, the reference pixel by pixel.
    by_channel = w3.view(side, side, 2 * p.channels, CLASSES).permute(3, 2, 0, 1)
    model[7].weight, model[7].bias = torch.nn.Parameter(by_channel.reshape(CLASSES, -1)), torch.nn.Parameter(b3)

    def cross_entropy(model: Any, batch: Any) -> Any:
        return torch.nn.functional.cross_entropy(model(batch["images"]), batch["labels"])

    def export_weights(tensors: training.Tensors) -> dict[str, Any]:
        """Return the tensors with the names and layouts that `reference` uses."""
        # 0 and 3 are the convolutions, 7 is the linear layer.
        w3 = tensors["7.weight"].view(CLASSES, 2 * p.channels, side, side)
        return {
            "weights1": tensors["0.weight"].permute(2, 3, 1, 0),
            "biases1": tensors["0.bias"],
            "weights2": tensors["3.weight"].permute(2, 3, 1, 0),
            "biases2": tensors["3.bias"],
            "weights3": w3.permute(2, 3, 1, 0).reshape(-1, CLASSES),
            "biases3": tensors["7.bias"],
        }

    memory_format = torch.channels_last if channels_last else torch.contiguous_format
    model.to(memory_format=memory_format)
    batch = tools.put(arrays.batches[0])
    images = batch["images"].permute(0, 3, 1, 2).contiguous(memory_format=memory_format)  # PyTorch: channels first
    batches = ({**batch, "images": images},)
    return training.torch_program(model, cross_entropy, p.learning_rate, batches, export_weights, tools, part)
