"""Simulations and fits that are wrong in one place each, the way people get them wrong; right in everything else."""

from dataclasses import replace
from typing import Any
from unittest.mock import patch

from accelbench.workload import Arrays, Program, Tools, variant
from accelbench.workloads import cartpole_rollout, lennard_jones, photometric_stereo
from accelbench.workloads.cartpole_rollout import CartpoleRollout
from accelbench.workloads.heat_equation import HeatEquation
from accelbench.workloads.lennard_jones import LennardJones
from accelbench.workloads.neural_ode import NeuralOde
from accelbench.workloads.photometric_stereo import PhotometricStereo


class EdgesJoined(HeatEquation):
    """Rolled without a mask: the square is a torus."""

    def jax_roll(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        program = super().jax_roll(parameters, arrays, tools)
        return replace(program, batches=(program.batches[0] | True,))


class NeighboursOfThisStep(HeatEquation):
    """Row by row in place: the neighbour above has already changed."""

    def pytorch(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        def step(u: Any, _: Any) -> tuple[Any, None]:
            for row in range(1, len(u) - 1):
                neighbours = u[row - 1, 1:-1] + u[row + 1, 1:-1] + u[row, :-2] + u[row, 2:]
                u[row, 1:-1] += parameters.ratio * (neighbours - 4 * u[row, 1:-1])
            return u, None

        return replace(super().pytorch(parameters, arrays, tools), step=step)


class MerelyCutOff(LennardJones):
    """The force jumps to 0 at the cut-off."""

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        program = super().jax(parameters, arrays, tools)

        def step(state: Any, batch: Any) -> tuple[Any, Any]:
            with patch.object(lennard_jones, "_force", lambda _: 0.0):
                return program.step(state, batch)

        return replace(program, step=step)


class OneKick(LennardJones):
    """A whole kick before the move and none after it: Euler's symplectic method, of first order."""

    def pytorch(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        program = super().pytorch(parameters, arrays, tools)

        def step(state: Any, batch: Any) -> tuple[Any, Any]:
            moved, out = program.step({**state, "v": state["v"] + parameters.dt / 2 * state["f"]}, batch)
            return {**moved, "v": moved["v"] - parameters.dt / 2 * moved["f"]}, out

        return replace(program, step=step)


class NeverAnew(CartpoleRollout):
    """Fallen poles fall on."""

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        program = super().jax(parameters, arrays, tools)

        def step(state: Any, batch: Any) -> tuple[Any, Any]:
            with patch.object(cartpole_rollout, "MAXIMUM_ANGLE", 100.0):
                return program.step(state, batch)

        return replace(program, step=step)


class SemiImplicit(CartpoleRollout):
    """Positions move with the new speeds: Gymnasium's other integrator."""

    def numpy(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        program = super().numpy(parameters, arrays, tools)
        euler = cartpole_rollout._euler

        def semi_implicit(xp: Any, state: Any, actions: Any) -> Any:
            moved = euler(xp, state, actions)
            change = moved - state  # of positions and speeds, which alternate
            change[..., ::2] += cartpole_rollout.DT * change[..., 1::2]
            return state + change

        def step(state: Any, batch: Any) -> tuple[Any, Any]:
            with patch.object(cartpole_rollout, "_euler", semi_implicit):
                return program.step(state, batch)

        return replace(program, step=step)


class NoShadows(PhotometricStereo):
    """Lights from behind a pixel darken it: its brightness may be negative."""

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        program = super().jax(parameters, arrays, tools)

        def error_without_shadows(_: Any, b: Any, batch: Any) -> Any:
            return ((batch["lights"] @ b.T - batch["images"]) ** 2).sum()

        def step(start: Any, batch: Any) -> tuple[Any, Any]:
            with patch.object(photometric_stereo, "squared_error", error_without_shadows):
                return program.step(start, batch)

        return replace(program, step=step)


class LargerError(PhotometricStereo):
    """The fit ends at an error that is ten times as large as the others'."""

    @variant("numpy/scipy")
    def scipy(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        program = super().scipy(parameters, arrays, tools)

        def step(start: Any, batch: Any) -> tuple[Any, Any]:
            with patch.object(photometric_stereo, "TARGET", 10 * photometric_stereo.TARGET):
                return program.step(start, batch)

        return replace(program, step=step)


class OneStepFewer(NeuralOde):
    """Steps as long as before, and one of them fewer."""

    def pytorch(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        steps = parameters.steps - 1
        shorter = {"steps": steps, "time": parameters.time * steps / parameters.steps}
        return super().pytorch(parameters.model_copy(update=shorter), arrays, tools)


class HalfTheTime(NeuralOde):
    """The network's solution ends before the targets' time."""

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        return super().jax(parameters.model_copy(update={"time": parameters.time / 2}), arrays, tools)
