"""Train a network to solve u'' = -pi^2 sin(pi x) on [-1, 1], by Adam: second derivatives in the loss.

The loss is the mean square of the residual plus the squares of u at both ends.
"""

import math

from pydantic import Field

from accelbench.workload import Arrays, Measure, Program, Workload, WorkloadParameters

RATE = 1e-3
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


class PoissonNetwork(Workload):
    """Make steps of Adam on the residual of a differential equation at random points."""

    name = "poisson-network"
    modes = {"jax": ("jit",), "pytorch": ("eager",)}

    class Parameters(WorkloadParameters):
        """Set the sizes."""

        points: int = Field(default=128, ge=2, le=100_000, description="Points of a batch.")
        width: int = Field(default=32, ge=1, le=1024, description="Units of each of the two hidden layers.")

    def measure(self, parameters):
        """Declare the gradients."""
        return Measure(differentiates=True)

    def arrays(self, parameters, rng):
        """Draw weights and points."""
        width = parameters.width
        return Arrays(
            state={
                "w1": rng.standard_normal((1, width)),
                "b1": 0.1 * rng.standard_normal(width),
                "w2": rng.standard_normal((width, width)) / width**0.5,
                "b2": 0.1 * rng.standard_normal(width),
                "w3": rng.standard_normal((width, 1)) / width**0.5,
                "b3": 0.1 * rng.standard_normal(1),
            },
            batches=[{"x": rng.uniform(-1, 1, (parameters.points, 1))} for _ in range(2)],
        )

    def jax(self, parameters, arrays, tools):
        """Differentiate a scalar network twice under vmap; optax has Adam."""
        import jax
        import jax.numpy as jnp
        import optax

        optimizer = optax.adam(RATE, b1=BETA1, b2=BETA2, eps=EPSILON)

        def u(w, x):
            hidden = jnp.tanh(x * w["w1"][0] + w["b1"])
            hidden = jnp.tanh(hidden @ w["w2"] + w["b2"])
            return (hidden @ w["w3"] + w["b3"])[0]

        second = jax.vmap(jax.grad(jax.grad(u, argnums=1), argnums=1), in_axes=(None, 0))

        def loss(w, batch):
            x = batch["x"][:, 0]
            residual = second(w, x) + math.pi**2 * jnp.sin(math.pi * x)
            return (residual**2).mean() + u(w, -1.0) ** 2 + u(w, 1.0) ** 2

        def step(state, batch):
            w, memory = state
            value, gradient = jax.value_and_grad(loss)(w, batch)
            updates, memory = optimizer.update(gradient, memory)
            return (optax.apply_updates(w, updates), memory), value

        w = tools.put(dict(arrays.state))
        return self._program((w, optimizer.init(w)), step, arrays, tools)

    def pytorch(self, parameters, arrays, tools):
        """Differentiate sums with create_graph; Adam is written out."""
        import torch

        def u(w, x):
            hidden = torch.tanh(x @ w["w1"] + w["b1"])
            hidden = torch.tanh(hidden @ w["w2"] + w["b2"])
            return hidden @ w["w3"] + w["b3"]

        def step(state, batch):
            w, first, second, count = state
            w = {name: value.detach().requires_grad_() for name, value in w.items()}
            x = batch["x"].detach().requires_grad_()
            (slope,) = torch.autograd.grad(u(w, x).sum(), x, create_graph=True)
            (curvature,) = torch.autograd.grad(slope.sum(), x, create_graph=True)
            residual = curvature + math.pi**2 * torch.sin(math.pi * x)
            ends = u(w, torch.tensor([[-1.0], [1.0]], dtype=x.dtype, device=x.device))
            value = (residual**2).mean() + (ends**2).sum()
            gradient = dict(zip(w, torch.autograd.grad(value, list(w.values()))))
            with torch.no_grad():
                count = count + 1
                first = {name: BETA1 * first[name] + (1 - BETA1) * gradient[name] for name in w}
                second = {name: BETA2 * second[name] + (1 - BETA2) * gradient[name] ** 2 for name in w}
                new = {}
                for name in w:
                    m = first[name] / (1 - BETA1**count)
                    v = second[name] / (1 - BETA2**count)
                    new[name] = w[name] - RATE * m / (v.sqrt() + EPSILON)
            return (new, first, second, count), value.detach()

        w = tools.put(dict(arrays.state))
        zeros = {name: torch.zeros_like(value) for name, value in w.items()}
        count = torch.zeros((), dtype=w["w1"].dtype, device=w["w1"].device)
        return self._program((w, zeros, dict(zeros), count), step, arrays, tools)

    def _program(self, state, step, arrays, tools):
        return Program(
            state=state,
            step=step,
            batches=[tools.put(batch) for batch in arrays.batches],
            inner=len(arrays.batches),
            export=lambda state, loss: {**state[0], "loss": loss},
        )
