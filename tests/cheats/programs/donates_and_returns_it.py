"""Gives its state away, and returns it as it is."""

from cheats.honest import Relaxation


class DonatesAndReturnsIt(Relaxation):
    """x <- tanh(x @ w), but for the work."""

    def jax(self, parameters, arrays, tools):
        return self.program(arrays, tools, lambda state, _batch: (state, None), donate=True)

    def pytorch(self, parameters, arrays, tools):
        def step(state, batch):
            return {"x": state["x"].set_(state["x"])}, None

        return self.program(arrays, tools, step)
