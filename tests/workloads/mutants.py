"""Workloads that are wrong in one place each, the way people get them wrong; right in everything else."""

from dataclasses import replace
from typing import Any

from accelbench.workload import Arrays, Program, Tools, variant
from accelbench.workloads.dispatch_overhead import DispatchOverhead
from accelbench.workloads.elementwise_fusion import ElementwiseFusion
from accelbench.workloads.layer_norm import LayerNorm
from accelbench.workloads.linear_regression import LinearRegression
from accelbench.workloads.matmul_chain import MatmulChain
from accelbench.workloads.maxsim import Maxsim
from accelbench.workloads.mlp import Mlp
from accelbench.workloads.xor import Xor


class WrongAxis(MatmulChain):
    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        return replace(super().jax(parameters, arrays, tools), step=lambda x, batch: (x @ batch["w"].T, None))


class WrongOrder(MatmulChain):
    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        return replace(super().jax(parameters, arrays, tools), step=lambda x, batch: (batch["w"] @ x, None))


class WrongWeights(Xor):
    """Takes weights for (in, out) that are (out, in)."""

    @variant("jax/jit-step")
    def jit_step(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        transposed = {**arrays.state, "weights1": arrays.state["weights1"].T}
        return super().jit_step(parameters, replace(arrays, state=transposed), tools)


class WrongReduction(Xor):
    """Half the loss, as if the mean were over two outputs."""

    @variant("jax/jit-step")
    def jit_step(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        halved = parameters.model_copy(update={"learning_rate": parameters.learning_rate / 2})
        return super().jit_step(halved, arrays, tools)


class WrongSamples(Xor):
    """The last sample is left out of every epoch, and the first comes twice."""

    @variant("jax/jit-step")
    def jit_step(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        batch = {name: array[[0, 1, 2, 0]] for name, array in arrays.batches[0].items()}
        return super().jit_step(parameters, replace(arrays, batches=(batch,)), tools)


class WrongFunction(ElementwiseFusion):
    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        import jax.numpy as jnp

        return replace(super().jax(parameters, arrays, tools), step=lambda x, _: (2 * jnp.sin(x), None))


class WrongCoefficient(DispatchOverhead):
    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        return replace(super().jax(parameters, arrays, tools), step=lambda x, _: (x**2 + 2 * x, None))


class AlwaysTheFirst(DispatchOverhead):
    """Every evaluation takes the same x: what a benchmark computes that throws results away."""

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        program = super().jax(parameters, arrays, tools)
        return replace(program, step=lambda _, first: program.step(first, {}), batches=(program.state,))


class WrongOrderOfUnits(Mlp):
    """Hidden units of one layer in the order of another: weights copied between libraries that differ in it."""

    def pytorch(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        reversed_units = {**arrays.state, "weights2": arrays.state["weights2"][::-1].copy()}
        return super().pytorch(parameters, replace(arrays, state=reversed_units), tools)


class LostAxis(Mlp):
    """Targets without their axis: every prediction against every target, and no error."""

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        batch = {**arrays.batches[0], "targets": arrays.batches[0]["targets"][:, 0]}
        return super().jax(parameters, replace(arrays, batches=(batch,)), tools)


class SummedLoss(Mlp):
    """Gradients of a mean over examples alone: `outputs` times as large."""

    def pytorch(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        rate = parameters.learning_rate * parameters.outputs
        return super().pytorch(parameters.model_copy(update={"learning_rate": rate}), arrays, tools)


class OtherWindow(Mlp):
    """Predictions put before the inputs that they follow."""

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        import jax.numpy as jnp

        program = super().jax(parameters, arrays, tools)

        def step(inputs: Any, network: Any) -> tuple[Any, None]:
            moved_on, _ = program.step(inputs, network)
            return jnp.roll(moved_on, parameters.outputs, axis=1), None

        return replace(program, step=step)


class SumOfSquares(LinearRegression):
    """Half the loss, as textbooks write it: half the gradient."""

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        return super().jax(parameters.model_copy(update={"rate": parameters.rate / 2}), arrays, tools)


class LostColumn(LinearRegression):
    """Targets with an axis: every prediction against every target, and no error."""

    def pytorch(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        batch = {**arrays.batches[0], "y": arrays.batches[0]["y"][:, None]}
        return super().pytorch(parameters, replace(arrays, batches=(batch,)), tools)


class SampleVariance(LayerNorm):
    """Bessel's correction, which torch.var makes unless it is told not to."""

    def pytorch(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        import torch

        def step(x: Any, batch: Any) -> tuple[Any, None]:
            deviation = x - x.mean(dim=-1, keepdim=True)
            return deviation * torch.rsqrt(x.var(dim=-1, keepdim=True) + 1e-5) * batch["gain"] + batch["bias"], None

        return replace(super().pytorch(parameters, arrays, tools), step=step)


class OverRows(LayerNorm):
    """Batch normalisation."""

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        import jax.numpy as jnp

        def step(x: Any, batch: Any) -> tuple[Any, None]:
            return (x - x.mean(axis=0)) / jnp.sqrt(x.var(axis=0) + 1e-5) * batch["gain"] + batch["bias"], None

        return replace(super().jax(parameters, arrays, tools), step=step)


class OverTheQuery(Maxsim):
    """The greatest over the query's tokens, the sum over the document's."""

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        def step(query: Any, batch: Any) -> tuple[Any, Any]:
            scores = (batch["documents"] @ query.T).max(axis=2).sum(axis=-1)
            return query, scores

        return replace(super().jax(parameters, arrays, tools), step=step)
