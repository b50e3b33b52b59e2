"""Compile, run and train a vision transformer, a deep network of equal layers."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, model_validator

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
from accelbench.workloads import _transformer as transformer

if TYPE_CHECKING:
    from numpy.random import Generator

COLOURS = 3
NUDGE = 1e-3
OUTSIDE = ("embed", "token", "positions", "gain", "gain_bias", "head")
"""Weights outside the blocks."""


class Vit(Workload):
    """Classify images: patches, a class token and positions, `layers` blocks, layer normalisation, a linear head.

    Rows 20 and 26 of the claims: compiling a ViT-Large takes "8+ seconds", which has 24 layers of width 1024 with 16
    heads on images of 224 x 224 in patches of 16 x 16 (Dosovitskiy and others 2021, table 1), and torch.compile is said
    to make training "1.3x to 2x" as fast. Layers are unrolled, or scanned as one. A step predicts, and adds a
    thousandth of the mean logit to the next step's images; or it trains, by SGD on the cross-entropy.
    """

    name = "vit"
    moves_once = True
    modes = {"jax": ("jit", "op-by-op"), "pytorch": ("eager",)}
    libraries = {"jax": ("optax",)}

    class Parameters(WorkloadParameters):
        """Describe the network and the batch, and choose training or prediction; by default ViT-Large on one image."""

        layers: int = Field(default=24, ge=1, le=200, description="Blocks.")
        width: int = Field(default=1024, ge=1, le=16_384, description="Features of each token.")
        heads: int = Field(default=16, ge=1, le=256, description="Attention heads, which divide the width.")
        image: int = Field(default=224, ge=1, le=4096, description="Rows and columns of an image.")
        patch: int = Field(default=16, ge=1, le=512, description="Rows and columns of a patch.")
        classes: int = Field(default=1000, ge=1, le=100_000, description="Logits of an image.")
        batch: int = Field(default=1, ge=1, le=65_536, description="Images in a step.")
        learning_rate: float = Field(default=0.01, gt=0, le=10, description="Step of the gradient descent.")
        work: Literal["predict", "train"] = Field(
            default="predict", description="predict: the forward pass alone; train: loss, gradients and update."
        )

        @model_validator(mode="after")
        def _whole_patches_and_heads(self) -> Self:
            if self.image % self.patch:
                raise ValueError("image must be a multiple of patch, because images are cut into whole patches")
            if self.width % self.heads:
                raise ValueError("width must be a multiple of heads, which divide it evenly")
            return self

        @property
        def tokens(self) -> int:
            """Return the number of patches and the class token."""
            return (self.image // self.patch) ** 2 + 1

        @property
        def pixels(self) -> int:
            """Return the numbers in a patch."""
            return self.patch**2 * COLOURS

    def measure(self, parameters: Parameters) -> Measure:
        """Compare after three steps of training, which move every weight by more than rounding does."""
        train = parameters.work == "train"
        return Measure(parity_units=3 if train else 1, differentiates=train)

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Draw images (batch, image, image, 3), all weights, stacked for the blocks, and to train labels (batch,)."""
        p = parameters
        weights = {
            "embed": rng.standard_normal((p.pixels, p.width)) / math.sqrt(p.pixels),
            "token": 0.02 * rng.standard_normal((1, 1, p.width)),
            "positions": 0.02 * rng.standard_normal((p.tokens, p.width)),
            "gain": 1 + 0.02 * rng.standard_normal(p.width),
            "gain_bias": 0.02 * rng.standard_normal(p.width),
            "head": rng.standard_normal((p.width, p.classes)) / math.sqrt(p.width),
            **transformer.draw(p.layers, p.width, rng),
        }
        images = rng.standard_normal((p.batch, p.image, p.image, COLOURS))
        if p.work == "predict":
            return Arrays(state={"images": images}, batches=(weights,))
        return Arrays(state=weights, batches=({"images": images, "labels": rng.integers(p.classes, size=p.batch)},))

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """Compute the same in NumPy, with the chain rule by hand."""
        import numpy as np

        if parameters.work == "predict":
            images = arrays.state["images"]
            logits: Array = np.zeros(())
            for _ in range(units):
                logits, _back = _logits_vjp(images, arrays.batches[0], parameters)
                images = images + NUDGE * logits.mean()
            return {"images": images, "logits": logits}
        weights = dict(arrays.state)
        images, labels = arrays.batches[0]["images"], arrays.batches[0]["labels"]
        loss = np.zeros(())
        for _ in range(units):
            logits, back = _logits_vjp(images, weights, parameters)
            loss, d_logits = training.cross_entropy_and_gradient(logits, labels)
            gradients = back(d_logits)
            for name, weight in weights.items():  # one at a time: those of a ViT-Large are gigabytes
                weights[name] = weight - parameters.learning_rate * gradients.pop(name)
        return {**weights, "loss": loss}

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Count the products, threefold to train, without gradients of images; weights, images and logits move once.

        Trained weights are read and written, and updated by two operations a number.
        """
        p = parameters
        embed = 2.0 * p.batch * p.width * (p.tokens - 1) * p.pixels
        others = 2.0 * p.batch * p.width * p.classes
        others += p.layers * transformer.block_flops(p.batch, p.tokens, p.width)
        weights = p.layers * p.width**2 * (4 + 2 * transformer.WIDER) + p.width * (p.pixels + p.classes)
        images = p.batch * p.image**2 * COLOURS
        if p.work == "predict":
            return Cost(flops=embed + others, bytes=float(weights + 2 * images + p.batch * p.classes) * float_bytes)
        return Cost(flops=2 * embed + 3 * others + 2.0 * weights, bytes=float(2 * weights + images) * float_bytes)

    def operations(self, parameters: Parameters) -> Operations | None:
        """Count the blocks' products, without attention, which may be one kernel, and without tiny products."""
        p = parameters
        if min(p.batch * p.tokens, p.width) < SMALLEST_PRODUCT:
            return None
        blocks = p.layers * (transformer.PRODUCTS - 2)
        return Operations(products=blocks + 1 if p.work == "predict" else 3 * blocks + 2)

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Loop over the layers in Python, which jit unrolls."""

        def through(x: Any, blocks: Any) -> Any:
            for weights in blocks:
                x = transformer.jax_block(x, weights, parameters.heads)
            return x

        return _jax_program(parameters, arrays, tools, through, stacked=False)

    @variant("jax/jit-scanned")
    def jit_scanned(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compile one layer, in a loop over stacked weights."""
        import jax

        def through(x: Any, blocks: Any) -> Any:
            layer = lambda x, weights: (transformer.jax_block(x, weights, parameters.heads), None)  # noqa: E731
            return jax.lax.scan(layer, x, blocks)[0]

        program = _jax_program(parameters, arrays, tools, through, stacked=True)
        if parameters.work == "train":
            return training.jit_donating(program)
        return replace(program, step=jax.jit(program.step), placed=True)

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Loop over the layers."""
        return _torch_program(parameters, arrays, tools)

    @variant("pytorch/compile")
    def torch_compile(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compile the step with torch.compile; for training, forward pass and loss, and an eager optimizer."""
        return _torch_program(parameters, arrays, tools, "loss")

    @variant("pytorch/compile-step")
    def torch_compile_step(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compile the optimizer's step as well; for prediction, the same as pytorch/compile."""
        return _torch_program(parameters, arrays, tools, "step")


def _patches(images: Any, patch: int) -> Any:
    """Return each patch as one row, (batch, patches, patch * patch * 3), for arrays of any framework."""
    batch, side = len(images), images.shape[1] // patch
    cut = images.reshape(batch, side, patch, side, patch, COLOURS).swapaxes(2, 3)
    return cut.reshape(batch, side * side, patch * patch * COLOURS)


def _logits_vjp(
    images: Array, w: NamedArrays, parameters: Vit.Parameters
) -> tuple[Array, Callable[[Array], dict[str, Array]]]:
    """Compute logits in NumPy, and a function from their gradient to those of the weights.

    Only the input of each block is kept; the rest is recomputed in the backward pass.
    """
    import numpy as np

    patches = _patches(images, parameters.patch)
    outside, *blocks = _split_blocks(w, parameters.layers)
    x = np.concatenate([np.repeat(w["token"], len(images), 0), patches @ w["embed"]], 1) + w["positions"]
    given = []
    for block in blocks:
        given.append(x)
        x = transformer.block(x, block, parameters.heads)
    last, back_to_token = transformer.normalised_vjp(x[:, 0], w["gain"], w["gain_bias"])

    def back_to_weights(d_logits: Array) -> dict[str, Array]:
        by_weight = {"head": last.T @ d_logits, **{name: np.empty_like(w[name]) for name in w if name not in OUTSIDE}}
        d_token, by_weight["gain"], by_weight["gain_bias"] = back_to_token(d_logits @ w["head"].T)
        d_x = np.zeros_like(x)
        d_x[:, 0] = d_token
        for layer in reversed(range(parameters.layers)):
            d_x, gradients = transformer.block_vjp(given[layer], blocks[layer], parameters.heads)[1](d_x)
            for name, gradient in gradients.items():
                by_weight[name][layer] = gradient
        by_weight["embed"] = np.tensordot(patches, d_x[:, 1:], ((0, 1), (0, 1)))
        return by_weight | {"token": d_x[:, :1].sum(0, keepdims=True), "positions": d_x.sum(0)}

    return last @ outside["head"], back_to_weights


def _split_blocks(weights: NamedArrays, layers: int) -> list[dict[str, Array]]:
    """Return the weights outside the blocks, then each block's."""
    outside, blocks = _split_stacked(weights)
    return [outside, *(transformer.block_weights(blocks, layer) for layer in range(layers))]


def _split_stacked(weights: NamedArrays) -> list[dict[str, Array]]:
    """Return the weights outside the blocks, and the stacked weights of all blocks."""
    return [
        {name: weights[name] for name in OUTSIDE},
        {name: weights[name] for name in weights if name not in OUTSIDE},
    ]


def _join_stacked(apart: Any, stack: Callable[[list[Any]], Any]) -> dict[str, Any]:
    """Join what `_in_two` separates."""
    outside, *blocks = apart
    return {**outside, **{name: stack([block[name] for block in blocks]) for name in blocks[0]}}


def _jax_program(parameters: Vit.Parameters, arrays: Arrays, tools: Tools, through: Any, *, stacked: bool) -> Program:
    import jax.numpy as jnp
    import optax

    def logits_of(w: Any, images: Any) -> Any:
        outside, *blocks = w
        x = _patches(images, parameters.patch) @ outside["embed"]
        x = jnp.concatenate([jnp.repeat(outside["token"], len(x), 0), x], 1) + outside["positions"]
        x = through(x, blocks[0] if stacked else blocks)
        return transformer.jax_normalised(x[:, 0], outside["gain"], outside["gain_bias"]) @ outside["head"]

    def placed(weights: NamedArrays) -> Any:
        return tools.put(_split_stacked(weights) if stacked else _split_blocks(weights, parameters.layers))

    if parameters.work == "predict":
        return _prediction_program(arrays, tools, logits_of, placed(arrays.batches[0]))

    def cross_entropy(w: Any, batch: Any) -> Any:
        logits = logits_of(w, batch["images"])
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch["labels"]).mean()

    weights, optimizer = placed(arrays.state), optax.sgd(parameters.learning_rate)

    def export(state: Any, loss: Any) -> dict[str, Any]:
        outside, *blocks = state[0]
        return {**(outside | blocks[0] if stacked else _join_stacked(state[0], jnp.stack)), "loss": loss}

    return Program(
        state=(weights, optimizer.init(weights)),
        step=training.optax_step(cross_entropy, optimizer),
        batches=tools.put(arrays.batches),
        donate=True,
        export=export,
    )


def _torch_program(
    parameters: Vit.Parameters, arrays: Arrays, tools: Tools, compiled: training.Compiled = "nothing"
) -> Program:
    import torch

    predict = parameters.work == "predict"
    weights = tools.put(_split_blocks(arrays.batches[0] if predict else arrays.state, parameters.layers))
    model = _torch_model()(weights, parameters)
    if predict:
        program = _prediction_program(arrays, tools, lambda model, images: model(images), model)
        return program if compiled == "nothing" else replace(program, step=torch.compile(program.step), placed=True)

    def cross_entropy(model: Any, batch: Any) -> Any:
        return torch.nn.functional.cross_entropy(model(batch["images"]), batch["labels"])

    def exported(trained: training.Tensors) -> dict[str, Any]:
        names = ("embed.weight", "token", "positions", "last.weight", "last.bias", "head.weight")
        outside = dict(zip(OUTSIDE, (trained[name] for name in names), strict=True))
        outside |= {name: outside[name].T for name in ("embed", "head")}
        blocks = (transformer.torch_block_weights(trained, f"blocks.{layer}") for layer in range(parameters.layers))
        return _join_stacked([outside, *blocks], torch.stack)

    batches = tools.put(arrays.batches)
    return training.torch_program(model, cross_entropy, parameters.learning_rate, batches, exported, compiled)


@cache
def _torch_model() -> Any:
    """Create the model's class once, because torch.compile compiles again for another class."""
    import torch

    class Model(torch.nn.Module):  # type: ignore[misc]
        def __init__(self, weights: Any, parameters: Vit.Parameters) -> None:
            super().__init__()
            outside, *blocks = weights
            self.patch = parameters.patch
            self.embed = transformer.torch_linear(outside["embed"])
            self.token = torch.nn.Parameter(outside["token"])
            self.positions = torch.nn.Parameter(outside["positions"])
            self.blocks = torch.nn.ModuleList(transformer.torch_block(each, parameters.heads) for each in blocks)
            self.last = transformer.torch_normalisation(outside["gain"], outside["gain_bias"])
            self.head = transformer.torch_linear(outside["head"])

        def forward(self, images: Any) -> Any:
            x = self.embed(_patches(images, self.patch))
            x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.positions
            for block in self.blocks:
                x = block(x)
            return self.head(self.last(x[:, 0]))

    return Model


def _prediction_program(arrays: Arrays, tools: Tools, logits_of: Callable[[Any, Any], Any], weights: Any) -> Program:
    def step(images: Any, w: Any) -> tuple[Any, Any]:
        logits = logits_of(w, images)
        return images + NUDGE * logits.mean(), logits

    return Program(
        state=tools.put(arrays.state["images"]),
        step=step,
        batches=(weights,),
        export=lambda images, logits: {"images": images, "logits": logits},
    )
