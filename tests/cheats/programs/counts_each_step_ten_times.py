"""Says that a step does ten units, of which it does one: nothing in a state counts them."""

from dataclasses import replace

from cheats.honest import Layer


class CountsEachStepTenTimes(Layer):
    """y = tanh(x @ w), once for ten."""

    def jax(self, parameters, arrays, tools):
        return replace(super().jax(parameters, arrays, tools), units=10)

    def pytorch(self, parameters, arrays, tools):
        return replace(super().pytorch(parameters, arrays, tools), units=10)
