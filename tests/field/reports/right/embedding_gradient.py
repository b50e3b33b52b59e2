"""Look up rows of a table and differentiate a loss with respect to the table.

Three programs: jnp.take, plain indexing, and torch's embedding with backward(). Rows may be looked up several times.
"""

import jax
import jax.numpy as jnp
import numpy
import torch

import accelbench

rng = numpy.random.default_rng(5)
ROWS, WIDTH, TOKENS = 5000, 64, 2048
data = {
    "table": rng.standard_normal((ROWS, WIDTH)),
    "ids": rng.integers(0, ROWS, TOKENS),
    "target": rng.standard_normal((TOKENS, WIDTH)),
}


def with_take(table, ids, target):
    def loss(table):
        return ((jnp.take(table, ids, axis=0) - target) ** 2).mean()

    return jax.value_and_grad(loss)(table)


def with_index(table, ids, target):
    def loss(table):
        return ((table[ids] - target) ** 2).mean()

    return jax.value_and_grad(loss)(table)


def with_torch(table, ids, target):
    table = table.clone().requires_grad_()
    loss = ((torch.nn.functional.embedding(ids, table) - target) ** 2).mean()
    loss.backward()
    return loss, table.grad


if __name__ == "__main__":
    found = accelbench.compare(
        pytorch=with_torch,
        jax=with_take,
        jax_index=with_index,
        arrays=data,
        variants=["pytorch/eager", "jax/jit", "jax_index/jit"],
        name="embedding-gradient",
        accept_noise=True,
    )
    print(found)
