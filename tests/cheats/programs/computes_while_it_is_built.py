"""Computes its answer while its program is built, and copies it in each step."""

from cheats.honest import Layer


class ComputesWhileItIsBuilt(Layer):
    """y = tanh(x @ w), before anyone asks."""

    def program(self, arrays, tools, step, **more):
        self.answer = tools.put(self.reference(None, arrays, 1)["y"])
        return super().program(arrays, tools, step, **more)

    def altered(self, step):
        return lambda state, _batch: (state, self.answer * 1)
