"""Gives nothing to compare, and does nothing."""

from cheats.honest import Relaxation


class ExportsNothing(Relaxation):
    """x <- tanh(x @ w), unseen."""

    def reference(self, parameters, arrays, units):
        """Nothing."""
        return {}

    def altered(self, step):
        return lambda state, _batch: (state, None)

    def program(self, arrays, tools, step, **more):
        return super().program(arrays, tools, step, export=lambda _state, _out: {}, **more)
