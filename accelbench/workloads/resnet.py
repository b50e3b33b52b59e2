"""Train a ResNet, of 50 layers by default, on images of ImageNet's shape."""

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from accelbench.workload import (
    SMALLEST_PRODUCT,
    Arrays,
    Cost,
    Measure,
    NamedArrays,
    Operations,
    Program,
    Tools,
    Workload,
    WorkloadParameters,
    of_shape,
)
from accelbench.workloads import _resnet as network
from accelbench.workloads import _training as training

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.random import Generator

UPDATE_FLOPS = 4
"""Operations of SGD with momentum for each weight."""
NORMALISATION_FLOPS = 20
"""Operations of batch normalisation and relu for each number, forward and backward."""


class Resnet(Workload):
    """Train a ResNet (He and others 2016) by SGD with momentum on the cross-entropy, as it is trained on ImageNet.

    The defaults are ResNet-50 with 25.6 M weights on images of 224 x 224, which are drawn at random, so that nothing is
    downloaded. Weights, momentum and activations have the policy's type. JAX uses Flax nnx and optax with images (rows,
    columns, channels), and donates the old state; PyTorch uses torch.nn and torch.optim with channels first, its
    default, or in torch.channels_last, as its documentation advises for convolutions on a GPU.
    """

    name = "resnet"
    modes = {
        "jax": ("jit", "op-by-op"),
        "pytorch": ("eager", "compile"),
        "pytorch_channels_last": ("eager", "compile"),
    }
    libraries = {"jax": ("flax.nnx", "optax")}

    class Parameters(WorkloadParameters):
        """Describe the network and the batch."""

        depth: Literal[14, 26, 50, 101] = Field(
            default=50, description="Layers with weights: 1, 2, 3 to 6 or 3 to 23 blocks in each of the four stages."
        )
        width: int = Field(default=64, ge=1, le=4096, description="Channels of the first convolution.")
        image: int = Field(default=224, ge=32, le=4096, description="Rows and columns of an image.")
        classes: int = Field(default=1000, ge=1, le=100_000, description="Logits of an image.")
        batch: int = Field(default=32, ge=2, le=65_536, description="Images in a step.")
        learning_rate: float = Field(default=0.1, gt=0, le=10, description="Step of the gradient descent.")

    def measure(self, parameters: Parameters) -> Measure:
        """Request a comparison with the reference after two steps, the second of which has momentum."""
        del parameters
        return Measure(parity_units=2, differentiates=True)

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Draw the weights, standard normal images (batch, image, image, 3) and labels (batch,)."""
        p = parameters
        images = rng.standard_normal((p.batch, p.image, p.image, network.COLOURS))
        batch = {"images": images, "labels": rng.integers(p.classes, size=p.batch)}
        return Arrays(state=network.draw_weights(p, rng), batches=(batch,))

    def shapes(self, parameters: Parameters) -> Arrays:
        """Return arrays with the names, shapes and types of those of `arrays`, but without data."""
        p, weights = parameters, {}
        for conv in network.convolutions(p):
            weights[conv.name] = of_shape((conv.taps, conv.taps, conv.inputs, conv.outputs))
            weights[f"{conv.name}.gain"] = weights[f"{conv.name}.bias"] = of_shape((conv.outputs,))
        weights["head"] = of_shape((network.features(p), p.classes))
        weights["head.bias"] = of_shape((p.classes,))
        images = of_shape((p.batch, p.image, p.image, network.COLOURS))
        return Arrays(state=weights, batches=({"images": images, "labels": of_shape((p.batch,), "int64")},))

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """Train in NumPy for `units` steps; return the weights and the last loss."""
        p = parameters
        weights, loss = network.train(arrays.state, arrays.batches[0], p, p.learning_rate, units)
        return {**weights, "loss": loss}

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Count the operations of a training step, and the bytes that it moves.

        Operations: convolutions and the linear layer with their gradients, but no gradient of the images; a kernel's
        products with the padding do not count. Normalisation, relu and update. Bytes: images are read, each
        convolution's output is written and read, weights and momentum are read and written.
        """
        p = parameters
        linear = 2.0 * p.batch * network.features(p) * p.classes
        products, numbers = 3 * linear, 0.0  # `numbers` counts the elements of all convolutions' outputs
        for conv, size in _convolutions_with_sizes(p):
            outputs = -(-size // conv.stride)  # rounded up
            forward = 2.0 * p.batch * _taps_inside(size, conv) ** 2 * conv.inputs * conv.outputs
            products += (2 if conv.name == "stem" else 3) * forward
            numbers += float(p.batch * outputs**2 * conv.outputs)
        weights = _count_weights(p)
        images = p.batch * p.image**2 * network.COLOURS
        moved = images + 2 * numbers + 4.0 * weights
        flops = products + NORMALISATION_FLOPS * numbers + UPDATE_FLOPS * weights
        return Cost(flops=flops, bytes=moved * float_bytes)

    def memory(self, parameters: Parameters, float_bytes: int) -> float:
        """Return the bytes of the weights, the momentum, and the outputs of all convolutions."""
        p = parameters
        numbers = sum(
            p.batch * (-(-size // conv.stride)) ** 2 * conv.outputs for conv, size in _convolutions_with_sizes(p)
        )
        return float(numbers + 2 * _count_weights(p)) * float_bytes

    def operations(self, parameters: Parameters) -> Operations | None:
        """Count the convolutions with kernels of more than one pixel, and the products of the linear layer.

        Compilers turn convolutions with 1 x 1 kernels into matrix products.
        """
        p = parameters
        if p.width < SMALLEST_PRODUCT:
            return None  # compilers turn small products into sums
        wide = sum(conv.taps > 1 for conv in network.convolutions(p))
        products = 3 if min(p.batch, p.classes) >= SMALLEST_PRODUCT else 0
        # Two for each: one forward, and one backward, where PyTorch computes both gradients in one operation.
        return Operations(convolutions=2 * wide, products=products)

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Train with flax nnx and optax."""
        from accelbench.workloads import _resnet_flax as flax_network

        dtype = tools.put(arrays.state["head.bias"]).dtype  # `put` converts to the type of the precision policy
        flax_training = flax_network.Training(parameters, dtype, parameters.learning_rate)
        return Program(
            state=flax_training.state(arrays.state, tools.put),
            step=flax_training.step,
            batches=tools.put(arrays.batches),
            donate=True,
            export=flax_training.export,
        )

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Train with torch.nn and torch.optim; torch.compile compiles all but the optimizer."""
        return _torch_program(parameters, arrays, tools, channels_last=False)

    def pytorch_channels_last(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Keep images and kernels in torch.channels_last, the layout of a GPU's fastest convolutions."""
        return _torch_program(parameters, arrays, tools, channels_last=True)


def _torch_program(parameters: Resnet.Parameters, arrays: Arrays, tools: Tools, *, channels_last: bool) -> Program:
    """Return a training program with torch.nn, whose loss runs in the variant's mode."""
    import torch

    from accelbench.workloads import _resnet_torch as torch_network

    memory_format = torch.channels_last if channels_last else torch.contiguous_format
    model = torch_network.build(parameters, arrays.state, tools.put).to(memory_format=memory_format)
    batch = tools.put(arrays.batches[0])
    images = batch["images"].permute(0, 3, 1, 2).contiguous(memory_format=memory_format)

    def export(state: Any, loss: Any) -> dict[str, Any]:
        trained_model, _optimizer = state
        return {**torch_network.weights_by_name(trained_model), "loss": loss}

    optimizer = torch.optim.SGD(model.parameters(), lr=parameters.learning_rate, momentum=network.MOMENTUM)
    return Program(
        state=(model, optimizer),
        step=training.torch_step(tools.in_mode(torch_network.loss_of)),
        batches=({**batch, "images": images},),
        placed=True,
        export=export,
    )


def _count_weights(parameters: Resnet.Parameters) -> int:
    """Return the number of weights, including those of batch normalisation."""
    of_convolutions = sum((conv.taps**2 * conv.inputs + 2) * conv.outputs for conv in network.convolutions(parameters))
    return of_convolutions + (network.features(parameters) + 1) * parameters.classes


def _convolutions_with_sizes(parameters: Resnet.Parameters) -> "Iterator[tuple[network.Convolution, int]]":
    """Yield each convolution with the rows and columns of its input."""
    first = network.stem(parameters)
    yield first, parameters.image
    size = -(-parameters.image // first.stride)  # rounded up, as below
    size = -(-size // network.POOL_STRIDE)
    for block in network.blocks(parameters):
        stride = block["spatial"].stride
        for name, conv in block.items():
            # Only `expand` follows the convolution with the stride.
            yield conv, -(-size // stride) if name == "expand" else size
        size = -(-size // stride)


def _taps_inside(size: int, conv: network.Convolution) -> int:
    """Count, in one dimension, the products of a kernel with pixels inside the image, over all output pixels."""
    # First pixel under the kernel, for each output pixel; below 0 it is in the padding.
    firsts = range(-conv.padding, size - conv.padding, conv.stride)
    return sum(min(first + conv.taps, size) - max(first, 0) for first in firsts)
