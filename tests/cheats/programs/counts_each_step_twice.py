"""Says that a step does two units, of which it does one: nothing in a state counts them."""

from dataclasses import replace

from cheats.honest import Layer


class CountsEachStepTwice(Layer):
    """y = tanh(x @ w), once for two."""

    def jax(self, parameters, arrays, tools):
        return replace(super().jax(parameters, arrays, tools), units=2)

    def pytorch(self, parameters, arrays, tools):
        return replace(super().pytorch(parameters, arrays, tools), units=2)
