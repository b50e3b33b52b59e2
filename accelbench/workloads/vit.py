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
from accelbench.workloads import _vit as shared

if TYPE_CHECKING:
    from numpy.random import Generator

NUDGE = 1e-3
"""Share of the mean logit that a prediction adds to the images."""


class Vit(Workload):
    """Classify images: patches, a class token and positions, `layers` blocks, layer normalisation, a linear head.

    Rows 20 and 26 of the claims: compiling a ViT-Large takes "8+ seconds", and torch.compile makes training "1.3x to
    2x" as fast. A ViT-Large has 24 layers of width 1024 with 16 heads, for images of 224 x 224 in patches of 16 x 16
    (Dosovitskiy and others 2021, table 1). Layers are unrolled, or scanned as one. A step predicts, and adds a
    thousandth of the mean logit to the next step's images; or it trains, by SGD on the cross-entropy.
    """

    name = "vit"
    moves_once = True
    modes = {"jax": ("jit", "op-by-op"), "pytorch": ("eager", "compile")}
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
        def _patches_divide_the_image_and_heads_the_width(self) -> Self:
            if self.image % self.patch:
                raise ValueError("image must be a multiple of patch, because images are cut into whole patches")
            if self.width % self.heads:
                raise ValueError("width must be a multiple of heads, which divide it evenly")
            return self

        @property
        def tokens(self) -> int:
            """Return the number of tokens of an image: its patches and the class token."""
            return (self.image // self.patch) ** 2 + 1

        @property
        def numbers_per_patch(self) -> int:
            """Return how many numbers a patch has: one for each colour of each pixel."""
            return self.patch**2 * shared.COLOURS

    def measure(self, parameters: Parameters) -> Measure:
        """Request a comparison with the reference: of predictions after one step, of training after three.

        After three steps, every weight has clearly changed.
        """
        train = parameters.work == "train"
        return Measure(parity_units=3 if train else 1, differentiates=train)

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Draw images (batch, image, image, 3), all weights and, for training, labels.

        The state is what a step changes: the weights in training, the images in prediction.
        """
        p = parameters
        weights = {
            "embed": rng.standard_normal((p.numbers_per_patch, p.width)) / math.sqrt(p.numbers_per_patch),
            "token": 0.02 * rng.standard_normal((1, 1, p.width)),
            "positions": 0.02 * rng.standard_normal((p.tokens, p.width)),
            "gain": 1 + 0.02 * rng.standard_normal(p.width),
            "gain_bias": 0.02 * rng.standard_normal(p.width),
            "head": rng.standard_normal((p.width, p.classes)) / math.sqrt(p.width),
            **transformer.draw_weights(p.layers, p.width, rng),
        }
        images = rng.standard_normal((p.batch, p.image, p.image, shared.COLOURS))
        if p.work == "predict":
            return Arrays(state={"images": images}, batches=(weights,))
        return Arrays(state=weights, batches=({"images": images, "labels": rng.integers(p.classes, size=p.batch)},))

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """Train or predict in NumPy for `units` steps; return what the programs export."""
        import numpy as np

        if parameters.work == "predict":
            images = arrays.state["images"]
            logits: Array = np.zeros(())
            for _ in range(units):
                logits, _backward = shared.logits_vjp(images, arrays.batches[0], parameters)
                images = images + NUDGE * logits.mean()
            return {"images": images, "logits": logits}
        weights = dict(arrays.state)
        images, labels = arrays.batches[0]["images"], arrays.batches[0]["labels"]
        loss = np.zeros(())
        for _ in range(units):
            logits, backward = shared.logits_vjp(images, weights, parameters)
            loss, d_logits = training.cross_entropy_and_gradient(logits, labels)
            gradients = backward(d_logits)
            for name, weight in weights.items():
                # `pop` frees each gradient after its use: together those of a ViT-Large take gigabytes.
                weights[name] = weight - parameters.learning_rate * gradients.pop(name)
        return {**weights, "loss": loss}

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Count the operations of the matrix products and, for training, of the update; and the bytes that move.

        Prediction reads weights, reads and writes images, and writes logits. Training reads images, and reads and
        writes weights.
        """
        p = parameters
        # The embedding is a product with each patch, which is each token but the class token.
        embed = 2.0 * p.batch * p.width * (p.tokens - 1) * p.numbers_per_patch
        head = 2.0 * p.batch * p.width * p.classes
        blocks_and_head = head + p.layers * transformer.block_flops(p.batch, p.tokens, p.width)
        block_weights = p.width**2 * (4 + 2 * transformer.HIDDEN_RATIO)  # attention has 4 matrices, the perceptron 2
        weights = p.layers * block_weights + p.width * (p.numbers_per_patch + p.classes)
        images = p.batch * p.image**2 * shared.COLOURS
        if p.work == "predict":
            moved = weights + 2 * images + p.batch * p.classes
            return Cost(flops=embed + blocks_and_head, bytes=float(moved) * float_bytes)
        # Backward takes twice the products of forward, but once for the embedding: images need no gradient.
        forward_and_backward = 2 * embed + 3 * blocks_and_head
        update = 2.0 * weights
        return Cost(flops=forward_and_backward + update, bytes=float(2 * weights + images) * float_bytes)

    def operations(self, parameters: Parameters) -> Operations | None:
        """Count the matrix products of embedding and blocks, without those of attention.

        Attention may be one kernel; compilers may turn small products into sums.
        """
        p = parameters
        if min(p.batch * p.tokens, p.width) < SMALLEST_PRODUCT:
            return None
        in_blocks = p.layers * (transformer.PRODUCTS - 2)  # without attention's: scores, and the sum of values
        if p.work == "predict":
            return Operations(products=in_blocks + 1)
        # Backward has twice as many in blocks, but one for the embedding: images need no gradient.
        return Operations(products=3 * in_blocks + 2)

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Apply the blocks in a Python loop, which jit unrolls."""

        def apply_blocks(x: Any, blocks: Any) -> Any:
            """Return x after all blocks, one after another."""
            for weights in blocks:
                x = transformer.jax_block(x, weights, parameters.heads)
            return x

        return _jax_program(parameters, arrays, tools, apply_blocks, stacked=False)

    @variant("jax/jit-scanned")
    def jit_scanned(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compile one block, as the body of a scan over the stacked weights of all blocks."""
        import jax

        def apply_block(x: Any, weights: Any) -> tuple[Any, None]:
            """Return x after one block, and no output of the scan."""
            return transformer.jax_block(x, weights, parameters.heads), None

        def apply_blocks(x: Any, stacked_weights: Any) -> Any:
            """Return x after all blocks, by a scan over their weights."""
            x, _ = jax.lax.scan(apply_block, x, stacked_weights)
            return x

        program = _jax_program(parameters, arrays, tools, apply_blocks, stacked=True)
        if parameters.work == "train":  # as in jax/jit, a prediction donates no images
            return training.jit_donating(program)
        return replace(program, step=jax.jit(program.step), placed=True)

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Apply blocks of torch.nn in a Python loop; in training, torch.compile compiles all but the optimizer."""
        return _torch_program(parameters, arrays, tools)

    @variant("pytorch/compile-step", in_mode="compile")
    def torch_compile_step(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compile the optimizer's step too, unlike pytorch/compile; a prediction is the same in both."""
        return _torch_program(parameters, arrays, tools, "step")


def _jax_program(
    parameters: Vit.Parameters, arrays: Arrays, tools: Tools, apply_blocks: Any, *, stacked: bool
) -> Program:
    """Return a program that trains or, for `work: predict`, predicts.

    Weights are a list: first those outside the blocks, then those of each block or, if `stacked`, one entry with the
    stacked weights of all blocks. `apply_blocks` maps (x, weights of the blocks) to the next x.
    """
    import jax.numpy as jnp
    import optax

    def logits_of(w: Any, images: Any) -> Any:
        """Return the logits of the images, from the class token after all blocks."""
        outside, *blocks = w
        x = shared.patches(images, parameters.patch) @ outside["embed"]
        x = jnp.concatenate([jnp.repeat(outside["token"], len(x), 0), x], 1) + outside["positions"]
        x = apply_blocks(x, blocks[0] if stacked else blocks)
        return transformer.jax_normalise(x[:, 0], outside["gain"], outside["gain_bias"]) @ outside["head"]

    def split_and_put(weights: NamedArrays) -> Any:
        """Split the weights into those outside and inside the blocks, and place them on the device."""
        return tools.put(shared.split_stacked(weights) if stacked else shared.split_blocks(weights, parameters.layers))

    if parameters.work == "predict":
        return _prediction_program(arrays, tools, logits_of, split_and_put(arrays.batches[0]))

    def cross_entropy(w: Any, batch: Any) -> Any:
        logits = logits_of(w, batch["images"])
        return optax.softmax_cross_entropy_with_integer_labels(logits, batch["labels"]).mean()

    weights, optimizer = split_and_put(arrays.state), optax.sgd(parameters.learning_rate)

    def export(state: Any, loss: Any) -> dict[str, Any]:
        """Return the weights by the names that `reference` uses, and the loss."""
        weights, _optimizer_state = state
        if stacked:
            outside, stacked_blocks = weights
            return {**outside, **stacked_blocks, "loss": loss}
        return {**shared.stack_blocks(weights, jnp.stack), "loss": loss}

    return Program(
        state=(weights, optimizer.init(weights)),
        step=training.optax_step(cross_entropy, optimizer),
        batches=tools.put(arrays.batches),
        donate=True,
        export=export,
    )


def _torch_program(parameters: Vit.Parameters, arrays: Arrays, tools: Tools, part: training.Part = "loss") -> Program:
    """Return a program with torch.nn that trains or, for `work: predict`, predicts.

    `part` is what runs in the variant's mode in a training, as in `torch_program`; in a prediction, the whole step.
    """
    import torch

    predict = parameters.work == "predict"
    weights = tools.put(shared.split_blocks(arrays.batches[0] if predict else arrays.state, parameters.layers))
    model = _torch_model_class()(weights, parameters)
    if predict:
        program = _prediction_program(arrays, tools, logits_of=lambda model, images: model(images), weights=model)
        return replace(program, step=tools.in_mode(program.step), placed=True)

    def cross_entropy(model: Any, batch: Any) -> Any:
        return torch.nn.functional.cross_entropy(model(batch["images"]), batch["labels"])

    def export_weights(tensors: training.Tensors) -> dict[str, Any]:
        """Return the model's tensors by the names that `reference` uses."""
        outside = {
            "embed": tensors["embed.weight"].T,
            "token": tensors["token"],
            "positions": tensors["positions"],
            "gain": tensors["gain.weight"],
            "gain_bias": tensors["gain.bias"],
            "head": tensors["head.weight"].T,
        }
        blocks = [transformer.torch_block_weights(tensors, f"blocks.{layer}") for layer in range(parameters.layers)]
        return shared.stack_blocks([outside, *blocks], torch.stack)

    batches = tools.put(arrays.batches)
    return training.torch_program(model, cross_entropy, parameters.learning_rate, batches, export_weights, tools, part)


@cache
def _torch_model_class() -> Any:
    """Return the class of the model, created once, as torch.compile would compile a second class again."""
    import torch

    class Model(torch.nn.Module):  # type: ignore[misc]
        def __init__(self, weights: Any, parameters: Vit.Parameters) -> None:
            """Create the layers from a list of weights: those outside the blocks, then those of each block."""
            super().__init__()
            outside, *blocks = weights
            self.patch = parameters.patch
            self.embed = transformer.torch_linear(outside["embed"])
            self.token = torch.nn.Parameter(outside["token"])
            self.positions = torch.nn.Parameter(outside["positions"])
            self.blocks = torch.nn.ModuleList(transformer.torch_block(block, parameters.heads) for block in blocks)
            self.gain = transformer.torch_normalisation(outside["gain"], outside["gain_bias"])
            self.head = transformer.torch_linear(outside["head"])

        def forward(self, images: Any) -> Any:
            """Return the logits of the images, from the class token after all blocks."""
            x = self.embed(shared.patches(images, self.patch))
            x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.positions  # the class token comes first
            for block in self.blocks:
                x = block(x)
            return self.head(self.gain(x[:, 0]))

    return Model


def _prediction_program(arrays: Arrays, tools: Tools, logits_of: Callable[[Any, Any], Any], weights: Any) -> Program:
    """Return a program whose state is the images; the weights stay the same. `logits_of` takes weights and images.

    Each step changes the images a little, so that no step repeats another.
    """

    def step(images: Any, w: Any) -> tuple[Any, Any]:
        """Predict; return slightly changed images as the next state, and the logits."""
        logits = logits_of(w, images)
        return images + NUDGE * logits.mean(), logits

    return Program(
        state=tools.put(arrays.state["images"]),
        step=step,
        batches=(weights,),
        export=lambda images, logits: {"images": images, "logits": logits},
    )
