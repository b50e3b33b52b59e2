"""Train a linear model by Adam: optax on one side, written out on the other.

The one that is written out forgets to correct the bias of both averages.
"""

from pydantic import Field

from accelbench.workload import Arrays, Measure, Program, Workload, WorkloadParameters


class AdamPlain(Workload):
    """Make steps of Adam on the mean square error of a linear model."""

    name = "adam-plain"
    modes = {"jax": ("jit",), "pytorch": ("eager",)}

    class Parameters(WorkloadParameters):
        """Set the sizes."""

        rows: int = Field(default=256, ge=1, le=100_000, description="Rows of a batch.")
        features: int = Field(default=128, ge=1, le=10_000, description="Weights.")

    def measure(self, parameters):
        """Declare the gradients."""
        return Measure(differentiates=True)

    def arrays(self, parameters, rng):
        """Draw weights and two batches."""
        p = parameters
        return Arrays(
            state={"w": rng.standard_normal(p.features) / p.features**0.5},
            batches=[
                {"x": rng.standard_normal((p.rows, p.features)), "y": rng.standard_normal(p.rows)} for _ in range(2)
            ],
        )

    def jax(self, parameters, arrays, tools):
        """Use optax."""
        import jax
        import optax

        optimizer = optax.adam(1e-2)

        def step(state, batch):
            w, memory = state
            value, gradient = jax.value_and_grad(lambda w: ((batch["x"] @ w - batch["y"]) ** 2).mean())(w)
            updates, memory = optimizer.update(gradient, memory)
            return (optax.apply_updates(w, updates), memory), value

        w = tools.put(arrays.state["w"])
        return self._program((w, optimizer.init(w)), step, arrays, tools)

    def pytorch(self, parameters, arrays, tools):
        """Write Adam out."""
        import torch

        def step(state, batch):
            w, m, v = state
            w = w.detach().requires_grad_()
            value = ((batch["x"] @ w - batch["y"]) ** 2).mean()
            value.backward()
            m = 0.9 * m + 0.1 * w.grad
            v = 0.999 * v + 0.001 * w.grad**2
            return (w.detach() - 1e-2 * m / (v.sqrt() + 1e-8), m, v), value.detach()

        w = tools.put(arrays.state["w"])
        return self._program((w, torch.zeros_like(w), torch.zeros_like(w)), step, arrays, tools)

    def _program(self, state, step, arrays, tools):
        return Program(
            state=state,
            step=step,
            batches=[tools.put(batch) for batch in arrays.batches],
            inner=len(arrays.batches),
            export=lambda state, loss: {"w": state[0], "loss": loss},
        )
