"""Generate text: read a prompt, then decode token after token with a cache of keys and values."""

from typing import TYPE_CHECKING, Self

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
from accelbench.workloads import _transformer as transformer

if TYPE_CHECKING:
    from numpy.random import Generator

PRODUCTS_WITH_WEIGHTS = transformer.PRODUCTS - 2
"""Matrix products of a block without the two of attention."""


class TextGeneration(Workload):
    """Generate `tokens` tokens after a prompt, each by the highest logit, with a decoder as in GPT-2.

    A call first applies the decoder to the whole prompt, which fills the cache and chooses the first token. Each
    further token is chosen after the token before it was fed back: the decoder is applied to this one, which attends to
    the cache. The buffers of the cache have room for the whole text.

    Rounding decides which of two nearly equal logits is higher, so right programs could write different texts. So the
    input has a text, whose tokens are fed back in place of the chosen ones. Where a token of this text is below 0, the
    chosen one is fed back. The input has no such token, but a compiler cannot know that: each step needs the choice of
    the step before it. Compared are the logit of each chosen token (scores), and all logits of the last step, which
    depend on the whole cache. The reference has no cache: it applies the decoder to the whole text at once. Each call
    rotates the text by one token, so that no call repeats another.

    Sizes: the defaults have 1.07 M weights, as transformer-lm; layers 12, width 768, heads 12, vocabulary 50,257 are
    GPT-2's smallest network (Radford and others 2019), but with a head of its own.
    """

    name = "text-generation"
    modes = {
        "jax": ("jit",),
        "pytorch": ("eager", "compile"),
        "pytorch_sliced": ("eager",),
        "pytorch_growing": ("eager",),
    }

    class Parameters(WorkloadParameters):
        """Describe the network and the text."""

        layers: int = Field(default=4, ge=1, le=200, description="Blocks.")
        width: int = Field(default=128, ge=1, le=32_768, description="Features of each token.")
        heads: int = Field(default=4, ge=1, le=256, description="Attention heads, which divide the width.")
        vocabulary: int = Field(default=1024, ge=2, le=1_000_000, description="Words in the vocabulary.")
        batch: int = Field(default=8, ge=1, le=65_536, description="Texts that are generated at once.")
        prompt: int = Field(default=64, ge=2, le=131_072, description="Tokens of the prompt.")
        tokens: int = Field(default=64, ge=2, le=131_072, description="Tokens to generate.")

        @model_validator(mode="after")
        def _heads_divide_the_width(self) -> Self:
            if self.width % self.heads:
                raise ValueError("width must be a multiple of heads, which divide it evenly")
            return self

        @property
        def context(self) -> int:
            """Return the number of tokens in the cache: the last token is chosen, but not fed back."""
            return self.prompt + self.tokens - 1

    def measure(self, parameters: Parameters) -> Measure:
        """Count generations; compare after two, when the cache has keys and values of another text."""
        del parameters
        return Measure(unit="generation", parity_units=2)

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Draw the text (batch, context), all weights, and the cache, which has numbers of an earlier text.

        Keys and values are (layers, batch, heads, context, features of a head).
        """
        p = parameters
        shape = _cache_shape(p)
        state = {
            "text": rng.integers(p.vocabulary, size=(p.batch, p.context)),
            "keys": rng.standard_normal(shape),
            "values": rng.standard_normal(shape),
        }
        weights = {
            "embed": 0.02 * rng.standard_normal((p.vocabulary, p.width)),
            "positions": 0.02 * rng.standard_normal((p.context, p.width)),
            "gain": 1 + 0.02 * rng.standard_normal(p.width),
            "gain_bias": 0.02 * rng.standard_normal(p.width),
            "head": rng.standard_normal((p.width, p.vocabulary)) / p.width**0.5,
            **transformer.draw_weights(p.layers, p.width, rng),
        }
        return Arrays(state=state, batches=(weights,))

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """Return scores and last logits of the last of `units` generations, without a cache, in NumPy."""
        import numpy as np

        text = np.roll(arrays.state["text"], units - 1, 1)
        logits = uncached_logits(text, arrays.batches[0], parameters)
        return {"scores": logits.max(-1), "logits": logits[:, -1]}

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Count the matrix products of prompt and tokens; weights are read for the prompt and for each token.

        Each token fed back reads the keys and values up to its own, which are written once. The prompt's attention
        counts in full, as if without its mask.
        """
        p = parameters
        fed_back = p.tokens - 1
        keys_read = sum(range(p.prompt + 1, p.context + 1))  # by the tokens of one text that are fed back
        block_weights = (4 + 2 * transformer.HIDDEN_RATIO) * p.width**2
        prompt = transformer.block_flops(p.batch, p.prompt, p.width)
        decoding = p.batch * (2.0 * fed_back * block_weights + 4.0 * keys_read * p.width)
        head = 2.0 * p.batch * p.tokens * p.width * p.vocabulary
        weights_read = p.tokens * (p.layers * block_weights + p.width * p.vocabulary)
        cache_moved = 2.0 * p.layers * p.batch * p.width * (p.context + keys_read)
        return Cost(flops=p.layers * (prompt + decoding) + head, bytes=(weights_read + cache_moved) * float_bytes)

    def memory(self, parameters: Parameters, float_bytes: int) -> float:
        """Return the bytes of the weights and of the cache."""
        p = parameters
        blocks = p.layers * (4 + 2 * transformer.HIDDEN_RATIO) * p.width**2
        embeddings_and_head = (2 * p.vocabulary + p.context) * p.width
        cache = 2 * p.layers * p.batch * p.context * p.width
        return float(blocks + embeddings_and_head + cache) * float_bytes

    def operations(self, parameters: Parameters) -> Operations | None:
        """Count the matrix products of the blocks with the prompt and with each token, and of the head.

        Those of attention do not count, as attention may be one kernel. Of the last block, the prompt needs only keys
        and values, and the output of its last token. Compilers may turn small products into sums.
        """
        p = parameters
        if min(p.batch * p.prompt, p.width, p.vocabulary) < SMALLEST_PRODUCT:
            return None
        prompt = PRODUCTS_WITH_WEIGHTS * (p.layers - 1) + 1
        if p.batch < SMALLEST_PRODUCT:
            return Operations(products=prompt)
        fed_back = p.tokens - 1
        head = p.tokens
        return Operations(products=prompt + fed_back * PRODUCTS_WITH_WEIGHTS * p.layers + head)

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compile the whole generation: the prompt, then a scan over the tokens."""
        from accelbench.workloads import _text_generation_jax as in_jax

        return in_jax.scanned(parameters, arrays, tools)

    @variant("jax/jit-step")
    def jit_step(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compile the prompt and one token, each on its own, and call them in a Python loop; the cache is donated."""
        from accelbench.workloads import _text_generation_jax as in_jax

        return in_jax.step_by_step(parameters, arrays, tools)

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Attend to the whole buffer under a mask; torch.compile compiles the prompt and one token, each on its own."""
        from accelbench.workloads import _text_generation_torch as in_torch

        return in_torch.program(in_torch.MaskedDecoder, parameters, arrays, tools)

    def pytorch_sliced(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Attend to the written part of the buffer, a view whose length changes with each token."""
        from accelbench.workloads import _text_generation_torch as in_torch

        return in_torch.program(in_torch.SlicedDecoder, parameters, arrays, tools)

    def pytorch_growing(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Append keys and values by torch.cat, which copies the cache for each token."""
        from accelbench.workloads import _text_generation_torch as in_torch

        return in_torch.program(in_torch.GrowingDecoder, parameters, arrays, tools)


def _cache_shape(p: TextGeneration.Parameters) -> tuple[int, ...]:
    """Return the shape of all keys or values: (layers, batch, heads, context, features of a head)."""
    return p.layers, p.batch, p.heads, p.context, p.width // p.heads


def uncached_logits(text: Array, w: NamedArrays, p: TextGeneration.Parameters) -> Array:
    """Return logits (batch, tokens, vocabulary) in NumPy: the last of the prompt's, and those of all later tokens."""
    x = w["embed"][text] + w["positions"]
    _, *blocks = split_blocks(w, p.layers)
    for block in blocks:
        x, _backward = transformer.block_vjp(x, block, p.heads, causal=True)
    normalised, _normalise_backward = transformer.normalise_vjp(x[:, p.prompt - 1 :], w["gain"], w["gain_bias"])
    logits: Array = normalised @ w["head"]
    return logits


def split_blocks(weights: NamedArrays, layers: int) -> list[dict[str, Array]]:
    """Return a list: first the weights outside the blocks, then the weights of each block, all by name."""
    names = ("embed", "positions", "gain", "gain_bias", "head")
    outside = {name: weights[name] for name in names}
    stacked = {name: array for name, array in weights.items() if name not in names}
    return [outside, *(transformer.block_weights(stacked, layer) for layer in range(layers))]
