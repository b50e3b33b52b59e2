"""Training a language model: a decoder of any size, on one device, or divided over the devices of a target."""

from typing import TYPE_CHECKING, Literal, Self

from pydantic import Field, model_validator

from accelbench.workload import (
    SMALLEST_PRODUCT,
    Arrays,
    Cost,
    Divided,
    Measure,
    NamedArrays,
    Operations,
    Program,
    Tools,
    Workload,
    WorkloadParameters,
    of_shape,
    variant,
)
from accelbench.workloads import _decoder as decoder
from accelbench.workloads import _training as training
from accelbench.workloads import _transformer as transformer

if TYPE_CHECKING:
    from numpy.random import Generator

OPTIMISER_FLOPS = 15
"""Of AdamW for each weight: fourteen of Adam, as in optimizer-step, and its decay."""


class TransformerLm(Workload):
    """A step of AdamW on the cross-entropy of the next word: `layers` causal blocks, GPT's without biases.

    Radford and others (2019), normalisation before each part; weights and both moments are of the policy's type. With
    Flax nnx and optax, layer after layer or in a scan, and the old state is given away; with torch.nn and torch.optim.
    In JAX, attention is XLA's, which makes the scores in full; PyTorch's keeps none. A kernel of cuDNN would need
    bfloat16, and a GPU to trace on. Of several devices of a target, data x fsdp share the batch, fsdp x tensor the
    weights and their moments. Sizes: the defaults have 1.07 M weights; layers 12, width 768, heads 12, vocabulary
    31,488, sequence 1024 have 134 M; layers 32, width 4096, heads 32, vocabulary 32,000, sequence 2048 have 6.71 B.
    """

    name = "transformer-lm"
    modes = {"jax": ("jit",), "pytorch": ("eager",)}
    libraries = {"jax": ("flax.nnx", "optax")}

    class Parameters(WorkloadParameters):
        """The network, the batch, and over how many devices of a target each axis goes."""

        layers: int = Field(default=4, ge=1, le=200, description="Blocks.")
        width: int = Field(default=128, ge=1, le=32_768, description="Numbers for each token.")
        heads: int = Field(default=4, ge=1, le=256, description="Of attention; they share the width.")
        vocabulary: int = Field(default=1024, ge=2, le=1_000_000, description="Words that there are.")
        sequence: int = Field(default=128, ge=1, le=131_072, description="Tokens of an example.")
        batch: int = Field(default=8, ge=1, le=65_536, description="Examples in a step, on all devices together.")
        embedding: Literal["untied", "tied"] = Field(
            default="untied", description="tied: the words that come out have the weights of those that go in."
        )
        activations: Literal["kept", "recomputed"] = Field(
            default="kept",
            description="recomputed: of each block on the way back, from what went in. XLA for CPUs merges both "
            "computations again, unless the blocks are scanned (jax/jit-scanned).",
        )
        learning_rate: float = Field(default=3e-4, gt=0, le=1, description="AdamW's step size.")
        data: int = Field(
            default=1, ge=0, le=1024, description="Devices that hold copies of the weights; 0: as many as are left."
        )
        fsdp: int = Field(
            default=0,
            ge=0,
            le=1024,
            description="Devices that share weights and their moments, and have a batch each; 0: as many as are left.",
        )
        tensor: int = Field(
            default=1, ge=0, le=1024, description="Devices that share heads, hidden numbers and words; 0: what is left."
        )

        @model_validator(mode="after")
        def _heads_share_the_width(self) -> Self:
            if self.width % self.heads:
                raise ValueError("width must be a multiple of heads: heads share it evenly")
            if [self.data, self.fsdp, self.tensor].count(0) > 1:
                raise ValueError("only one of data, fsdp and tensor can be 0: what the others leave of the devices")
            return self

        @property
        def tied(self) -> bool:
            """The words that come out are those that go in."""
            return self.embedding == "tied"

    def measure(self, parameters: Parameters) -> Measure:
        """Three steps: bias corrections differ from one to the next."""
        del parameters
        return Measure(parity_units=3, differentiates=True)

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Weights by the names of `_decoder.shapes`; tokens, and targets, each token's next: (batch, sequence)."""
        text = rng.integers(parameters.vocabulary, size=(parameters.batch, parameters.sequence + 1))
        batch = {"tokens": text[:, :-1], "targets": text[:, 1:]}
        return Arrays(state=decoder.draw(parameters, rng), batches=(batch,))

    def shapes(self, parameters: Parameters) -> Arrays:
        """The same, of nothing."""
        text = of_shape((parameters.batch, parameters.sequence), "int64")
        weights = {name: of_shape(shape) for name, shape in decoder.shapes(parameters).items()}
        return Arrays(state=weights, batches=({"tokens": text, "targets": text},))

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """The same in NumPy, the chain rule by hand."""
        weights, loss = decoder.train(arrays.state, arrays.batches[0], parameters, parameters.learning_rate, units)
        return {**weights, "loss": loss}

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """The products, threefold to train (Kaplan and others 2020, section 2.1; attention in full), and the update.

        What is computed again counts once: it is no work of the model's. Weights and both moments are read and written.
        """
        p = parameters
        forward = p.layers * transformer.block_flops(p.batch, p.sequence, p.width)
        forward += 2.0 * p.batch * p.sequence * p.width * p.vocabulary
        weights = decoder.numbers(p)
        return Cost(
            flops=3 * forward + float(OPTIMISER_FLOPS * weights),
            bytes=6.0 * weights * float_bytes + 8.0 * p.batch * p.sequence,
        )

    def memory(self, parameters: Parameters, float_bytes: int) -> float:
        """Weights and both moments."""
        return 3.0 * decoder.numbers(parameters) * float_bytes

    def operations(self, parameters: Parameters) -> Operations | None:
        """Of the blocks, but for attention, which may be one kernel, and of the head; none that is turned into sums."""
        p = parameters
        if min(p.batch * p.sequence, p.width, p.vocabulary) < SMALLEST_PRODUCT:
            return None
        return Operations(products=3 * (p.layers * (transformer.PRODUCTS - 2) + 1))

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Layer after layer in a Python loop, which jit unrolls."""
        return _jax_program(parameters, arrays, tools, scanned=False)

    @variant("jax/jit-scanned")
    def jit_scanned(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """One layer, compiled once, in a loop over stacked weights."""
        return training.jit_donating(_jax_program(parameters, arrays, tools, scanned=True))

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Layer after layer; attention in PyTorch's own kernel."""
        return _torch_program(parameters, arrays, tools)

    @variant("pytorch/compile")
    def torch_compile(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Forward pass and loss, and so their backward pass, under torch.compile; the optimiser as it is."""
        return _torch_program(parameters, arrays, tools, compiled=True)


def _jax_program(p: TransformerLm.Parameters, arrays: Arrays, tools: Tools, *, scanned: bool) -> Program:
    from accelbench.workloads import _decoder_flax as flax

    dtype = tools.put(arrays.state["gain"]).dtype
    recomputed = p.activations == "recomputed"
    trained = flax.Training(p, dtype, p.learning_rate, scanned=scanned, recomputed=recomputed)
    return Program(
        state=trained.state(arrays.state, tools.put),
        step=trained.step,
        batches=tools.put(arrays.batches),
        donate=True,
        export=trained.export,
        divided=Divided(
            mesh={"data": p.data, "fsdp": p.fsdp, "tensor": p.tensor},
            state=trained.axes(),
            batches=flax.axes_of_batches(),
        ),
    )


def _torch_program(p: TransformerLm.Parameters, arrays: Arrays, tools: Tools, *, compiled: bool = False) -> Program:
    import torch

    from accelbench.workloads import _decoder_torch as own

    model = own.build(p, arrays.state, tools.put, recomputed=p.activations == "recomputed")
    return Program(
        state=(model, own.adamw(model, p.learning_rate)),
        step=training.torch_step(torch.compile(own.loss_of) if compiled else own.loss_of),
        batches=tools.put(arrays.batches),
        placed=compiled,
        export=lambda state, loss: {**own.named(state[0], tied=p.tied), "loss": loss},
    )
