"""Has another process compute, whose processor time is not its own, and returns at once."""

from concurrent.futures import ProcessPoolExecutor

import numpy as np

from cheats.honest import Layer


class WorksInAProcess(Layer):
    """y = tanh(x @ w), in a process."""

    def altered(self, step):
        del step
        pool = ProcessPoolExecutor(1)

        def cheating(state, batch):
            self.last = pool.submit(layer, np.asarray(batch["x"]), np.asarray(state["w"]))
            return state, batch["x"]

        return cheating

    def program(self, arrays, tools, step, **more):
        return super().program(arrays, tools, step, export=lambda *_: {"y": tools.put(self.last.result())}, **more)


def layer(x, w):
    """In float64, as it happens."""
    return np.tanh(x.astype(float) @ w)
