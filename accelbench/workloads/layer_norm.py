"""Measure layer normalization: a hand-written kernel against plain operations that a compiler fuses."""

from typing import TYPE_CHECKING, Any

from pydantic import Field

from accelbench.workload import Arrays, Cost, NamedArrays, Program, Tools, Workload, WorkloadParameters, variant

if TYPE_CHECKING:
    from numpy.random import Generator

EPSILON = 1e-5


class LayerNorm(Workload):
    """Compute x <- (x - mean) / sqrt(variance + 1e-5) * gain + bias over the last axis of x, (rows, features).

    Row 12 of the claims: PyTorch needs named, hand-optimized kernels where jit makes them from plain operations. Both
    frameworks write it out, next to `torch.nn.functional.layer_norm`. Each evaluation takes the result of the last;
    gains around 1 keep the scale of the numbers.
    """

    name = "layer-norm"
    moves_once = True
    modes = {"jax": ("jit", "op-by-op"), "pytorch": ("eager", "compile")}

    class Parameters(WorkloadParameters):
        """Set the shape of x."""

        rows: int = Field(default=4096, ge=1, le=2**24, description="Rows, normalised one by one.")
        features: int = Field(default=1024, ge=2, le=2**20, description="Numbers in a row.")

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Draw a standard normal x (rows, features), gains near 1 and biases near 0."""
        features = parameters.features
        gain, bias = 1 + 0.1 * rng.standard_normal(features), 0.1 * rng.standard_normal(features)
        x = rng.standard_normal((parameters.rows, features))
        return Arrays(state={"x": x}, batches=({"gain": gain, "bias": bias},))

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """Normalise each row of x in NumPy, `units` times."""
        import numpy as np

        del parameters
        x, batch = arrays.state["x"], arrays.batches[0]
        for _ in range(units):
            deviation = x - x.mean(axis=-1, keepdims=True)
            variance = (deviation**2).mean(axis=-1, keepdims=True)
            x = deviation / np.sqrt(variance + EPSILON) * batch["gain"] + batch["bias"]
        return {"x": x}

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Count seven operations for each number; a fused kernel reads x once and writes it once.

        The seven are: sum for the mean, subtract the mean, square, sum for the variance, scale, times gain, plus bias.
        """
        size = parameters.rows * parameters.features
        return Cost(flops=7.0 * size, bytes=2.0 * size * float_bytes)

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Normalise each row of x in plain operations, without a built-in layer normalisation."""
        import jax

        del parameters

        def step(x: Any, batch: Any) -> tuple[Any, None]:
            """Normalise each row of x to mean 0 and variance 1, then apply gain and bias."""
            deviation = x - x.mean(axis=-1, keepdims=True)
            variance = (deviation**2).mean(axis=-1, keepdims=True)
            return deviation * jax.lax.rsqrt(variance + EPSILON) * batch["gain"] + batch["bias"], None

        return _program(arrays, tools, step)

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Normalise each row of x in plain operations, without a built-in layer normalisation."""
        import torch

        del parameters

        def step(x: Any, batch: Any) -> tuple[Any, None]:
            """Normalise each row of x to mean 0 and variance 1, then apply gain and bias."""
            deviation = x - x.mean(dim=-1, keepdim=True)
            variance = (deviation**2).mean(dim=-1, keepdim=True)
            return deviation * torch.rsqrt(variance + EPSILON) * batch["gain"] + batch["bias"], None

        return _program(arrays, tools, step)

    @variant("pytorch/built-in")
    def built_in(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Call torch.nn.functional.layer_norm, eagerly."""
        from dataclasses import replace

        from torch.nn.functional import layer_norm

        def step(x: Any, batch: Any) -> tuple[Any, None]:
            return layer_norm(x, (parameters.features,), batch["gain"], batch["bias"], EPSILON), None

        return replace(_program(arrays, tools, step), placed=True)


def _program(arrays: Arrays, tools: Tools, step: Any) -> Program:
    """Return a program whose state is x, and whose step is (x, batch) -> (normalised x, None)."""
    return Program(
        state=tools.put(arrays.state["x"]),
        batches=tools.put(arrays.batches),
        step=step,
        export=lambda x, _: {"x": x},
    )
