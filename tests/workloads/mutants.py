"""Workloads that are wrong in one place each, the way people get them wrong; right in everything else."""

from dataclasses import replace
from typing import Any

from accelbench.workload import Arrays, Program, Tools, variant
from accelbench.workloads.elementwise_fusion import ElementwiseFusion
from accelbench.workloads.matmul_chain import MatmulChain
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
