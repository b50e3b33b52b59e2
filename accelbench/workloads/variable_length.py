"""Sequences of several lengths: a program for each, padding to few lengths, or a program for all."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from accelbench.workload import (
    Array,
    Arrays,
    Cost,
    Measure,
    NamedArrays,
    Program,
    Tools,
    Workload,
    WorkloadParameters,
    variant,
)
from accelbench.workloads import _transformer as transformer

if TYPE_CHECKING:
    from numpy.random import Generator

LENGTHS = (128, 256, 512, 77)
"""The article's two, one longer, and the one that is no power of two."""
LAYERS, HEADS = 2, 4


class VariableLength(Workload):
    """The mean over the tokens after two transformer blocks, for texts of 128, 256, 512 and 77 tokens by turns.

    Rows 22 and 23 of the claims: "pass in a batch with sequence length 128, JAX compiles for that shape. Next batch is
    256? Recompile", of which PyTorch is said to have less. Lengths as they are, padded to the longest, or to the next
    power of two (a bucket), with padding masked; torch.compile as it comes, or with its option `dynamic`. What is
    timed is one pass over all texts, compiling included and the padding itself not; or the same pass is observed.
    Each text has the mean of the one before added to all its tokens.
    """

    name = "variable-length"
    moves_once = True
    modes = {"jax": ("jit", "op-by-op"), "pytorch": ("eager", "compile")}
    observes = {
        "paddingShare": "Tokens that are padding, of all that are computed.",
        "shapes": "Distinct lengths that the program is given.",
    }

    class Parameters(WorkloadParameters):
        """The texts, and what is asked."""

        passes: int = Field(default=2, ge=1, le=1000, description="How often each of the four lengths comes.")
        shortening: int = Field(default=1, ge=1, le=8, description="All lengths are divided by this.")
        batch: int = Field(default=4, ge=1, le=4096, description="Texts in a call, all of one length.")
        width: int = Field(default=64, ge=4, le=8192, multiple_of=HEADS, description="Numbers for each token.")
        asks: Literal["time", "compilations"] = Field(
            default="time", description="time: of one pass, compiling included; compilations: what each call compiles."
        )

    def measure(self, parameters: Parameters) -> Measure:
        """One ordered pass, timed or looked at."""
        return Measure(protocol="episode" if parameters.asks == "time" else "observe", unit="call")

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Zeros for the mean (batch, width); weights with the first text, texts (batch, length, width)."""
        import numpy as np

        p = parameters
        lengths = [length // p.shortening for length in LENGTHS] * p.passes
        weights = transformer.draw(LAYERS, p.width, rng)
        texts = [{"text": rng.standard_normal((p.batch, length, p.width))} for length in lengths]
        return Arrays(state={"mean": np.zeros((p.batch, p.width))}, batches=[{**texts[0], **weights}, *texts[1:]])

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """The same in NumPy, without any padding."""
        del parameters
        mean = arrays.state["mean"]
        first = arrays.batches[0]
        weights = {name: first[name] for name in first if name != "text"}
        for unit in range(units):
            x = arrays.batches[unit % len(arrays.batches)]["text"] + mean[:, None]
            for layer in range(LAYERS):
                x = transformer.block(x, transformer.one(weights, layer), HEADS)
            mean = x.mean(1)
        return {"mean": mean}

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Of a call on average, without padding: the blocks' products; text and weights once through memory."""
        p = parameters
        lengths = [length // p.shortening for length in LENGTHS]
        flops = sum(LAYERS * transformer.block_flops(p.batch, length, p.width) for length in lengths) / len(lengths)
        weights = LAYERS * p.width**2 * (4 + 2 * transformer.WIDER)
        text = p.batch * p.width * sum(lengths) / len(lengths)
        return Cost(flops=flops, bytes=(weights + text) * float_bytes)

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Every length as it is."""

        def step(mean: Any, batch: Any) -> tuple[Any, Any]:
            text, blocks = batch
            x = text + mean[:, None]
            for weights in blocks:
                x = transformer.jax_block(x, weights, HEADS)
            mean = x.mean(1)
            return mean, mean

        del parameters
        return _exact(arrays, tools, step, lambda block: block)

    @variant("jax/jit-padded")
    def jit_padded(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Every text padded to the longest."""
        longest = max(LENGTHS) // parameters.shortening
        return _padded(arrays, tools, lambda _: longest)

    @variant("jax/jit-bucketed")
    def jit_bucketed(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Every text padded to the next power of two."""
        del parameters
        return _padded(arrays, tools, lambda length: 2 ** math.ceil(math.log2(length)))

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Every length as it is; torch.compile takes the second length for a reason to make it a symbol."""
        del parameters

        def step(mean: Any, batch: Any) -> tuple[Any, Any]:
            text, blocks = batch
            x = text + mean[:, None]
            for block in blocks:
                x = block(x)
            mean = x.mean(1)
            return mean, mean

        return _exact(arrays, tools, step, lambda weights: transformer.torch_block(weights, HEADS))


def _texts_and_blocks(arrays: Arrays) -> tuple[list[Array], list[dict[str, Array]]]:
    first = arrays.batches[0]
    weights = {name: first[name] for name in first if name != "text"}
    return [batch["text"] for batch in arrays.batches], [transformer.one(weights, layer) for layer in range(LAYERS)]


def _exact(arrays: Arrays, tools: Tools, step: Any, block: Callable[[Any], Any]) -> Program:
    """`block` makes of a block's weights, on the device, what the step takes for a block."""
    texts, blocks = _texts_and_blocks(arrays)
    placed = [block(weights) for weights in tools.put(blocks)]
    batches = [(tools.put(text), placed) for text in texts]
    return _program(arrays, tools, step, batches, [text.shape[1] for text in texts])


def _padded(arrays: Arrays, tools: Tools, padded_length: Callable[[int], int]) -> Program:
    """Under jit, every text made as long as `padded_length` says of its own length, and masked."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    def step(mean: Any, batch: Any) -> tuple[Any, Any]:
        text, valid, blocks = batch
        x = text + mean[:, None]
        for weights in blocks:
            x = transformer.jax_block(x, weights, HEADS, valid)
        mean = jnp.where(valid[:, None], x, 0).sum(1) / valid.sum().astype(x.dtype)
        return mean, mean

    texts, blocks = _texts_and_blocks(arrays)
    placed = tools.put(blocks)
    lengths = [padded_length(text.shape[1]) for text in texts]
    batches = []
    for text, length in zip(texts, lengths, strict=True):
        longer = np.zeros((text.shape[0], length, text.shape[2]))
        longer[:, : text.shape[1]] = text
        batches.append((tools.put(longer), tools.put(np.arange(length) < text.shape[1]), placed))
    return replace(_program(arrays, tools, jax.jit(step), batches, lengths), placed=True)


def _program(arrays: Arrays, tools: Tools, step: Any, batches: Sequence[Any], lengths: Sequence[int]) -> Program:
    needed = sum(batch["text"].shape[1] for batch in arrays.batches)

    def observe(_outs: Sequence[Any]) -> dict[str, Any]:
        return {"paddingShare": 1 - needed / sum(lengths), "shapes": len(set(lengths))}

    return Program(
        state=tools.put(arrays.state["mean"]),
        step=step,
        batches=batches,
        export=lambda mean, _: {"mean": mean},
        observe=observe,
    )
