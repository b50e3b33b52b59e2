"""Train a small network with RMSProp, as optax and as PyTorch define it with the epsilon outside of the root.

Update: n <- 0.99 n + 0.01 g^2, w <- w - 0.01 g / (sqrt(n) + 0.01).
"""

from pydantic import Field

from accelbench.workload import Arrays, Measure, Program, Workload, WorkloadParameters

RATE = 0.01
DECAY = 0.99
EPSILON = 0.01


class RmspropStep(Workload):
    """Make steps of RMSProp on the mean square error of a network with one hidden layer."""

    name = "rmsprop-step"
    modes = {"jax": ("jit",), "pytorch": ("eager",)}

    class Parameters(WorkloadParameters):
        """Set the sizes."""

        rows: int = Field(default=128, ge=1, le=10_000, description="Rows of a batch.")
        width: int = Field(default=128, ge=1, le=4096, description="Hidden units.")
        batches: int = Field(default=4, ge=1, le=100, description="Batches; a call makes a step on each.")

    def measure(self, parameters):
        """Declare that steps compute gradients."""
        return Measure(differentiates=True)

    def arrays(self, parameters, rng):
        """Draw weights and batches."""
        p = parameters
        state = {
            "w1": rng.standard_normal((16, p.width)) / 4,
            "b1": 0.1 * rng.standard_normal(p.width),
            "w2": rng.standard_normal((p.width, 1)) / p.width**0.5,
            "b2": 0.1 * rng.standard_normal(1),
        }
        batches = [
            {"x": rng.standard_normal((p.rows, 16)), "y": rng.standard_normal((p.rows, 1))} for _ in range(p.batches)
        ]
        return Arrays(state=state, batches=batches)

    def jax(self, parameters, arrays, tools):
        """Use optax, with eps_in_sqrt=False."""
        import jax
        import jax.numpy as jnp
        import optax

        optimizer = optax.rmsprop(RATE, decay=DECAY, eps=EPSILON, eps_in_sqrt=False)

        def loss(w, batch):
            hidden = jnp.tanh(batch["x"] @ w["w1"] + w["b1"])
            return ((hidden @ w["w2"] + w["b2"] - batch["y"]) ** 2).mean()

        def step(state, batch):
            w, memory = state
            value, gradient = jax.value_and_grad(loss)(w, batch)
            updates, memory = optimizer.update(gradient, memory, w)
            return (optax.apply_updates(w, updates), memory), value

        w = tools.put(dict(arrays.state))
        return self._program((w, optimizer.init(w)), step, arrays, tools)

    def pytorch(self, parameters, arrays, tools):
        """Write the update out, with the mean squares in the state."""
        import torch

        def step(state, batch):
            w, squares = state
            w = {name: value.detach().requires_grad_() for name, value in w.items()}
            hidden = torch.tanh(batch["x"] @ w["w1"] + w["b1"])
            value = ((hidden @ w["w2"] + w["b2"] - batch["y"]) ** 2).mean()
            value.backward()
            with torch.no_grad():
                squares = {name: DECAY * squares[name] + (1 - DECAY) * w[name].grad ** 2 for name in w}
                w = {name: w[name] - RATE * w[name].grad / (squares[name].sqrt() + EPSILON) for name in w}
            return (w, squares), value.detach()

        w = tools.put(dict(arrays.state))
        return self._program((w, {name: torch.zeros_like(value) for name, value in w.items()}), step, arrays, tools)

    def _program(self, state, step, arrays, tools):
        return Program(
            state=state,
            step=step,
            batches=[tools.put(batch) for batch in arrays.batches],
            inner=len(arrays.batches),
            export=lambda state, loss: {**state[0], "loss": loss},
        )
