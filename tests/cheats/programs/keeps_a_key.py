"""Draws random numbers from a key in its state, and gives what does not depend on them: honest."""

from dataclasses import replace

from cheats.honest import Layer


class KeepsAKey(Layer):
    """y = tanh(x @ w), beside a noise that cancels."""

    def jax(self, parameters, arrays, tools):
        import jax
        import jax.numpy as jnp

        def step(state, batch):
            key, now = jax.random.split(state["key"])
            noise = jax.random.randint(now, batch["x"].shape, 0, 2) * 2.0 - 1.0
            y = jnp.tanh(batch["x"] @ state["w"]) * jnp.square(noise)
            return {"w": state["w"], "key": key}, y

        honest = self.program(arrays, tools, step)
        return replace(honest, state={**honest.state, "key": jax.random.key(0)})
