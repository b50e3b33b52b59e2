"""Integrate the gravitation of N bodies by velocity Verlet, with softened forces between all pairs.

The state is positions and velocities; masses are the batch, ten steps make a call. The reference is NumPy.
"""

from pydantic import Field

from accelbench.workload import Arrays, Cost, Measure, Program, Workload, WorkloadParameters

G, SOFTENING = 1.0, 0.1


class NbodyVerlet(Workload):
    """Move all bodies by one time step."""

    name = "nbody-verlet"
    modes = {"jax": ("jit", "scan"), "pytorch": ("eager",)}

    class Parameters(WorkloadParameters):
        """Set the number of bodies and the time step."""

        bodies: int = Field(default=100, ge=2, le=5000, description="Number of bodies.")
        dt: float = Field(default=0.01, gt=0, le=1, description="Time step.")
        steps: int = Field(default=10, ge=1, le=1000, description="Steps of a call.")

    def measure(self, parameters):
        """Compare after a whole call."""
        return Measure(parity_units=parameters.steps)

    def arrays(self, parameters, rng):
        """Draw a cloud."""
        n = parameters.bodies
        return Arrays(
            state={"position": rng.standard_normal((n, 3)), "velocity": 0.1 * rng.standard_normal((n, 3))},
            batches=[{"mass": (rng.random(n) + 0.5) / n}],
        )

    def reference(self, parameters, arrays, units):
        """Take the same steps in NumPy."""

        x, v = arrays.state["position"], arrays.state["velocity"]
        mass = arrays.batches[0]["mass"]

        def acceleration(x):
            difference = x[None, :, :] - x[:, None, :]
            squared = (difference**2).sum(-1) + SOFTENING**2
            return G * (difference * (mass[None, :] / squared**1.5)[..., None]).sum(1)

        for _ in range(units):
            half = v + 0.5 * parameters.dt * acceleration(x)
            x = x + parameters.dt * half
            v = half + 0.5 * parameters.dt * acceleration(x)
        return {"position": x, "velocity": v, "kinetic": 0.5 * (mass * (v**2).sum(1)).sum()}

    def cost(self, parameters, float_bytes):
        """Count about 16 operations for each pair, twice."""
        n = parameters.bodies
        return Cost(flops=2 * 16.0 * n * n, bytes=2 * 6.0 * n * float_bytes)

    def jax(self, parameters, arrays, tools):
        """Broadcast over pairs."""

        def acceleration(x, mass):
            difference = x[None, :, :] - x[:, None, :]
            squared = (difference**2).sum(-1) + SOFTENING**2
            return G * (difference * (mass[None, :] * squared**-1.5)[..., None]).sum(1)

        return self._program(acceleration, parameters, arrays, tools)

    def pytorch(self, parameters, arrays, tools):
        """Use a product for the sum over bodies."""
        import torch

        def acceleration(x, mass):
            difference = x[None, :, :] - x[:, None, :]
            squared = (difference**2).sum(-1) + SOFTENING**2
            return G * torch.einsum("ijk,ij->ik", difference, mass[None, :] * squared**-1.5)

        return self._program(acceleration, parameters, arrays, tools)

    def _program(self, acceleration, parameters, arrays, tools):
        dt = parameters.dt

        def step(state, batch):
            x, v, mass = state["position"], state["velocity"], batch["mass"]
            half = v + 0.5 * dt * acceleration(x, mass)
            x = x + dt * half
            v = half + 0.5 * dt * acceleration(x, mass)
            return {"position": x, "velocity": v}, 0.5 * (mass * (v**2).sum(1)).sum()

        return Program(
            state=tools.put(arrays.state),
            step=step,
            batches=[tools.put(batch) for batch in arrays.batches],
            inner=parameters.steps,
            export=lambda state, kinetic: {**state, "kinetic": kinetic},
        )
