"""Multiply matrices in bfloat16, in one piece and the rows in two pieces: the same product, rounded alike or not."""

import jax.numpy as jnp

import accelbench

found = accelbench.compare(
    pytorch=lambda x, w: x @ w,
    jax=lambda x, w: x @ w,
    jax_sliced=lambda x, w: jnp.concatenate([x[:64] @ w, x[64:] @ w]),
    arrays=lambda rng: {"x": rng.standard_normal((256, 512)), "w": rng.standard_normal((512, 256))},
    precision="bfloat16",
    name="sliced-product",
)
print(found)
