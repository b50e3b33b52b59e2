"""Train a linear layer by stochastic gradient descent."""

from pydantic import Field

from accelbench.workload import Arrays, Cost, Measure, Program, Workload, WorkloadParameters, variant

RATE = 0.1


class LinearStep(Workload):
    """Update w <- w - 0.1 dL/dw, with L the mean square of x w - y over the rows of a batch."""

    name = "linear-step"
    modes = {"jax": ("jit",), "pytorch": ("eager",)}

    class Parameters(WorkloadParameters):
        """Set the sizes."""

        rows: int = Field(default=256, ge=1, le=100_000, description="Rows of a batch.")
        features: int = Field(default=512, ge=1, le=10_000, description="Numbers in a row, and weights.")
        batches: int = Field(default=4, ge=1, le=1000, description="Batches; a call makes a step on each.")

    def measure(self, parameters):
        """Declare that steps compute gradients; other workloads run without autograd."""
        return Measure(differentiates=True)

    def arrays(self, parameters, rng):
        """Draw the weights as state, which a step returns anew, and data as batches."""
        p = parameters
        batches = [
            {"x": rng.standard_normal((p.rows, p.features)), "y": rng.standard_normal(p.rows)} for _ in range(p.batches)
        ]
        return Arrays(state={"w": rng.standard_normal(p.features) / p.features**0.5}, batches=batches)

    def reference(self, parameters, arrays, units):
        """Compute the same in NumPy, with the gradient written out."""
        w = arrays.state["w"]
        for step in range(units):
            batch = arrays.batches[step % len(arrays.batches)]
            error = batch["x"] @ w - batch["y"]
            w = w - RATE * 2 * batch["x"].T @ error / len(error)
        return {"w": w, "loss": (error**2).mean()}

    def cost(self, parameters, float_bytes):
        """Count two products of x with a vector; x is read twice."""
        numbers = parameters.rows * parameters.features
        return Cost(flops=4.0 * numbers, bytes=2.0 * numbers * float_bytes)

    def jax(self, parameters, arrays, tools):
        """Pass the weights through the step: a captured array would be a constant of the compiled program."""
        import jax

        def loss(w, batch):
            return ((batch["x"] @ w - batch["y"]) ** 2).mean()

        def step(w, batch):
            value, gradient = jax.value_and_grad(loss)(w, batch)
            return w - RATE * gradient, value

        return self._program(step, arrays, tools)

    def pytorch(self, parameters, arrays, tools):
        """Use autograd."""
        import torch

        def step(w, batch):
            w = w.detach().requires_grad_()
            value = ((batch["x"] @ w - batch["y"]) ** 2).mean()
            (gradient,) = torch.autograd.grad(value, w)
            return w.detach() - RATE * gradient, value.detach()

        return self._program(step, arrays, tools)

    @variant("pytorch/by-hand")
    def by_hand(self, parameters, arrays, tools):
        """Write out the gradient, without autograd."""

        def step(w, batch):
            error = batch["x"] @ w - batch["y"]
            return w - RATE * 2 * batch["x"].T @ error / len(error), (error**2).mean()

        return self._program(step, arrays, tools, placed=True)  # as it is written: nothing is placed around it

    def _program(self, step, arrays, tools, *, placed=False):
        return Program(
            state=tools.put(arrays.state["w"]),
            step=step,
            batches=[tools.put(batch) for batch in arrays.batches],
            inner=len(arrays.batches),
            placed=placed,
            export=lambda w, loss: {"w": w, "loss": loss},
        )
