"""Observed workloads that are wrong in one place each, the way people get them wrong; right in everything else."""

from dataclasses import replace
from typing import Any

from accelbench.workload import Arrays, Program, Tools, variant
from accelbench.workloads.adversarial_gradient import AdversarialGradient
from accelbench.workloads.any_platform import AnyPlatform
from accelbench.workloads.captured_global import CapturedGlobal
from accelbench.workloads.composed_transforms import ComposedTransforms
from accelbench.workloads.data_dependent_branch import DataDependentBranch
from accelbench.workloads.retrace_traps import RetraceTraps
from accelbench.workloads.rng import Rng
from accelbench.workloads.selu import ALPHA, Selu
from accelbench.workloads.side_effects import SideEffects
from accelbench.workloads.static_argument_recompile import StaticArgumentRecompile
from accelbench.workloads.training_curve import TrainingCurve


class Elu(Selu):
    """Not scaled."""

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        import jax.numpy as jnp

        def step(state: Any, batch: Any) -> tuple[Any, Any]:
            x = batch["x"]
            return state, jnp.where(x > 0, x, ALPHA * jnp.expm1(x))

        return replace(super().jax(parameters, arrays, tools), step=step)


class PlatformForgotten(AnyPlatform):
    """Lower for the platform that JAX runs on, whichever is wanted."""

    @variant("jax/eigenvalues")
    def eigenvalues(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        program = super().eigenvalues(parameters, arrays, tools)
        return replace(program, step=lambda x, _platform: program.step(x, "cpu"))


class BranchesExchanged(DataDependentBranch):
    """torch.where and jnp.where take the value for true first; this one thinks otherwise."""

    @variant("jax/jit-where")
    def jit_where(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        import jax
        import jax.numpy as jnp

        def step(state: Any, batch: Any) -> tuple[Any, Any]:
            x = batch["x"]
            return state, jnp.where(x.sum() > 0, -x, 2 * x)

        return replace(super().jit_where(parameters, arrays, tools), step=jax.jit(step))


class FilledWithTheFirst(RetraceTraps):
    """jnp.nonzero's own filling: the first number, again and again."""

    @variant("jax/jit-fixed-size")
    def jit_fixed_size(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        import jax
        import jax.numpy as jnp

        above_zero = jax.jit(lambda x: x[jnp.nonzero(x > 0, size=x.size)])
        program = super().jit_fixed_size(parameters, arrays, tools)
        return replace(program, step=lambda state, batch: (state, above_zero(batch["x"])))


class GivenAsAnArgument(CapturedGlobal):
    """What is captured is an argument, as it should be: no compiled function keeps the old value of one."""

    @variant("jax/jit")
    def jit(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        import jax

        add = jax.jit(lambda x, a: x + a)
        return replace(super().jit(parameters, arrays, tools), step=lambda x, a: (x, add(x, a)))


class NotedByTheCaller(SideEffects):
    """The note is made outside what is compiled."""

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        import jax

        notes: list[str] = []
        add = jax.jit(lambda x: x + 1)

        def step(x: Any, _batch: Any) -> tuple[Any, Any]:
            notes.append("called")
            return add(x), None

        program = super().jax(parameters, arrays, tools)
        return replace(program, step=step, placed=True, observe=lambda _outs: {"sideEffects": len(notes)})


class KeyNotCarried(Rng):
    """Splits the key, and gives the next call the old one."""

    @variant("jax/jit-split-key")
    def jit_split_key(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        program = super().jit_split_key(parameters, arrays, tools)
        return replace(program, step=lambda state, batch: (state, program.step(state, batch)[1]))


class OneTooFew(StaticArgumentRecompile):
    """The last number is left out."""

    @variant("jax/jit-static")
    def jit_static(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        shorter = [{"size": batch["size"] - 1} for batch in arrays.batches]
        return super().jit_static(parameters, replace(arrays, batches=shorter), tools)


class DifferentiatedTwice(ComposedTransforms):
    """Returns the second derivative for the first one too."""

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        program = super().jax(parameters, arrays, tools)

        def step(state: Any, batch: Any) -> tuple[Any, Any]:
            state, derivatives = program.step(state, batch)
            return state, derivatives[1:].repeat(2, axis=0)

        return replace(program, step=step)


class ByTheFirstArgument(AdversarialGradient):
    """Forgets argnums."""

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        return replace(super().jit_forgotten(parameters, arrays, tools), placed=False)


class WrongOrderOfUnits(TrainingCurve):
    """Hidden units of one layer in the order of another: weights copied between libraries that differ in it."""

    @variant("pytorch/eager")
    def eager(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        reversed_units = {**arrays.state, "weights2": arrays.state["weights2"][::-1].copy()}
        wrong = super().eager(parameters, replace(arrays, state=reversed_units), tools)
        return replace(wrong, observe=super().eager(parameters, arrays, tools).observe)


class OtherRate(TrainingCurve):
    """A rate that is 1 % too high."""

    @variant("jax/scan")
    def scan(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        higher = parameters.model_copy(update={"learning_rate": 1.01 * parameters.learning_rate})
        wrong = super().scan(higher, arrays, tools)
        return replace(wrong, observe=super().scan(parameters, arrays, tools).observe)


class OtherMiniBatches(TrainingCurve):
    """The mini-batches of an epoch in another order: what two data loaders give from one seed."""

    @variant("jax/jit")
    def jit(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        turned = [
            {**epoch, **{name: epoch[name][::-1].copy() for name in ("inputs", "labels")}} for epoch in arrays.batches
        ]
        wrong = super().jit(parameters, replace(arrays, batches=turned), tools)
        return replace(wrong, observe=super().jit(parameters, arrays, tools).observe)
