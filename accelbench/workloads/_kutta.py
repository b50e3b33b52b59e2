"""Solve differential equations by Kutta's 3/8 rule, with gradients by hand, errors and a picture of the solution."""

from collections.abc import Callable
from typing import Any

from accelbench.picture import Panel, Picture
from accelbench.workload import Array, NamedArrays

EXACT_STEPS = 8192
"""Steps of the solution that is taken as exact when the error of adaptive steps is computed."""
VectorField = Callable[[Any], Any]
"""Maps z (batch, 2) to dz/dt."""


def pendulum(xp: Any, z: Any) -> Any:
    """Return dz/dt of pendulums, where the last axis of z is (angle, speed): (speed, -sin(angle)).

    `xp` is the module of the framework's functions: numpy, jax.numpy or torch.
    """
    return xp.stack([z[..., 1], -xp.sin(z[..., 0])], -1)


def path(field: VectorField, z: Array, h: float, steps: int) -> Array:
    """Return z at the start and after each of `steps` steps of size h, as (steps + 1, batch, 2), in NumPy."""
    import numpy as np

    states = [z]
    for _ in range(steps):
        states.append(step(field, states[-1], h))
    return np.stack(states)


def errors(start: Array, end: Array, time: float) -> dict[str, str]:
    """Return the largest error of `end`, the pendulums at `time`, and the largest change of energy since `start`.

    The error is the difference from a solution with `EXACT_STEPS` steps. Both numbers are texts of two digits.
    """
    import numpy as np

    exact = solve(lambda z: pendulum(np, z), start, time / EXACT_STEPS, EXACT_STEPS)
    return {
        "largestError": f"{np.abs(end - exact).max():.2g}",
        "energyDrift": f"{np.abs(energy(end) - energy(start)).max():.2g}",
    }


def energy(z: Array) -> Array:
    """Return the energy of each pendulum (batch,), kinetic and potential; 0 if it hangs at rest."""
    import numpy as np

    total: Array = z[..., 1] ** 2 / 2 + 1 - np.cos(z[..., 0])
    return total


def solve(field: VectorField, z: Any, h: float, steps: int) -> Any:
    """Return z after `steps` steps of size h, in a Python loop, in any framework."""
    for _ in range(steps):
        z = step(field, z, h)
    return z


def convergence(z: Array, time: float, counts: list[int]) -> Array:
    """Return the largest error of the pendulums at `time` for each number of steps in `counts`.

    The error is the difference from a solution with eight times as many steps as the last number.
    """
    import numpy as np

    def end(steps: int) -> Array:
        """Return z at `time`, after that many steps."""
        solution: Array = solve(lambda z: pendulum(np, z), z, time / steps, steps)
        return solution

    exact = end(8 * counts[-1])
    return np.array([np.abs(end(steps) - exact).max() for steps in counts])


def step(field: VectorField, z: Any, h: float) -> Any:
    """Return z after a step of size h by Kutta's 3/8 rule, which is of fourth order (Kutta 1901)."""
    k1 = field(z)
    k2 = field(z + h / 3 * k1)
    k3 = field(z + h * (k2 - k1 / 3))
    k4 = field(z + h * (k1 - k2 + k3))
    return z + h / 8 * (k1 + 3 * (k2 + k3) + k4)


def vector_field(xp: Any, weights: Any) -> VectorField:
    """Return the network with these weights or, if `weights` is None, the pendulum, as a function from z to dz/dt."""
    if weights is None:
        return lambda z: pendulum(xp, z)
    return lambda z: xp.tanh(z @ weights["w1"] + weights["b1"]) @ weights["w2"] + weights["b2"]


def diffrax_solver() -> Any:
    """Return Kutta's 3/8 rule as a solver of diffrax, which has no fourth-order rule with four evaluations."""
    import diffrax
    import numpy as np

    rows = ([1 / 3], [-1 / 3, 1.0], [1.0, -1.0, 1.0])

    class Kutta(diffrax.AbstractERK):  # type: ignore[misc]
        """Define the rule by its coefficients; the estimate of the error, which fixed steps ignore, is 0."""

        tableau = diffrax.ButcherTableau(
            c=np.array([1 / 3, 2 / 3, 1.0]),
            a_lower=tuple(np.array(row) for row in rows),
            b_sol=np.array([1 / 8, 3 / 8, 3 / 8, 1 / 8]),
            b_error=np.zeros(4),
        )
        interpolation_cls = diffrax.ThirdOrderHermitePolynomialInterpolation.from_k

        def order(self, terms: Any) -> int:
            """Return the order of the rule."""
            del terms
            return 4

    return Kutta()


def gradients(weights: NamedArrays, batch: NamedArrays, h: float, steps: int) -> dict[str, Array]:
    """Return the gradient of each weight, by the chain rule in NumPy; the loss is the mean squared error of the last z.

    A name `d_x` stands for the gradient of the loss with respect to x.
    """
    import numpy as np

    field = vector_field(np, weights)
    states = path(field, batch["z"], h, steps)
    sums = {name: np.zeros_like(array) for name, array in weights.items()}

    def back(z: Array, d_rate: Array) -> Array:
        """Add to the weights' gradients; return the gradient with respect to z, from that with respect to field(z)."""
        hidden = np.tanh(z @ weights["w1"] + weights["b1"])
        d_hidden = d_rate @ weights["w2"].T * (1 - hidden**2)
        sums["w2"] += hidden.T @ d_rate
        sums["b2"] += d_rate.sum(0)
        sums["w1"] += z.T @ d_hidden
        sums["b1"] += d_hidden.sum(0)
        d_z: Array = d_hidden @ weights["w1"].T
        return d_z

    d_z = 2 * (states[-1] - batch["targets"]) / batch["targets"].size
    for z in reversed(states[:-1]):
        # A step evaluates the field at z, z2, z3 and z4, as in `step`; each evaluation has a gradient.
        k1 = field(z)
        z2 = z + h / 3 * k1
        k2 = field(z2)
        z3 = z + h * (k2 - k1 / 3)
        z4 = z + h * (k1 - k2 + field(z3))
        d_z4 = back(z4, h / 8 * d_z)
        d_z3 = back(z3, 3 * h / 8 * d_z + h * d_z4)
        d_z2 = back(z2, 3 * h / 8 * d_z - h * d_z4 + h * d_z3)
        d_z1 = back(z, h / 8 * d_z + h * d_z4 - h / 3 * d_z3 + h / 3 * d_z2)
        d_z = d_z + d_z1 + d_z2 + d_z3 + d_z4
    return sums


def picture(z: Array, time: float, steps: int) -> Picture:
    """Draw pendulums that start at z in the plane of angle and speed, and the error for fewer and more steps."""
    import numpy as np

    paths = path(lambda z: pendulum(np, z), z, time / steps, steps)
    largest = convergence(z, time, counts := [32, 64, 128, 256, 512])
    theory = largest[-1] * (counts[-1] / np.array(counts)) ** 4  # the rule is of fourth order
    return Picture(
        caption="Pendulums in the plane of angle and speed; and the error, which falls with the fourth power of h.",
        panels=(
            Panel(
                "Pendulums",
                x="angle in rad",
                y="speed in rad/s",
                curves={f"{index + 1}": (paths[:, index, 0], paths[:, index, 1]) for index in range(len(z))},
                legend=False,
            ),
            Panel(
                "Error of the solution",
                x="steps",
                y="largest error in rad",
                curves={"fourth order": (np.array(counts), theory)},
                points={"computed": (np.array(counts), largest)},
                logarithmic="both",
            ),
        ),
    )
