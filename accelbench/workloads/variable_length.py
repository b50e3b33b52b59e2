"""Run on sequences of several lengths: a program for each, padding to few lengths, or one program for all."""

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
"""The article's two lengths, a longer one, and one that is no power of two."""
LAYERS, HEADS = 2, 4


class VariableLength(Workload):
    """Compute the mean over the tokens after two transformer blocks, for texts of 128, 256, 512 and 77 tokens in turn.

    Rows 22 and 23 of the claims: "pass in a batch with sequence length 128, JAX compiles for that shape. Next batch is
    256? Recompile", which PyTorch is said to do less. Lengths stay as they are, or are padded to the longest or to the
    next power of two (a bucket), with padding masked; torch.compile runs with its defaults or with `dynamic`. All calls
    are timed in order, including compilation but not the padding of texts; or the same calls are observed. The mean of
    a text is added to all tokens of the next text.
    """

    name = "variable-length"
    moves_once = True
    modes = {"jax": ("jit", "op-by-op"), "pytorch": ("eager", "compile")}
    observes = {
        "paddingShare": "Share of padding in all computed tokens.",
        "shapes": "Distinct lengths that the program gets.",
    }

    class Parameters(WorkloadParameters):
        """Describe the texts, and choose the question."""

        passes: int = Field(default=2, ge=1, le=1000, description="Passes over the four lengths.")
        shortening: int = Field(default=1, ge=1, le=8, description="Divisor of all lengths.")
        batch: int = Field(default=4, ge=1, le=4096, description="Texts in a call, all of one length.")
        width: int = Field(default=64, ge=4, le=8192, multiple_of=HEADS, description="Features of each token.")
        asks: Literal["time", "compilations"] = Field(
            default="time", description="time: one pass, compilation included; compilations: what each call compiles."
        )

    def measure(self, parameters: Parameters) -> Measure:
        """Use the protocol `episode`, which times the calls in order, for `asks: time`, and `observe` otherwise."""
        return Measure(protocol="episode" if parameters.asks == "time" else "observe", unit="call")

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Return a mean of zeros (batch, width) as state, and for each call a batch of texts (batch, length, width).

        Only the first batch also has the weights of both blocks, which all calls share.
        """
        import numpy as np

        p = parameters
        lengths = [length // p.shortening for length in LENGTHS] * p.passes
        weights = transformer.draw_weights(LAYERS, p.width, rng)
        batches = [{"text": rng.standard_normal((p.batch, length, p.width))} for length in lengths]
        batches[0] |= weights
        return Arrays(state={"mean": np.zeros((p.batch, p.width))}, batches=batches)

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """Compute the mean after `units` calls in NumPy, without padding."""
        del parameters
        mean = arrays.state["mean"]
        texts, weights_of_blocks = _texts_and_weights(arrays)
        for call in range(units):
            x = texts[call % len(texts)] + mean[:, None]
            for weights in weights_of_blocks:
                x = transformer.block(x, weights, HEADS)
            mean = x.mean(1)
        return {"mean": mean}

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Return the operations and bytes of a call without padding, as the mean over all lengths.

        Operations are those of both blocks' matrix products; bytes are the text and the weights, read once.
        """
        p = parameters
        lengths = [length // p.shortening for length in LENGTHS]
        flops = sum(LAYERS * transformer.block_flops(p.batch, length, p.width) for length in lengths) / len(lengths)
        weights = LAYERS * p.width**2 * (4 + 2 * transformer.HIDDEN_RATIO)  # attention has 4 matrices, the perceptron 2
        text = p.batch * p.width * sum(lengths) / len(lengths)
        return Cost(flops=flops, bytes=(weights + text) * float_bytes)

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Keep the length of every text; jit compiles a program for each length."""

        def step(previous_mean: Any, batch: Any) -> tuple[Any, Any]:
            """Apply the blocks to texts; return the mean over tokens as state and output.

            The previous mean makes each call depend on the one before.
            """
            text, weights_of_blocks = batch  # text is (batch, length, width), each mean is (batch, width)
            x = text + previous_mean[:, None]
            for weights in weights_of_blocks:
                x = transformer.jax_block(x, weights, HEADS)
            mean = x.mean(1)
            return mean, mean

        del parameters
        # JAX's block is a function of its weights, so there is nothing to build from them.
        return _unpadded_program(arrays, tools, step, block_of=lambda weights: weights)

    @variant("jax/jit-padded")
    def jit_padded(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Pad every text to the length of the longest, and mask the padding."""
        longest = max(LENGTHS) // parameters.shortening
        return _padded_program(arrays, tools, padded_length=lambda _: longest)

    @variant("jax/jit-bucketed")
    def jit_bucketed(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Pad every text to the next power of two, and mask the padding."""
        del parameters
        return _padded_program(arrays, tools, padded_length=lambda length: 2 ** math.ceil(math.log2(length)))

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Keep the length of every text; under torch.compile, the second length compiles a program for any length."""
        del parameters

        def step(previous_mean: Any, batch: Any) -> tuple[Any, Any]:
            """Apply the blocks to texts; return the mean over tokens as state and output.

            The previous mean makes each call depend on the one before.
            """
            text, blocks = batch  # text is (batch, length, width), each mean is (batch, width)
            x = text + previous_mean[:, None]
            for block in blocks:
                x = block(x)
            mean = x.mean(1)
            return mean, mean

        return _unpadded_program(arrays, tools, step, block_of=lambda weights: transformer.torch_block(weights, HEADS))


def _texts_and_weights(arrays: Arrays) -> tuple[list[Array], list[dict[str, Array]]]:
    """Return the text of each batch (batch, length, width), and each block's weights.

    Only the first batch has the weights, because all batches use the same ones.
    """
    texts = [batch["text"] for batch in arrays.batches]
    weights = {name: array for name, array in arrays.batches[0].items() if name != "text"}
    return texts, [transformer.block_weights(weights, layer) for layer in range(LAYERS)]


def _unpadded_program(arrays: Arrays, tools: Tools, step: Any, block_of: Callable[[Any], Any]) -> Program:
    """Return a program whose batches are (text, blocks) without padding.

    `block_of` turns the weights of a block into what `step` applies: a torch.nn.Module, or the weights themselves.
    """
    texts, weights_of_blocks = _texts_and_weights(arrays)
    blocks = [block_of(weights) for weights in tools.put(weights_of_blocks)]
    batches = [(tools.put(text), blocks) for text in texts]
    return _program(arrays, tools, step, batches, [text.shape[1] for text in texts])


def _padded_program(arrays: Arrays, tools: Tools, padded_length: Callable[[int], int]) -> Program:
    """Return a program under jit whose texts are padded.

    `padded_length` maps a text's length to its length with padding.
    """
    import jax
    import jax.numpy as jnp
    import numpy as np

    def step(previous_mean: Any, batch: Any) -> tuple[Any, Any]:
        """Apply the blocks to texts; return the mean over tokens as state and output.

        The previous mean makes each call depend on the one before.
        """
        # text is (batch, length, width), valid is (length,), each mean is (batch, width)
        text, valid, weights_of_blocks = batch
        x = text + previous_mean[:, None]
        for weights in weights_of_blocks:
            x = transformer.jax_block(x, weights, HEADS, valid)
        mean = jnp.where(valid[:, None], x, 0).sum(1) / valid.sum().astype(x.dtype)
        return mean, mean

    texts, weights_of_blocks = _texts_and_weights(arrays)
    device_weights = tools.put(weights_of_blocks)
    lengths = [padded_length(text.shape[1]) for text in texts]
    batches = []
    for text, length in zip(texts, lengths, strict=True):
        texts_in_batch, text_length, width = text.shape
        padded = np.zeros((texts_in_batch, length, width))
        padded[:, :text_length] = text
        valid = np.arange(length) < text_length
        batches.append((tools.put(padded), tools.put(valid), device_weights))
    return replace(_program(arrays, tools, jax.jit(step), batches, lengths), placed=True)


def _program(arrays: Arrays, tools: Tools, step: Any, batches: Sequence[Any], lengths: Sequence[int]) -> Program:
    """Return a program that calls `step` with each of `batches`, and observes padding and lengths.

    `lengths` has each batch's length with padding.
    """
    text_tokens = sum(batch["text"].shape[1] for batch in arrays.batches)

    def observe(_outs: Sequence[Any]) -> dict[str, Any]:
        """Return the share of padding, and the number of distinct lengths."""
        return {"paddingShare": 1 - text_tokens / sum(lengths), "shapes": len(set(lengths))}

    return Program(
        state=tools.put(arrays.state["mean"]),
        step=step,
        batches=batches,
        export=lambda mean, _: {"mean": mean},
        observe=observe,
    )
