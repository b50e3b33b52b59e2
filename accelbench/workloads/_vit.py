"""Share the parts of vit's programs: patches, the division of the weights into blocks, and the logits in NumPy."""

from collections.abc import Callable
from typing import Any

from accelbench.workload import Array, NamedArrays
from accelbench.workloads import _transformer as transformer

COLOURS = 3
OUTSIDE = ("embed", "token", "positions", "gain", "gain_bias", "head")
"""Weights outside the blocks."""


def patches(images: Any, patch: int) -> Any:
    """Return images (batch, side, side, 3) as rows of patches: (batch, patches, patch * patch * 3).

    `patch` is the number of rows and columns of a patch.
    """
    batch, patches_per_side = len(images), images.shape[1] // patch
    grid = images.reshape(batch, patches_per_side, patch, patches_per_side, patch, COLOURS).swapaxes(2, 3)
    return grid.reshape(batch, patches_per_side * patches_per_side, patch * patch * COLOURS)


def logits_vjp(images: Array, w: NamedArrays, parameters: Any) -> tuple[Array, Callable[[Array], dict[str, Array]]]:
    """Return logits (batch, classes) of images in NumPy, and the function `backward` for gradients of the weights `w`.

    `parameters` are those of the workload vit. To save memory, `backward` computes each block again. A name `d_x`
    stands for the gradient of the loss with respect to x.
    """
    import numpy as np

    patches_of_images = patches(images, parameters.patch)
    outside, *blocks = split_blocks(w, parameters.layers)
    class_tokens = np.repeat(w["token"], len(images), 0)  # the first token of each image
    x = np.concatenate([class_tokens, patches_of_images @ w["embed"]], 1) + w["positions"]
    block_inputs = []
    for block in blocks:
        block_inputs.append(x)
        x = transformer.block(x, block, parameters.heads)
    class_token, normalise_backward = transformer.normalise_vjp(x[:, 0], w["gain"], w["gain_bias"])

    def backward(d_logits: Array) -> dict[str, Array]:
        """Return the gradients with respect to all weights, by name, from the gradient with respect to the logits."""
        gradients: dict[str, Array] = {name: np.empty_like(w[name]) for name in w if name not in OUTSIDE}
        gradients["head"] = class_token.T @ d_logits
        d_class_token, gradients["gain"], gradients["gain_bias"] = normalise_backward(d_logits @ w["head"].T)
        d_x = np.zeros_like(x)
        d_x[:, 0] = d_class_token
        for layer in reversed(range(parameters.layers)):
            _out, block_backward = transformer.block_vjp(block_inputs[layer], blocks[layer], parameters.heads)
            d_x, block_gradients = block_backward(d_x)
            for name, gradient in block_gradients.items():
                gradients[name][layer] = gradient
        gradients["embed"] = np.tensordot(patches_of_images, d_x[:, 1:], ((0, 1), (0, 1)))
        gradients["token"] = d_x[:, :1].sum(0, keepdims=True)
        gradients["positions"] = d_x.sum(0)
        return gradients

    return class_token @ outside["head"], backward


def split_blocks(weights: NamedArrays, layers: int) -> list[dict[str, Array]]:
    """Return a list: first the weights outside the blocks, then the weights of each block, all by name."""
    outside, stacked = split_stacked(weights)
    return [outside, *(transformer.block_weights(stacked, layer) for layer in range(layers))]


def split_stacked(weights: NamedArrays) -> list[dict[str, Array]]:
    """Return a list of two: the weights outside the blocks, and the stacked weights of all blocks, by name."""
    return [
        {name: weights[name] for name in OUTSIDE},
        {name: weights[name] for name in weights if name not in OUTSIDE},
    ]


def stack_blocks(outside_and_blocks: Any, stack: Callable[[list[Any]], Any]) -> dict[str, Any]:
    """Invert `split_blocks`: stack the weights of the blocks by `stack`, and return all weights by name."""
    outside, *blocks = outside_and_blocks
    return {**outside, **{name: stack([block[name] for block in blocks]) for name in blocks[0]}}
