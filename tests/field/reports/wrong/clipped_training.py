"""Train a linear model by Adam with clipped gradients: optax against torch.nn.utils and Adam written out.

Wrong on JAX's side: optax.clip clips each number of the gradient at 0.5, where clip_grad_norm_ scales all gradients
such that their common norm is at most 0.5. The losses look alike.
"""

from pydantic import Field

from accelbench.workload import Arrays, Measure, Program, Workload, WorkloadParameters

RATE, B1, B2, EPSILON, LIMIT = 1e-2, 0.9, 0.999, 1e-8, 0.5


class ClippedTraining(Workload):
    """Minimise the mean square error of x w + b."""

    name = "clipped-training"
    modes = {"jax": ("jit",), "pytorch": ("eager",)}

    class Parameters(WorkloadParameters):
        """Set the sizes."""

        rows: int = Field(default=256, ge=1, le=100_000, description="Rows of a batch.")
        features: int = Field(default=128, ge=1, le=10_000, description="Features.")

    def measure(self, parameters):
        """Declare gradients."""
        return Measure(differentiates=True)

    def arrays(self, parameters, rng):
        """Draw weights and four batches."""
        p = parameters
        batches = [
            {"x": rng.standard_normal((p.rows, p.features)), "y": 3 * rng.standard_normal(p.rows)} for _ in range(4)
        ]
        state = {"w": rng.standard_normal(p.features) / p.features**0.5, "b": rng.standard_normal(1)}
        return Arrays(state=state, batches=batches)

    def jax(self, parameters, arrays, tools):
        """Chain optax's transformations."""
        import jax
        import optax

        optimiser = optax.chain(optax.clip(LIMIT), optax.adam(RATE, b1=B1, b2=B2, eps=EPSILON))

        def loss(params, batch):
            return ((batch["x"] @ params["w"] + params["b"] - batch["y"]) ** 2).mean()

        def step(state, batch):
            params, opt_state = state
            value, gradients = jax.value_and_grad(loss)(params, batch)
            updates, opt_state = optimiser.update(gradients, opt_state)
            return (optax.apply_updates(params, updates), opt_state), value

        params = tools.put(arrays.state)
        return self._program((params, optimiser.init(params)), step, arrays, tools)

    def pytorch(self, parameters, arrays, tools):
        """Clip the norm, and write Adam out."""
        import torch

        def step(state, batch):
            params, (count, m, v) = state
            params = {name: p.detach().requires_grad_() for name, p in params.items()}
            value = ((batch["x"] @ params["w"] + params["b"] - batch["y"]) ** 2).mean()
            value.backward()
            torch.nn.utils.clip_grad_norm_(list(params.values()), LIMIT)
            with torch.no_grad():
                count = count + 1
                m = {k: B1 * m[k] + (1 - B1) * p.grad for k, p in params.items()}
                v = {k: B2 * v[k] + (1 - B2) * p.grad**2 for k, p in params.items()}
                params = {
                    k: p - RATE * (m[k] / (1 - B1**count)) / (torch.sqrt(v[k] / (1 - B2**count)) + EPSILON)
                    for k, p in params.items()
                }
            return (params, (count, m, v)), value.detach()

        params = tools.put(arrays.state)
        zeros = {k: torch.zeros_like(p) for k, p in params.items()}
        return self._program((params, (torch.zeros((), dtype=params["w"].dtype), zeros, zeros)), step, arrays, tools)

    def _program(self, state, step, arrays, tools):
        return Program(
            state=state,
            step=step,
            batches=[tools.put(batch) for batch in arrays.batches],
            inner=len(arrays.batches),
            export=lambda state, value: {**state[0], "loss": value},
        )
