"""Returns an object of its own that knows how to do the work; only export asks it to."""

from cheats.honest import Relaxation


class ReturnsAnObject(Relaxation):
    """x <- tanh(x @ w), if anyone asks."""

    def altered(self, step):
        return lambda state, batch: ({"x": Later(step, state["x"], batch)}, None)

    def program(self, arrays, tools, step, **more):
        return super().program(arrays, tools, step, export=lambda state, _: {"x": state["x"].value()}, **more)


class Later:
    """What will be."""

    def __init__(self, step, before, batch):
        self.step, self.before, self.batch = step, before, batch

    def value(self):
        """What is, now."""
        x = self.before.value() if isinstance(self.before, Later) else self.before
        return self.step({"x": x}, self.batch)[0]["x"]
