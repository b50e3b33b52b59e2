"""Repeat a small layer: unrolled by Python, or in one loop of the compiler."""


def arrays(rng, steps: int = 20, size: int = 64):
    """Draw a state and a matrix; `steps` is passed to the functions as it is."""
    return {"h": rng.standard_normal(size), "w": rng.standard_normal((size, size)) / size}


def jax(h, w, steps):
    """Unroll the loop: jit compiles every step."""
    import jax.numpy as jnp

    for _ in range(steps):
        h = jnp.tanh(w @ h)
    return h


def jax_scan(h, w, steps):
    """Compile one step, and loop over it."""
    import jax
    import jax.numpy as jnp

    return jax.lax.fori_loop(0, steps, lambda _, h: jnp.tanh(w @ h), h)
