"""Train a language model: a decoder of any size, on one device or divided over the devices of a target."""

from typing import TYPE_CHECKING, Any, Literal, Self

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
"""Operations of AdamW for each weight: fourteen of Adam, as in optimizer-step, and the weight decay."""


class TransformerLm(Workload):
    """Train by AdamW on the cross-entropy of the next word: `layers` causal blocks, as in GPT but without biases.

    Layer normalisation precedes each part (Radford and others 2019). Weights and both moments have the policy's type.
    JAX uses Flax nnx and optax, layer after layer or in a scan, and donates the old state; PyTorch uses torch.nn and
    torch.optim.

    In JAX, attention is XLA's, JAX's default, which materializes the scores; PyTorch's kernel keeps none. On an NVIDIA
    GPU in bfloat16, users of JAX request cuDNN's kernel (implementation="cudnn"), which is not used here, because JAX
    cannot trace it without a GPU. On a target of several devices, the mesh axes data and fsdp divide the batch, and the
    mesh axes fsdp and tensor divide the weights and their moments.

    Sizes: the defaults have 1.07 M weights; layers 12, width 768, heads 12, vocabulary 31,488, sequence 1024 have 134
    M; layers 32, width 4096, heads 32, vocabulary 32,000, sequence 2048 have 6.71 B.
    """

    name = "transformer-lm"
    modes = {"jax": ("jit",), "pytorch": ("eager", "compile"), "pytorch_fused": ("eager", "compile")}
    libraries = {"jax": ("flax.nnx", "optax")}

    class Parameters(WorkloadParameters):
        """Describe the network, the batch, and how many devices of a target each mesh axis spans."""

        layers: int = Field(default=4, ge=1, le=200, description="Blocks.")
        width: int = Field(default=128, ge=1, le=32_768, description="Features of each token.")
        heads: int = Field(default=4, ge=1, le=256, description="Attention heads, which divide the width.")
        vocabulary: int = Field(default=1024, ge=2, le=1_000_000, description="Words in the vocabulary.")
        sequence: int = Field(default=128, ge=1, le=131_072, description="Tokens of an example.")
        batch: int = Field(default=8, ge=1, le=65_536, description="Examples in a step, on all devices together.")
        embedding: Literal["untied", "tied"] = Field(
            default="untied", description="tied: input and output embedding share their weights."
        )
        activations: Literal["kept", "recomputed"] = Field(
            default="kept",
            description="recomputed: each block again in the backward pass, from its input. XLA for CPUs merges both "
            "computations again, unless the blocks are scanned (jax/jit-scanned).",
        )
        learning_rate: float = Field(default=3e-4, gt=0, le=1, description="AdamW's step size.")
        data: int = Field(
            default=1, ge=0, le=1024, description="Devices that hold copies of the weights; 0: all remaining."
        )
        fsdp: int = Field(
            default=0,
            ge=0,
            le=1024,
            description="Devices that divide weights and moments, each with its own batch; 0: all remaining.",
        )
        tensor: int = Field(
            default=1, ge=0, le=1024, description="Devices that divide heads, hidden units and words; 0: all remaining."
        )

        @model_validator(mode="after")
        def _heads_divide_the_width_and_one_axis_at_most_is_0(self) -> Self:
            if self.width % self.heads:
                raise ValueError("width must be a multiple of heads, which divide it evenly")
            if [self.data, self.fsdp, self.tensor].count(0) > 1:
                raise ValueError("only one of data, fsdp and tensor can be 0, which means all remaining devices")
            return self

        @property
        def tied(self) -> bool:
            """Return True if input and output embedding share their weights."""
            return self.embedding == "tied"

    def measure(self, parameters: Parameters) -> Measure:
        """Request a comparison with the reference after three steps, as AdamW's bias corrections differ in each."""
        del parameters
        return Measure(parity_units=3, differentiates=True)

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Draw the weights, and random tokens with their targets (batch, sequence).

        A token's target is the next token.
        """
        text = rng.integers(parameters.vocabulary, size=(parameters.batch, parameters.sequence + 1))
        batch = {"tokens": text[:, :-1], "targets": text[:, 1:]}
        return Arrays(state=decoder.draw_weights(parameters, rng), batches=(batch,))

    def shapes(self, parameters: Parameters) -> Arrays:
        """Return arrays with the names, shapes and types of those of `arrays`, but without data."""
        text = of_shape((parameters.batch, parameters.sequence), "int64")
        weights = {name: of_shape(shape) for name, shape in decoder.shapes(parameters).items()}
        return Arrays(state=weights, batches=({"tokens": text, "targets": text},))

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """Train in NumPy for `units` steps; return the weights and the last loss."""
        weights, loss = decoder.train(arrays.state, arrays.batches[0], parameters, parameters.learning_rate, units)
        return {**weights, "loss": loss}

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Count the matrix products, forward and backward, and the update; weights and moments are read and written.

        Causal attention counts in full, as if without its mask. Recomputed activations count once.
        """
        p = parameters
        blocks = p.layers * transformer.block_flops(p.batch, p.sequence, p.width)
        head = 2.0 * p.batch * p.sequence * p.width * p.vocabulary
        forward_and_backward = 3 * (blocks + head)  # Kaplan and others 2020, section 2.1
        weights = decoder.count_weights(p)
        update = float(OPTIMISER_FLOPS * weights)
        read_and_written = 6.0 * weights * float_bytes  # weights and both moments, each read and written
        tokens_and_targets = 8.0 * p.batch * p.sequence  # two integers of 4 bytes
        return Cost(flops=forward_and_backward + update, bytes=read_and_written + tokens_and_targets)

    def memory(self, parameters: Parameters, float_bytes: int) -> float:
        """Return the bytes of the weights and of AdamW's two moments for each weight."""
        return 3.0 * decoder.count_weights(parameters) * float_bytes

    def operations(self, parameters: Parameters) -> Operations | None:
        """Count the matrix products of blocks and head, without those of attention.

        Attention may be one kernel. The result is None for small products, which compilers may turn into sums.
        """
        p = parameters
        if min(p.batch * p.sequence, p.width, p.vocabulary) < SMALLEST_PRODUCT:
            return None
        products_of_block = transformer.PRODUCTS - 2  # without the two of attention: scores, and the sum of values
        forward = p.layers * products_of_block + 1
        return Operations(products=3 * forward)  # backward has two for each: gradients of inputs and of weights

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Apply the layers in a Python loop, which jit unrolls."""
        return _jax_program(parameters, arrays, tools, scanned=False)

    @variant("jax/jit-scanned")
    def jit_scanned(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compile one layer, as the body of a scan over the stacked weights of all layers."""
        return training.jit_donating(_jax_program(parameters, arrays, tools, scanned=True))

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use torch.nn with PyTorch's attention kernel; torch.compile compiles all but the optimizer."""
        return _torch_program(parameters, arrays, tools)

    def pytorch_fused(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use AdamW with fused=True: one kernel updates many weights at once."""
        return _torch_program(parameters, arrays, tools, fused=True)


def _jax_program(p: TransformerLm.Parameters, arrays: Arrays, tools: Tools, *, scanned: bool) -> Program:
    """Return a training program with Flax nnx; if `scanned`, layers run in a scan."""
    from accelbench.workloads import _decoder_flax as flax_decoder

    dtype = tools.put(arrays.state["gain"]).dtype  # `put` converts to the type of the precision policy
    recomputed = p.activations == "recomputed"
    flax_training = flax_decoder.Training(p, dtype, p.learning_rate, scanned=scanned, recomputed=recomputed)
    return Program(
        state=flax_training.state(arrays.state, tools.put),
        step=flax_training.step,
        batches=tools.put(arrays.batches),
        donate=True,
        export=flax_training.export,
        divided=Divided(
            mesh={"data": p.data, "fsdp": p.fsdp, "tensor": p.tensor},
            state=flax_training.axes(),
            batches=flax_decoder.axes_of_batches(),
        ),
    )


def _torch_program(p: TransformerLm.Parameters, arrays: Arrays, tools: Tools, *, fused: bool | None = None) -> Program:
    """Return a training program with torch.nn, whose loss runs in the variant's mode.

    `fused` is AdamW's; None is PyTorch's default for the device.
    """
    from accelbench.workloads import _decoder_torch as torch_decoder

    def export(state: Any, loss: Any) -> dict[str, Any]:
        model, _optimizer = state
        return {**torch_decoder.weights_by_name(model, tied=p.tied), "loss": loss}

    model = torch_decoder.build(p, arrays.state, tools.put, recomputed=p.activations == "recomputed")
    return Program(
        state=(model, torch_decoder.adamw(model, p.learning_rate, fused=fused)),
        step=training.torch_step(tools.in_mode(torch_decoder.loss_of)),
        batches=tools.put(arrays.batches),
        placed=True,
        export=export,
    )
