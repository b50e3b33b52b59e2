"""A vision transformer: how long a deep network of equal layers takes to compile, and to run."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, model_validator

from accelbench.workload import (
    SMALLEST_PRODUCT,
    Array,
    Arrays,
    Cost,
    NamedArrays,
    Operations,
    Program,
    Tools,
    Workload,
    WorkloadParameters,
    variant,
)
from accelbench.workloads import _transformer as transformer

if TYPE_CHECKING:
    from numpy.random import Generator

COLOURS = 3
NUDGE = 1e-3


class Vit(Workload):
    """Logits of images: patches, a class token and positions, `layers` blocks, layer normalisation, a linear head.

    Row 20 of the claims: compiling a ViT-Large takes "8+ seconds"; that is 24 layers of width 1024 with 16 heads on
    images of 224 x 224 in patches of 16 x 16 (Dosovitskiy and others 2021, table 1). Layers are unrolled, or scanned as
    one. One step is a forward pass; the next one's images are these and a thousandth of the mean logit.
    """

    name = "vit"
    moves_once = True
    modes = {"jax": ("jit", "op-by-op"), "pytorch": ("eager", "compile")}

    class Parameters(WorkloadParameters):
        """The network and the batch; the defaults are ViT-Large on one image."""

        layers: int = Field(default=24, ge=1, le=200, description="Blocks.")
        width: int = Field(default=1024, ge=1, le=16_384, description="Numbers for each token.")
        heads: int = Field(default=16, ge=1, le=256, description="Of attention; they share the width.")
        image: int = Field(default=224, ge=1, le=4096, description="Rows and columns of an image.")
        patch: int = Field(default=16, ge=1, le=512, description="Rows and columns of a patch.")
        classes: int = Field(default=1000, ge=1, le=100_000, description="Logits of an image.")
        batch: int = Field(default=1, ge=1, le=65_536, description="Images in a step.")

        @model_validator(mode="after")
        def _whole_patches_and_heads(self) -> Self:
            if self.image % self.patch:
                raise ValueError("image must be a multiple of patch: an image is cut into whole patches")
            if self.width % self.heads:
                raise ValueError("width must be a multiple of heads: heads share it evenly")
            return self

        @property
        def tokens(self) -> int:
            """Patches of an image, and the class token."""
            return (self.image // self.patch) ** 2 + 1

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Images (batch, image, image, 3) as state; all weights as the batch, those of the blocks stacked."""
        p = parameters
        pixels = p.patch**2 * COLOURS
        weights = {
            "embed": rng.standard_normal((pixels, p.width)) / math.sqrt(pixels),
            "token": 0.02 * rng.standard_normal((1, 1, p.width)),
            "positions": 0.02 * rng.standard_normal((p.tokens, p.width)),
            "gain": 1 + 0.02 * rng.standard_normal(p.width),
            "gain_bias": 0.02 * rng.standard_normal(p.width),
            "head": rng.standard_normal((p.width, p.classes)) / math.sqrt(p.width),
            **transformer.draw(p.layers, p.width, rng),
        }
        images = rng.standard_normal((p.batch, p.image, p.image, COLOURS))
        return Arrays(state={"images": images}, batches=(weights,))

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """The same in NumPy."""
        import numpy as np

        images, w = arrays.state["images"], arrays.batches[0]
        blocks = {name: w[name] for name in w if name not in OUTSIDE}
        logits: Array = np.zeros(())
        for _ in range(units):
            x = _patches(images, parameters) @ w["embed"]
            x = np.concatenate([np.repeat(w["token"], len(x), 0), x], 1) + w["positions"]
            for layer in range(parameters.layers):
                x = transformer.block(x, transformer.one(blocks, layer), parameters.heads)
            logits = transformer.normalised(x[:, 0], w["gain"], w["gain_bias"]) @ w["head"]
            images = images + NUDGE * logits.mean()
        return {"images": images, "logits": logits}

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """The products; weights, images and logits once through memory."""
        p = parameters
        pixels = p.patch**2 * COLOURS
        ends = 2.0 * p.batch * p.width * ((p.tokens - 1) * pixels + p.classes)
        weights = p.layers * p.width**2 * (4 + 2 * transformer.WIDER) + p.width * (pixels + p.classes)
        moved = weights + 2 * p.batch * p.image**2 * COLOURS + p.batch * p.classes
        flops = ends + p.layers * transformer.block_flops(p.batch, p.tokens, p.width)
        return Cost(flops=flops, bytes=float(moved) * float_bytes)

    def operations(self, parameters: Parameters) -> Operations | None:
        """Of the blocks, but for attention, which may be one kernel; none that a compiler would turn into sums."""
        p = parameters
        if min(p.batch * p.tokens, p.width) < SMALLEST_PRODUCT:
            return None
        return Operations(products=p.layers * (transformer.PRODUCTS - 2) + 1)

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Layer after layer in a Python loop, which jit unrolls."""

        def through(x: Any, blocks: Any) -> Any:
            for weights in blocks:
                x = transformer.jax_block(x, weights, parameters.heads)
            return x

        return _jax_program(parameters, arrays, tools, through, stacked=False)

    @variant("jax/jit-scanned")
    def jit_scanned(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """One layer, compiled once, in a loop over stacked weights."""
        import jax

        def through(x: Any, blocks: Any) -> Any:
            layer = lambda x, weights: (transformer.jax_block(x, weights, parameters.heads), None)  # noqa: E731
            return jax.lax.scan(layer, x, blocks)[0]

        program = _jax_program(parameters, arrays, tools, through, stacked=True)
        return replace(program, step=jax.jit(program.step), placed=True)

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Layer after layer."""
        import torch

        def step(images: Any, w: Any) -> tuple[Any, Any]:
            x = _patches(images, parameters) @ w["embed"]
            x = torch.cat([w["token"].expand(len(x), -1, -1), x], 1) + w["positions"]
            for weights in w["blocks"]:
                x = transformer.torch_block(x, weights, parameters.heads)
            logits = transformer.torch_normalised(x[:, 0], w["gain"], w["gain_bias"]) @ w["head"]
            return images + NUDGE * logits.mean(), logits

        return _program(parameters, arrays, tools, torch.no_grad()(step), stacked=False)


OUTSIDE = ("embed", "token", "positions", "gain", "gain_bias", "head")
"""The weights that are no block's."""


def _patches(images: Any, parameters: Vit.Parameters) -> Any:
    """Each patch as one row: (batch, patches, patch * patch * 3); of arrays of any framework."""
    batch, side, patch = len(images), parameters.image // parameters.patch, parameters.patch
    cut = images.reshape(batch, side, patch, side, patch, COLOURS).swapaxes(2, 3)
    return cut.reshape(batch, side * side, patch * patch * COLOURS)


def _jax_program(parameters: Vit.Parameters, arrays: Arrays, tools: Tools, through: Any, *, stacked: bool) -> Program:
    import jax.numpy as jnp

    def step(images: Any, w: Any) -> tuple[Any, Any]:
        x = _patches(images, parameters) @ w["embed"]
        x = jnp.concatenate([jnp.repeat(w["token"], len(x), 0), x], 1) + w["positions"]
        x = through(x, w["blocks"])
        logits = transformer.jax_normalised(x[:, 0], w["gain"], w["gain_bias"]) @ w["head"]
        return images + NUDGE * logits.mean(), logits

    return _program(parameters, arrays, tools, step, stacked=stacked)


def _program(parameters: Vit.Parameters, arrays: Arrays, tools: Tools, step: Any, *, stacked: bool) -> Program:
    weights = arrays.batches[0]
    blocks = {name: weights[name] for name in weights if name not in OUTSIDE}
    by_layer = [transformer.one(blocks, layer) for layer in range(parameters.layers)]
    placed = tools.put({**{name: weights[name] for name in OUTSIDE}, "blocks": blocks if stacked else by_layer})
    return Program(
        state=tools.put(arrays.state["images"]),
        step=step,
        batches=(placed,),
        export=lambda images, logits: {"images": images, "logits": logits},
    )
