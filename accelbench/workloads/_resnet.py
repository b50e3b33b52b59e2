"""Describe the convolutions of a ResNet, and train it in NumPy.

He and others (2016), table 1, with the stride in the 3 x 3 convolution of a block, as in Goyal and others (2017) and
torchvision. Images and activations are (batch, rows, columns, channels), kernels (rows, columns, in, out).
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from accelbench.workload import Array, NamedArrays
from accelbench.workloads import _training as training

if TYPE_CHECKING:
    from numpy.random import Generator

COLOURS = 3
EPSILON = 1e-5
MOMENTUM = 0.9
"""Momentum of the optimizer, and of the running statistics of batch normalisation."""
EXPANSION = 4
"""Ratio of a block's output channels to the channels of its 3 x 3 convolution."""
BLOCKS = {14: (1, 1, 1, 1), 26: (2, 2, 2, 2), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3)}
"""Number of blocks in each of the four stages, by the network's number of layers with weights."""
POOL, POOL_STRIDE = 3, 2
"""Rows and columns of a window of max pooling, and of pixels from one window to the next."""
Backward = Callable[[Array], Array]
"""Function from the gradient with respect to an output to the gradient with respect to the input.

It stores the gradients with respect to weights.
"""


class Sizes(Protocol):
    """Define the parameters of the workload that give the network its shape."""

    @property
    def depth(self) -> int:
        """Return the number of layers with weights, a key of `BLOCKS`."""
        ...

    @property
    def width(self) -> int:
        """Return the channels of the first convolution."""
        ...

    @property
    def classes(self) -> int:
        """Return the number of logits of an image."""
        ...


@dataclass(frozen=True)
class Convolution:
    """Describe a convolution without bias, before batch normalisation. At stride 1, padding keeps the image's size."""

    name: str
    inputs: int
    outputs: int
    taps: int
    """Rows and columns of the kernel."""
    stride: int = 1

    @property
    def padding(self) -> int:
        """Return the number of rows of zeros on each side of an image."""
        return (self.taps - 1) // 2


Block = Mapping[str, Convolution]
"""A block's convolutions: `reduce`, `spatial`, `expand` and, where the shape changes, `shortcut`."""


def stem(sizes: Sizes) -> Convolution:
    """Return the first convolution, 7 x 7 with stride 2."""
    return Convolution("stem", COLOURS, sizes.width, 7, 2)


def blocks(sizes: Sizes) -> Iterator[Block]:
    """Yield the blocks of all stages; each stage has half the rows and twice the channels of the previous stage."""
    channels, number = sizes.width, 0
    for stage, count in enumerate(BLOCKS[sizes.depth]):
        for index in range(count):
            middle, prefix = sizes.width * 2**stage, f"block{number}"
            stride = 2 if index == 0 and stage > 0 else 1
            block = {
                "reduce": Convolution(f"{prefix}.reduce", channels, middle, 1),
                "spatial": Convolution(f"{prefix}.spatial", middle, middle, 3, stride),
                "expand": Convolution(f"{prefix}.expand", middle, EXPANSION * middle, 1),
            }
            if index == 0:  # this block changes the number of channels, so its input cannot be added as it is
                block["shortcut"] = Convolution(f"{prefix}.shortcut", channels, EXPANSION * middle, 1, stride)
            yield block
            channels, number = EXPANSION * middle, number + 1


def convolutions(sizes: Sizes) -> list[Convolution]:
    """Return all convolutions."""
    return [stem(sizes), *(convolution for block in blocks(sizes) for convolution in block.values())]


def features(sizes: Sizes) -> int:
    """Return the number of inputs of the linear layer: the channels after the last block."""
    last_stage = len(BLOCKS[sizes.depth]) - 1
    return int(sizes.width * 2**last_stage * EXPANSION)


def draw_weights(sizes: Sizes, rng: "Generator") -> dict[str, Array]:
    """Draw each convolution's kernel, with `.gain` and `.bias` of its normalisation, and the linear layer `head`."""
    weights = {}
    for conv in convolutions(sizes):
        # Standard deviation before a relu, by fan-out, as in torchvision (He and others 2015).
        scale = math.sqrt(2 / (conv.taps**2 * conv.outputs))
        weights[conv.name] = scale * rng.standard_normal((conv.taps, conv.taps, conv.inputs, conv.outputs))
        weights[f"{conv.name}.gain"] = 1 + 0.1 * rng.standard_normal(conv.outputs)
        weights[f"{conv.name}.bias"] = 0.1 * rng.standard_normal(conv.outputs)
    inputs = features(sizes)
    weights["head"] = rng.standard_normal((inputs, sizes.classes)) / math.sqrt(inputs)
    weights["head.bias"] = 0.1 * rng.standard_normal(sizes.classes)
    return weights


def train(
    weights: NamedArrays, batch: NamedArrays, sizes: Sizes, learning_rate: float, steps: int
) -> tuple[dict[str, Array], Array]:
    """Train on the same batch by SGD with momentum for `steps` steps; return the weights and the last loss."""
    import numpy as np

    trained = dict(weights)
    velocities = {name: np.zeros_like(weight) for name, weight in weights.items()}
    loss = np.zeros(())
    for _ in range(steps):
        loss, gradients = _loss_and_gradients(trained, batch, sizes)
        for name, gradient in gradients.items():
            velocities[name] = MOMENTUM * velocities[name] + gradient
            trained[name] = trained[name] - learning_rate * velocities[name]
    return trained, loss


def _loss_and_gradients(weights: NamedArrays, batch: NamedArrays, sizes: Sizes) -> tuple[Array, dict[str, Array]]:
    """Return the mean cross-entropy, and its gradients with respect to all weights, by name.

    A name `d_x` stands for the gradient of the loss with respect to x.
    """
    gradients: dict[str, Array] = {}
    x, backward_stem = _convolve_and_normalise(batch["images"], weights, stem(sizes), gradients, relu=True)
    x, backward_pool = _max_pool(x)
    backwards = [backward_stem, backward_pool]
    for block in blocks(sizes):
        x, backward = _apply_block(x, weights, block, gradients)
        backwards.append(backward)
    pooled = x.mean((1, 2))
    loss, d_logits = training.cross_entropy_and_gradient(
        pooled @ weights["head"] + weights["head.bias"], batch["labels"]
    )
    gradients |= {"head": pooled.T @ d_logits, "head.bias": d_logits.sum(0)}
    pixels = x.shape[1] * x.shape[2]
    d_x = (d_logits @ weights["head"].T / pixels)[:, None, None].repeat(x.shape[1], 1).repeat(x.shape[2], 2)
    for backward in reversed(backwards):
        d_x = backward(d_x)
    return loss, gradients


def _apply_block(x: Array, w: NamedArrays, block: Block, gradients: dict[str, Array]) -> tuple[Array, Backward]:
    """Apply a block's three convolutions, and add x, or the shortcut's output, before the last relu.

    Return the output, and a function that stores gradients with respect to weights in `gradients`.
    """
    y, backward_reduce = _convolve_and_normalise(x, w, block["reduce"], gradients, relu=True)
    y, backward_spatial = _convolve_and_normalise(y, w, block["spatial"], gradients, relu=True)
    y, backward_expand = _convolve_and_normalise(y, w, block["expand"], gradients, relu=False)
    shortcut, backward_shortcut = x, None
    if "shortcut" in block:
        shortcut, backward_shortcut = _convolve_and_normalise(x, w, block["shortcut"], gradients, relu=False)
    before_relu = y + shortcut

    def backward(d_out: Array) -> Array:
        """Return the gradient with respect to x, and store those of the block's weights."""
        d_before_relu = d_out * (before_relu > 0)
        d_x = backward_reduce(backward_spatial(backward_expand(d_before_relu)))
        return d_x + (backward_shortcut(d_before_relu) if backward_shortcut else d_before_relu)

    return before_relu.clip(min=0), backward


def _convolve_and_normalise(
    x: Array, weights: NamedArrays, conv: Convolution, gradients: dict[str, Array], *, relu: bool
) -> tuple[Array, Backward]:
    """Apply a convolution, batch normalisation by the batch's own statistics and, if `relu`, relu.

    Return the output, and a function that stores gradients with respect to weights in `gradients`.
    """
    import numpy as np

    kernel, gain = weights[conv.name], weights[f"{conv.name}.gain"]
    pixels = (0, 1, 2)  # the axes batch, rows, columns
    windows = _windows(x, conv.taps, conv.stride)
    convolved = np.tensordot(windows, kernel.transpose(2, 0, 1, 3), 3)
    deviation = convolved - convolved.mean(pixels)
    scale = 1 / np.sqrt((deviation**2).mean(pixels) + EPSILON)
    unit = deviation * scale
    out = unit * gain + weights[f"{conv.name}.bias"]

    def backward(d_out: Array) -> Array:
        """Return the gradient with respect to x, and store those of kernel, gain and bias."""
        d_normalised = d_out * (out > 0) if relu else d_out
        gradients[f"{conv.name}.gain"] = (d_normalised * unit).sum(pixels)
        gradients[f"{conv.name}.bias"] = d_normalised.sum(pixels)
        d_unit = d_normalised * gain
        # Shifting or scaling a channel does not change `unit`, so the gradient has no such part.
        d_convolved = scale * (d_unit - d_unit.mean(pixels) - unit * (d_unit * unit).mean(pixels))
        gradients[conv.name] = np.tensordot(windows, d_convolved, (pixels, pixels)).transpose(1, 2, 0, 3)
        if conv.name == "stem":
            return np.asanyarray(d_convolved)  # not used: images need no gradient
        spread = d_convolved
        if conv.stride > 1:  # put zeros between the pixels, where the stride skipped pixels
            rows, columns = ((np.arange(size) % conv.stride == 0) for size in x.shape[1:3])
            spread = d_convolved.repeat(conv.stride, 1)[:, : x.shape[1]].repeat(conv.stride, 2)[:, :, : x.shape[2]]
            spread = spread * (rows[:, None] & columns)[None, :, :, None]
        # The gradient of the input is a convolution with the mirrored kernel.
        mirrored = kernel[::-1, ::-1].transpose(3, 0, 1, 2)
        return np.asanyarray(np.tensordot(_windows(spread, conv.taps, 1), mirrored, 3))

    return (out.clip(min=0) if relu else out), backward


def _windows(x: Array, taps: int, stride: int, padding: float = 0.0) -> Array:
    """Return the pixels under the kernel for each output pixel: (batch, rows, columns, channels, taps, taps).

    Pixels outside the image are `padding`.
    """
    import numpy as np

    margin = (taps - 1) // 2
    padded = np.pad(x, ((0, 0), (margin, margin), (margin, margin), (0, 0)), constant_values=padding)
    windows: Array = np.lib.stride_tricks.sliding_window_view(padded, (taps, taps), (1, 2))
    return windows[:, ::stride, ::stride]


def _max_pool(x: Array) -> tuple[Array, Backward]:
    """Return the maximum of the 3 x 3 pixels around every second pixel, and the function for the gradient."""
    import numpy as np

    windows = _windows(x, POOL, POOL_STRIDE, -math.inf)
    pooled = windows.max((4, 5))

    def backward(d_out: Array) -> Array:
        """Return the gradient with respect to x: each pooled pixel's gradient goes to the maximum of its window."""
        margin, (rows, columns) = POOL // 2, pooled.shape[1:3]
        d_padded = np.zeros((len(x), x.shape[1] + 2 * margin, x.shape[2] + 2 * margin, x.shape[3]))
        given = np.zeros(pooled.shape, bool)  # True if a maximum has its gradient: of equal maxima, the first gets it
        for row in range(POOL):
            for column in range(POOL):
                is_maximum = (windows[..., row, column] == pooled) & ~given
                given |= is_maximum
                # The input pixels at this place of all windows.
                reached = slice(row, row + POOL_STRIDE * rows, POOL_STRIDE)
                d_padded[:, reached, column : column + POOL_STRIDE * columns : POOL_STRIDE] += d_out * is_maximum
        return d_padded[:, margin:-margin, margin:-margin]

    return pooled, backward


def tree(sizes: Sizes, leaf: Callable[[Convolution], Any], head: Any) -> dict[str, Any]:
    """Return a tree like the frameworks' models, with `leaf(convolution)` in place of each convolution.

    `head` takes the place of the linear layer.
    """
    of_blocks = {
        index: {name: leaf(convolution) for name, convolution in block.items()}
        for index, block in enumerate(blocks(sizes))
    }
    return {"stem": leaf(stem(sizes)), "blocks": of_blocks, "head": head}
