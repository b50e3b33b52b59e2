"""A hundred steps in a call, all of which compute the same: a compiler does one of them."""

from dataclasses import replace

from cheats.honest import Layer


class RepeatsAStepWithoutState(Layer):
    """y = tanh(x @ w), a hundred times over."""

    def jax(self, parameters, arrays, tools):
        return replace(super().jax(parameters, arrays, tools), inner=100)

    def pytorch(self, parameters, arrays, tools):
        return replace(super().pytorch(parameters, arrays, tools), inner=100)
