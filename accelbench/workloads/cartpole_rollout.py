"""Measure a reinforcement-learning environment: many cart-poles at once, each of which restarts when its pole falls."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import Field

from accelbench.picture import Panel, Picture
from accelbench.workload import (
    Array,
    Arrays,
    Cost,
    NamedArrays,
    Program,
    Tools,
    Workload,
    WorkloadParameters,
    variant,
)
from accelbench.workloads import _placed as placed

if TYPE_CHECKING:
    from numpy.random import Generator

GRAVITY, CART, POLE, HALF_LENGTH, FORCE, DT = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02
"""Constants of Gymnasium's CartPole-v1: gravity in m/s^2, masses in kg, half the pole's length in m, the force of a
push in N, the time step in s."""
MAXIMUM_X, MAXIMUM_ANGLE = 2.4, math.radians(12)
"""Limits of the cart's position in m and the pole's angle in radians; beyond one of them, an episode ends."""
MARGIN = 1e-4
"""Least distance from these limits, in m or radians: a rounding error must not decide when an episode ends."""
ATTEMPTS = 100
"""How many times actions are drawn again, at most, if they come closer to a limit; a few are always enough."""
DRAWN, MAXIMUM_DRAWN_STEPS = 5, 2**20
"""Environments in a picture, and the largest number of steps, of all environments together, that it may need."""


class CartpoleRollout(Workload):
    """Push carts with poles left or right, by given actions; each of `steps` steps is one of Euler's method.

    Row 51 of the claims: vectorised environments are "exceptionally efficient". The equations are those of Barto,
    Sutton and Anderson (1983) as Gymnasium's CartPole-v1 has them, with its constants and limits. If a cart or a pole
    is beyond its limit, the next state is a new start. Actions are data, drawn at random, because a policy would be
    another computation. The numbers of ended episodes are compared too. One unit is a step of all environments.
    """

    name = "cartpole-rollout"
    modes = {"jax": ("scan", "op-by-op"), "pytorch": ("eager",), "numpy": ("eager",)}

    class Parameters(WorkloadParameters):
        """Set how many environments there are, and the length of a rollout."""

        environments: int = Field(default=1024, ge=1, le=2**22, description="Carts that move independently.")
        steps: int = Field(default=50, ge=1, le=1000, description="Steps of a rollout, which is one call.")

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Draw small states (environments, 4); for each step, draw actions 1 or -1 and the states of new starts."""
        shape = (parameters.steps, parameters.environments)
        start = rng.uniform(-0.05, 0.05, (parameters.environments, 4))
        actions, starts = rng.choice((-1.0, 1.0), shape), rng.uniform(-0.05, 0.05, (*shape, 4))
        for _ in range(ATTEMPTS):
            # For environments that come close to a limit, draw other actions.
            close = _come_close(start, actions, starts)
            if not close.any():
                break
            actions[:, close] = rng.choice((-1.0, 1.0), (parameters.steps, int(close.sum())))
        batches = [{"actions": actions[step], "starts": starts[step]} for step in range(parameters.steps)]
        return Arrays(state={"state": start, "episodes": 0 * start[:, 0]}, batches=batches)

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """Make `units` steps of all environments in NumPy."""
        import numpy as np

        state = arrays.state
        for unit in range(units):
            state = _advance(np, state, arrays.batches[unit % parameters.steps])
        return dict(state)

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Count 40 operations for each environment; actions and new starts are read.

        States and counts of episodes are read and written.
        Sine and cosine 2, accelerations 24, Euler's method 8, limits 4, the count of episodes and the force 2.
        """
        n = parameters.environments
        return Cost(flops=40.0 * n, bytes=15.0 * n * float_bytes)

    def picture(self, parameters: Parameters, rng: "Generator") -> Picture | None:
        """Draw the angles of a few poles and the positions of their carts."""
        import numpy as np

        if parameters.environments * parameters.steps > MAXIMUM_DRAWN_STEPS:
            return None
        arrays = self.arrays(parameters, rng)
        states: list[Any] = [arrays.state]
        for batch in arrays.batches:
            states.append(_advance(np, states[-1], batch))
        time, drawn = DT * np.arange(parameters.steps + 1), range(min(DRAWN, parameters.environments))
        paths = np.stack([state["state"] for state in states])  # (steps + 1, environments, 4)
        return Picture(
            caption=(
                f"A pole that falls beyond {math.degrees(MAXIMUM_ANGLE):.0f} degrees starts anew, with its cart; in "
                f"{parameters.environments} environments {int(states[-1]['episodes'].sum())} episodes ended."
            ),
            panels=tuple(
                Panel(
                    f"{len(drawn)} {what} under random pushes",
                    x="time in s",
                    y=label,
                    curves={f"{index + 1}": (time, scale * paths[:, index, column]) for index in drawn},
                    legend=False,
                )
                # Column 2 of a state is the pole's angle, column 0 is the cart's position.
                for what, label, column, scale in (
                    ("poles", "angle in degrees", 2, math.degrees(1)),
                    ("carts", "position in m", 0, 1.0),
                )
            ),
        )

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Write one environment, and map it over all of them with jax.vmap."""
        import jax
        import jax.numpy as jnp

        def one(state: Any, batch: Any) -> Any:
            """Make a step of one environment: the arrays of `state` and `batch` have no axis of environments."""
            return _advance(jnp, state, batch)

        return _program(parameters, arrays, tools, jax.vmap(one))

    @variant("jax/jit-step")
    def jit_step(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compile one step of all environments, and call it in a Python loop."""
        import jax

        program = self.jax(parameters, arrays, tools)
        return replace(program, step=jax.jit(program.step), placed=True)

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Write each operation for all environments at once."""
        import torch

        return _program(parameters, arrays, tools, lambda state, batch: _advance(torch, state, batch))

    @variant("pytorch/compile-step", in_mode="compile")
    def compile_step(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compile one step of all environments with torch.compile, and call it in a Python loop."""
        return placed.compiled_as_one_graph(self.pytorch(parameters, arrays, tools), tools)

    def numpy(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Write each operation for all environments at once, as in Gymnasium's vectorised CartPole."""
        import numpy as np

        return _program(parameters, arrays, tools, lambda state, batch: _advance(np, state, batch))

    @variant("numpy/one-by-one")
    def one_by_one(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Make a step of one environment after another in Python, as with Gymnasium's CartPole."""
        import numpy as np

        def advance(state: Any, batch: Any) -> dict[str, Any]:
            """Make a step of each environment, in a Python loop."""
            rows = zip(state["state"], state["episodes"], batch["actions"], batch["starts"], strict=True)
            stepped = [
                _advance(np, {"state": s, "episodes": episodes}, {"actions": action, "starts": start})
                for s, episodes, action, start in rows
            ]
            return {name: np.stack([each[name] for each in stepped]) for name in state}

        return replace(_program(parameters, arrays, tools, advance), placed=True)


def accelerations(xp: Any, state: Any, force: Any) -> tuple[Any, Any]:
    """Return the cart's acceleration in m/s^2 and the pole's angular acceleration in 1/s^2.

    `xp` is the module of the framework's functions; the last axis of `state` has position, speed, angle, angular speed.
    """
    sine, cosine = xp.sin(state[..., 2]), xp.cos(state[..., 2])
    # `push` is the cart's acceleration before the reaction of the pole is subtracted.
    push = (force + POLE * HALF_LENGTH * state[..., 3] * state[..., 3] * sine) / (CART + POLE)
    angular = (GRAVITY * sine - cosine * push) / (HALF_LENGTH * (4.0 / 3.0 - POLE * cosine * cosine / (CART + POLE)))
    return push - POLE * HALF_LENGTH * angular * cosine / (CART + POLE), angular


def _euler(xp: Any, state: Any, actions: Any) -> Any:
    """Return the states 0.02 s later; the action 1 pushes right with 10 N, -1 left."""
    acceleration, angular_acceleration = accelerations(xp, state, FORCE * actions)
    rates = xp.stack([state[..., 1], acceleration, state[..., 3], angular_acceleration], -1)
    return state + DT * rates


def _advance(xp: Any, state: Any, batch: Any) -> dict[str, Any]:
    """Return the next states and numbers of ended episodes; environments that pass a limit restart."""
    moved = _euler(xp, state["state"], batch["actions"])
    ended = (xp.abs(moved[..., 0]) > MAXIMUM_X) | (xp.abs(moved[..., 2]) > MAXIMUM_ANGLE)
    return {
        "state": xp.where(ended[..., None], batch["starts"], moved),
        "episodes": xp.where(ended, state["episodes"] + 1, state["episodes"]),
    }


def _come_close(start: Array, actions: Array, starts: Array) -> Array:
    """Return True for each environment that comes within `MARGIN` of a limit in the first rollout."""
    import numpy as np

    state: Any = {"state": start, "episodes": 0 * start[:, 0]}
    close = np.zeros(len(start), bool)
    for step_actions, step_starts in zip(actions, starts, strict=True):
        moved = _euler(np, state["state"], step_actions)
        for column, limit in ((0, MAXIMUM_X), (2, MAXIMUM_ANGLE)):
            close |= abs(abs(moved[:, column]) - limit) < MARGIN
        state = _advance(np, state, {"actions": step_actions, "starts": step_starts})
    return close


def _program(parameters: CartpoleRollout.Parameters, arrays: Arrays, tools: Tools, advance: Any) -> Program:
    """Return a program whose call is a rollout; `advance` maps (state, batch) to the next state."""
    return Program(
        state=tools.put(dict(arrays.state)),
        step=lambda state, batch: (advance(state, batch), None),
        batches=[tools.put(batch) for batch in arrays.batches],
        inner=parameters.steps,
        export=lambda state, _: state,
    )
