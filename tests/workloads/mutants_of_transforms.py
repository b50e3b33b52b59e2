"""Gradients that are wrong in one place each, the way people get them wrong; right in everything else."""

from dataclasses import replace
from typing import Any
from unittest.mock import patch

from accelbench.workload import Arrays, Program, Tools, variant
from accelbench.workloads import _composed as composed
from accelbench.workloads.composed_gradients import ComposedGradients
from accelbench.workloads.dlpack import Dlpack
from accelbench.workloads.hessian import Hessian
from accelbench.workloads.joint_gradient import JointGradient
from accelbench.workloads.per_example_gradients import PerExampleGradients
from accelbench.workloads.vmap import Vmap


class SharesOfTheMean(PerExampleGradients):
    """Gradients of the mean loss, example by example: each is divided by their number."""

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        import jax

        program = super().jax(parameters, arrays, tools)

        def step(layers: Any, batch: Any) -> tuple[Any, Any]:
            layers, gradients = program.step(layers, batch)
            return layers, jax.tree.map(lambda gradient: gradient / parameters.batch, gradients)

        return replace(program, step=step)


class TransposedWeights(PerExampleGradients):
    """A square layer's gradients lie as those of torch.nn.Linear do, (out, in)."""

    @variant("pytorch/by-hand")
    def torch_by_hand(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        program = super().torch_by_hand(parameters, arrays, tools)

        def export(layers: Any, gradients: Any) -> Any:
            exported = program.export(layers, gradients)
            return {**exported, "weights1": exported["weights1"].mT}

        return replace(program, export=export)


class OtherParticle(Vmap):
    """Each particle gets the velocity of the one before."""

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        program = super().jax(parameters, arrays, tools)
        return replace(program, step=lambda state, batch: program.step(state, {**batch, "v": batch["v"][::-1]}))


class GaussNewton(Hessian):
    """The curvature of log cosh is taken for 1, as in the approximation A'A."""

    @variant("pytorch/by-hand")
    def torch_by_hand(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        return replace(
            super().torch_by_hand(parameters, arrays, tools), step=lambda x, batch: (x, batch["a"].T @ batch["a"])
        )


class HalfTheExamples(JointGradient):
    """The loss is that of half the examples: of a mini-batch, where the gradient is of the batch."""

    @variant("jax/jit-separate")
    def jit_separate(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        import jax

        program = super().jit_separate(parameters, arrays, tools)

        def step(layers: Any, batch: Any) -> tuple[Any, Any]:
            layers, (_loss, gradient) = program.step(layers, batch)
            half = jax.tree.map(lambda array: array[::2], batch)
            return layers, (program.step(layers, half)[1][0], gradient)

        return replace(program, step=step)


class FirstOrder(ComposedGradients):
    """The gradient within a task is taken for a constant, as first-order MAML has it."""

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        import jax

        def loss_after_a_step(w: Any, x: Any, y: Any, x_test: Any, y_test: Any) -> Any:
            gradient = jax.lax.stop_gradient(jax.grad(loss)(w, x, y))
            return loss(w - composed.RATE * gradient, x_test, y_test)

        def loss(w: Any, x: Any, y: Any) -> Any:
            return ((x @ w - y) ** 2).mean()

        def step(w: Any, data: Any) -> tuple[Any, Any]:
            of_tasks = [data[name] for name in ("x_adapt", "y_adapt", "x_test", "y_test")]
            return w, jax.vmap(jax.grad(loss_after_a_step), (None, 0, 0, 0, 0))(w, *of_tasks).mean(0)

        return replace(super().jax(parameters, arrays, tools), step=step)


class NotRounded(ComposedGradients):
    """The forward pass does not round."""

    @variant("pytorch/autograd")
    def torch_autograd(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        import torch

        program = super().torch_autograd(parameters, arrays, tools)

        def step(w: Any, data: Any) -> tuple[Any, Any]:
            with patch.object(torch, "round", lambda x: x):
                return program.step(w, data)

        return replace(program, step=step)


class RolledOn(Dlpack):
    """The last number comes first."""

    @variant("pytorch/from-jax")
    def from_jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        program = super().from_jax(parameters, arrays, tools)

        def step(state: Any, batch: Any) -> tuple[Any, Any]:
            state, x = program.step(state, batch)
            return state, x.roll(1)

        return replace(program, step=step)
