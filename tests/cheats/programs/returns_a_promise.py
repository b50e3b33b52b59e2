"""Returns a function that would do the work; only export calls it."""

from cheats.honest import Relaxation


class ReturnsAPromise(Relaxation):
    """x <- tanh(x @ w), if anyone asks."""

    def altered(self, step):
        def promised(state, batch):
            before = state["x"]
            return lambda: step({"x": before() if callable(before) else before}, batch)[0]["x"]

        return lambda state, batch: ({"x": promised(state, batch)}, None)

    def program(self, arrays, tools, step, **more):
        return super().program(arrays, tools, step, export=lambda state, _: {"x": state["x"]()}, **more)
