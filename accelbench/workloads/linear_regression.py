"""Fit least squares by gradient descent: a loop of steps with almost no arithmetic."""

from typing import TYPE_CHECKING, Any

from pydantic import Field

from accelbench.workload import (
    Arrays,
    Cost,
    Measure,
    NamedArrays,
    Program,
    Tools,
    Workload,
    WorkloadParameters,
    variant,
)
from accelbench.workloads import _training as training

if TYPE_CHECKING:
    from numpy.random import Generator

WEIGHTS = (2.0, -1.0, 0.5)
"""Weights from which the targets are drawn."""
NOISE = 0.1
"""Standard deviation of the targets' noise."""


class LinearRegression(Workload):
    """Update w <- w - rate * d/dw mean((x w - y)^2) on `samples` rows of three numbers; one step is one update.

    Row 52 of the claims: 200 steps of gradient descent on 100 samples, whose targets are x (2, -1, 0.5) plus noise of
    0.1. Each step takes the weights of the last; each framework computes the gradient itself.
    """

    name = "linear-regression"
    modes = {"jax": ("jit", "op-by-op"), "pytorch": ("eager", "compile")}

    class Parameters(WorkloadParameters):
        """Describe the data and the descent."""

        samples: int = Field(default=100, ge=1, le=10_000_000, description="Rows of x.")
        rate: float = Field(default=0.01, gt=0, le=0.4, description="Step of the gradient descent.")
        steps: int = Field(default=200, ge=1, le=1_000_000, description="Steps in one call of jax/scan-steps.")

    def measure(self, parameters: Parameters) -> Measure:
        """Request a comparison with the reference after ten steps, enough to detect a wrong gradient."""
        del parameters
        return Measure(parity_units=10, differentiates=True)

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Return w = 0, a standard normal x (samples, 3), and y = x @ WEIGHTS + noise."""
        import numpy as np

        x = rng.standard_normal((parameters.samples, len(WEIGHTS)))
        y = x @ np.array(WEIGHTS) + NOISE * rng.standard_normal(parameters.samples)
        return Arrays(state={"w": np.zeros(len(WEIGHTS))}, batches=({"x": x, "y": y},))

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """Train in NumPy for `units` steps; return w and the last loss."""
        import numpy as np

        x, y = arrays.batches[0]["x"], arrays.batches[0]["y"]
        w, loss = arrays.state["w"], np.float64(0)
        for _ in range(units):
            error = x @ w - y
            loss = np.mean(error**2)
            w = w - parameters.rate * 2 / len(y) * (x.T @ error)
        return {"w": w, "loss": np.asarray(loss)}

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Count two matrix-vector products with x, and five operations for each sample; x is read twice, y once.

        The five are: subtract y, square the error, sum for the loss, and two factors of the error in the gradient.
        """
        n, width = parameters.samples, len(WEIGHTS)
        return Cost(flops=float(n * (4 * width + 5)), bytes=float(n * (2 * width + 1) * float_bytes))

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compute loss and gradient by jax.value_and_grad."""
        state, batch = tools.put((arrays.state["w"], arrays.batches[0]))
        return Program(state=state, step=_jax_step(parameters), batches=(batch,), export=_export)

    @variant("jax/scan-steps")
    def scan_steps(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compile `steps` steps into one program, a scan."""
        import jax

        step = _jax_step(parameters)

        def train(w: Any, batch: Any) -> tuple[Any, Any]:
            """Run `steps` steps on the same batch; return w and the last loss."""
            w, losses = jax.lax.scan(lambda w, _: step(w, batch), w, length=parameters.steps)
            return w, losses[-1]

        state, batch = tools.put((arrays.state["w"], arrays.batches[0]))
        return Program(
            state=state, step=jax.jit(train), batches=(batch,), units=parameters.steps, placed=True, export=_export
        )

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compute the gradient by autograd, without torch.nn layers or torch.optim."""
        return _torch_program(parameters, arrays, tools)

    @variant("pytorch/compile-whole", in_mode="compile")
    def torch_compile_whole(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compile the whole step into one graph, with gradients by torch.func."""

        def loss_of(weights: training.Tensors, batch: Any) -> Any:
            return _torch_loss(weights["w"], batch)

        w, batch = tools.put((arrays.state["w"], arrays.batches[0]))
        return Program(
            state={"w": w},
            step=training.torch_whole_step(loss_of, parameters.rate, tools),
            batches=(batch,),
            placed=True,
            export=lambda weights, loss: {**weights, "loss": loss},
        )


def _jax_loss(w: Any, batch: Any) -> Any:
    """Return the mean squared error of x @ w."""
    return ((batch["x"] @ w - batch["y"]) ** 2).mean()


def _export(w: Any, loss: Any) -> dict[str, Any]:
    """Return the arrays to compare with the reference, by name."""
    return {"w": w, "loss": loss}


def _jax_step(parameters: LinearRegression.Parameters) -> Any:
    """Return a step of gradient descent: a function (w, batch) -> (next w, loss)."""
    import jax

    def step(w: Any, batch: Any) -> tuple[Any, Any]:
        """Return w after one step of gradient descent, and the loss."""
        loss, gradient = jax.value_and_grad(_jax_loss)(w, batch)
        return w - parameters.rate * gradient, loss

    return step


def _torch_loss(w: Any, batch: Any) -> Any:
    """Return the mean squared error of x @ w."""
    import torch

    return torch.nn.functional.mse_loss(batch["x"] @ w, batch["y"])


def _torch_program(parameters: LinearRegression.Parameters, arrays: Arrays, tools: Tools) -> Program:
    """Return a program that computes gradients by autograd; the loss runs in the variant's mode."""
    import torch

    loss_of = tools.in_mode(_torch_loss)

    def step(w: Any, batch: Any) -> tuple[Any, Any]:
        """Update w in place by gradient descent; return w and the loss."""
        loss = loss_of(w, batch)
        loss.backward()
        with torch.no_grad():
            w -= parameters.rate * w.grad
            w.grad = None
        return w, loss.detach()

    state, batch = tools.put((arrays.state["w"], arrays.batches[0]))
    return Program(
        state=state.requires_grad_(),
        step=step,
        batches=(batch,),
        placed=True,
        export=lambda w, loss: {"w": w.detach(), "loss": loss},
    )
