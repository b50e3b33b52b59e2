"""Gives an array without elements to compare, and does nothing."""

from cheats.honest import Relaxation


class ExportsAnEmptyArray(Relaxation):
    """x <- tanh(x @ w), unseen."""

    def reference(self, parameters, arrays, units):
        """Nothing."""
        return {"x": arrays.state["x"][:0]}

    def altered(self, step):
        return lambda state, _batch: (state, None)

    def program(self, arrays, tools, step, **more):
        return super().program(arrays, tools, step, export=lambda state, _: {"x": state["x"][:0]}, **more)
