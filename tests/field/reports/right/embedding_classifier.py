"""Train a classifier of padded sequences of tokens, whose embeddings it averages, by SGD.

JAX looks tokens up by take, and in a second program by one-hot products; PyTorch uses F.embedding.
"""

from pydantic import Field

from accelbench.workload import Arrays, Measure, Program, Workload, WorkloadParameters, variant

RATE = 0.5


class EmbeddingClassifier(Workload):
    """Take a step of SGD on each batch of padded sequences; token 0 is padding."""

    name = "embedding-classifier"
    modes = {"jax": ("jit",), "pytorch": ("eager",)}

    class Parameters(WorkloadParameters):
        """Set the sizes."""

        vocabulary: int = Field(default=500, ge=2, le=100_000, description="Number of tokens.")
        width: int = Field(default=32, ge=1, le=4096, description="Width of an embedding.")
        length: int = Field(default=24, ge=1, le=4096, description="Longest sequence.")
        batch: int = Field(default=32, ge=1, le=4096, description="Sequences of a batch.")

    def measure(self, parameters):
        """Declare gradients."""
        return Measure(differentiates=True)

    def arrays(self, parameters, rng):
        """Draw a table, a layer, and two batches of sequences of random lengths, padded on the right."""
        import numpy as np

        p = parameters

        def batch():
            lengths = rng.integers(1, p.length + 1, p.batch)
            tokens = rng.integers(1, p.vocabulary, (p.batch, p.length))
            return {
                "tokens": np.where(np.arange(p.length) < lengths[:, None], tokens, 0),
                "labels": rng.integers(0, 5, p.batch),
            }

        state = {
            "table": rng.standard_normal((p.vocabulary, p.width)),
            "w": rng.standard_normal((p.width, 5)) / p.width**0.5,
        }
        return Arrays(state=state, batches=[batch(), batch()])

    def jax(self, parameters, arrays, tools):
        """Take rows."""
        import jax.numpy as jnp

        return self._jax(lambda table, tokens: jnp.take(table, tokens, axis=0), arrays, tools)

    @variant("jax/one-hot")
    def one_hot(self, parameters, arrays, tools):
        """Multiply by one-hot vectors."""
        import jax

        def look_up(table, tokens):
            return jax.nn.one_hot(tokens, len(table), dtype=table.dtype) @ table

        return self._jax(look_up, arrays, tools, placed=True)

    def _jax(self, look_up, arrays, tools, *, placed=False):
        import jax
        import jax.numpy as jnp

        def loss(params, batch):
            keep = (batch["tokens"] != 0)[..., None]
            embedded = jnp.where(keep, look_up(params["table"], batch["tokens"]), 0)
            mean = embedded.sum(axis=1) / keep.sum(axis=1)
            log_probabilities = jax.nn.log_softmax(mean @ params["w"])
            return -jnp.take_along_axis(log_probabilities, batch["labels"][:, None], axis=1).mean()

        def step(params, batch):
            value, gradients = jax.value_and_grad(loss)(params, batch)
            return jax.tree.map(lambda p, g: p - RATE * g, params, gradients), value

        return self._program(jax.jit(step) if placed else step, arrays, tools, placed)

    def pytorch(self, parameters, arrays, tools):
        """Use F.embedding and F.cross_entropy."""
        import torch
        import torch.nn.functional as F

        def step(params, batch):
            params = {name: p.detach().requires_grad_() for name, p in params.items()}
            keep = (batch["tokens"] != 0).unsqueeze(-1)
            embedded = F.embedding(batch["tokens"], params["table"]) * keep
            mean = embedded.sum(dim=1) / keep.sum(dim=1)
            loss = F.cross_entropy(mean @ params["w"], batch["labels"])
            loss.backward()
            with torch.no_grad():
                return {name: p - RATE * p.grad for name, p in params.items()}, loss.detach()

        return self._program(step, arrays, tools, False)

    def _program(self, step, arrays, tools, placed):
        return Program(
            state=tools.put(arrays.state),
            step=step,
            batches=[tools.put(batch) for batch in arrays.batches],
            inner=len(arrays.batches),
            placed=placed,
            export=lambda params, loss: {**params, "loss": loss},
        )
