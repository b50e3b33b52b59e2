"""Train a small CNN by SGD with momentum: two convolutions with pooling, and a linear layer.

The state is weights and velocities; images and labels are batches. JAX uses optax, PyTorch calls backward().
"""

from pydantic import Field

from accelbench.workload import Arrays, Measure, Program, Workload, WorkloadParameters

RATE, MOMENTUM = 0.01, 0.9


class CnnTraining(Workload):
    """Minimise the cross-entropy of a CNN on random images."""

    name = "cnn-training"
    modes = {"jax": ("jit",), "pytorch": ("eager",)}

    class Parameters(WorkloadParameters):
        """Set the sizes."""

        batch: int = Field(default=16, ge=1, le=1024, description="Images of a batch.")
        size: int = Field(default=16, ge=8, le=128, multiple_of=4, description="Height and width of an image.")
        batches: int = Field(default=2, ge=1, le=100, description="Batches; a call makes a step on each.")

    def measure(self, parameters):
        """Declare gradients."""
        return Measure(differentiates=True)

    def arrays(self, parameters, rng):
        """Draw weights by He's rule, zero velocities, images and labels."""
        p = parameters
        last = 16 * (p.size // 4) ** 2
        weights = {
            "w1": rng.standard_normal((8, 3, 3, 3)) * (2 / 27) ** 0.5,
            "b1": rng.standard_normal(8) * 0.01,
            "w2": rng.standard_normal((16, 8, 3, 3)) * (2 / 72) ** 0.5,
            "b2": rng.standard_normal(16) * 0.01,
            "w3": rng.standard_normal((10, last)) * (1 / last) ** 0.5,
            "b3": rng.standard_normal(10) * 0.01,
        }
        batches = [
            {"x": rng.random((p.batch, 3, p.size, p.size)), "y": rng.integers(0, 10, p.batch)} for _ in range(p.batches)
        ]
        return Arrays(state=weights, batches=batches)

    def jax(self, parameters, arrays, tools):
        """Use lax and optax."""
        import jax
        import jax.numpy as jnp
        import optax

        optimiser = optax.sgd(RATE, momentum=MOMENTUM)

        def conv(x, w, b):
            return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME") + b[:, None, None]

        def pool(x):
            return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")

        def loss(p, batch):
            h = pool(jax.nn.relu(conv(batch["x"], p["w1"], p["b1"])))
            h = pool(jax.nn.relu(conv(h, p["w2"], p["b2"])))
            logits = h.reshape(h.shape[0], -1) @ p["w3"].T + p["b3"]
            return optax.softmax_cross_entropy_with_integer_labels(logits, batch["y"]).mean()

        def step(state, batch):
            params, opt_state = state
            value, gradients = jax.value_and_grad(loss)(params, batch)
            updates, opt_state = optimiser.update(gradients, opt_state, params)
            return (optax.apply_updates(params, updates), opt_state), value

        params = tools.put(arrays.state)
        return Program(
            state=(params, optimiser.init(params)),
            step=step,
            batches=[tools.put(batch) for batch in arrays.batches],
            inner=len(arrays.batches),
            export=lambda state, value: {**state[0], "loss": value},
        )

    def pytorch(self, parameters, arrays, tools):
        """Use torch.nn.functional and backward()."""
        import torch
        import torch.nn.functional as F

        def step(state, batch):
            params, velocities = state
            params = {name: w.detach().requires_grad_() for name, w in params.items()}
            h = F.max_pool2d(F.relu(F.conv2d(batch["x"], params["w1"], params["b1"], padding=1)), 2)
            h = F.max_pool2d(F.relu(F.conv2d(h, params["w2"], params["b2"], padding=1)), 2)
            logits = F.linear(h.flatten(1), params["w3"], params["b3"])
            value = F.cross_entropy(logits, batch["y"])
            value.backward()
            with torch.no_grad():
                velocities = {name: MOMENTUM * velocities[name] + w.grad for name, w in params.items()}
                params = {name: w - RATE * velocities[name] for name, w in params.items()}
            return (params, velocities), value.detach()

        params = tools.put(arrays.state)
        return Program(
            state=(params, {name: torch.zeros_like(w) for name, w in params.items()}),
            step=step,
            batches=[tools.put(batch) for batch in arrays.batches],
            inner=len(arrays.batches),
            export=lambda state, value: {**state[0], "loss": value},
        )
