"""Declares that it cannot do without nothing, and has the compiler compute its constants."""

from accelbench.workload import Operations
from cheats.honest import Layer


class DeclaresNothingToDo(Layer):
    """y = tanh(x @ w) of constants, none of whose products count."""

    def operations(self, parameters):
        """None."""
        return Operations()

    def jax(self, parameters, arrays, tools):
        import jax.numpy as jnp

        y = tools.put(self.reference(parameters, arrays, 1)["y"])
        return self.program(arrays, tools, lambda state, batch: (state, y + jnp.zeros_like(batch["x"])))

    def pytorch(self, parameters, arrays, tools):
        y = tools.put(self.reference(parameters, arrays, 1)["y"])
        return self.program(arrays, tools, lambda state, _batch: (state, y * 1))
