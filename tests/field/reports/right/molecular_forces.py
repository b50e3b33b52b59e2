"""Move particles that attract and repel each other in a periodic box; forces by automatic differentiation.

A step: v <- v + dt F(x), x <- x + dt v. The third variant has the forces written out.
"""

from pydantic import Field

from accelbench.workload import Arrays, Measure, Program, Workload, WorkloadParameters, variant

DT = 0.002
SPACING = 1.2


class LennardJones(Workload):
    """Simulate side^3 particles with the potential 4 (r^-12 - r^-6), by the nearest image."""

    name = "lennard-jones"
    modes = {"jax": ("jit",), "pytorch": ("eager",)}

    class Parameters(WorkloadParameters):
        """Set the size."""

        side: int = Field(default=4, ge=2, le=12, description="Particles along an edge of the box.")

    def measure(self, parameters):
        """Declare the gradients."""
        return Measure(differentiates=True)

    def arrays(self, parameters, rng):
        """Put the particles near the places of a lattice."""
        import numpy as np

        side = parameters.side
        places = np.stack(np.meshgrid(*3 * [np.arange(side)], indexing="ij"), axis=-1).reshape(-1, 3)
        return Arrays(
            state={
                "x": SPACING * places + 0.05 * rng.standard_normal(places.shape),
                "v": 0.1 * rng.standard_normal(places.shape),
            }
        )

    def reference(self, parameters, arrays, units):
        """Write the forces out in NumPy."""
        import numpy as np

        box = SPACING * parameters.side
        x, v = arrays.state["x"], arrays.state["v"]
        self_pairs = np.eye(len(x), dtype=bool)
        for _ in range(units):
            d = x[:, None] - x[None]
            d = d - box * np.round(d / box)
            r2 = np.where(self_pairs, 1.0, (d**2).sum(-1))
            energy = 2 * (np.where(self_pairs, 0, r2**-6 - r2**-3)).sum()
            pull = np.where(self_pairs, 0, 48 * r2**-7 - 24 * r2**-4)
            v = v + DT * (pull[..., None] * d).sum(axis=1)
            x = x + DT * v
        return {"x": x, "v": v, "energy": energy}

    def jax(self, parameters, arrays, tools):
        """Use jax.grad."""
        import jax
        import jax.numpy as jnp

        box = SPACING * parameters.side

        def energy(x):
            d = x[:, None] - x[None]
            d = d - box * jnp.round(d / box)
            self_pairs = jnp.eye(x.shape[0], dtype=bool)
            r2 = jnp.where(self_pairs, 1.0, (d**2).sum(-1))
            inverse = 1 / r2**3
            return 2 * jnp.where(self_pairs, 0.0, inverse**2 - inverse).sum()

        def step(state, batch):
            value, gradient = jax.value_and_grad(energy)(state["x"])
            v = state["v"] - DT * gradient
            return {"x": state["x"] + DT * v, "v": v}, value

        return self._program(step, arrays, tools)

    def pytorch(self, parameters, arrays, tools):
        """Use backward()."""
        import torch

        box = SPACING * parameters.side

        def energy(x):
            d = x[:, None] - x[None]
            d = d - box * torch.round(d / box)
            self_pairs = torch.eye(x.shape[0], dtype=torch.bool, device=x.device)
            r2 = (d**2).sum(-1).masked_fill(self_pairs, 1.0)
            inverse = 1 / r2**3
            return 2 * (inverse**2 - inverse).masked_fill(self_pairs, 0.0).sum()

        def step(state, batch):
            x = state["x"].detach().requires_grad_()
            value = energy(x)
            value.backward()
            v = state["v"] - DT * x.grad
            return {"x": x.detach() + DT * v, "v": v}, value.detach()

        return self._program(step, arrays, tools)

    @variant("pytorch/by-hand")
    def by_hand(self, parameters, arrays, tools):
        """Write the forces out."""
        import torch

        box = SPACING * parameters.side

        def step(state, batch):
            x = state["x"]
            d = x[:, None] - x[None]
            d = d - box * torch.round(d / box)
            self_pairs = torch.eye(x.shape[0], dtype=torch.bool, device=x.device)
            r2 = (d**2).sum(-1).masked_fill(self_pairs, 1.0)
            inverse = 1 / r2**3
            value = 2 * (inverse**2 - inverse).masked_fill(self_pairs, 0.0).sum()
            pull = ((48 * inverse**2 - 24 * inverse) / r2).masked_fill(self_pairs, 0.0)
            v = state["v"] + DT * (pull[..., None] * d).sum(dim=1)
            return {"x": x + DT * v, "v": v}, value

        return self._program(step, arrays, tools, placed=True)

    def _program(self, step, arrays, tools, *, placed=False):
        return Program(
            state=tools.put(dict(arrays.state)),
            step=step,
            placed=placed,
            export=lambda state, energy: {**state, "energy": energy},
        )
