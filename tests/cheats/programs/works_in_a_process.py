"""Has another process compute, whose processor time is not its own, and returns at once."""

from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import numpy as np

from cheats.honest import Layer


class WorksInAProcess(Layer):
    """y = tanh(x @ w), in a process."""

    def altered(self, step):
        del step
        pool, results = ProcessPoolExecutor(1), []

        def cheating(state, batch):
            results[:] = [pool.submit(layer, np.asarray(batch["x"]), np.asarray(state["w"]))]
            return state, results

        return cheating

    def jax(self, parameters, arrays, tools):
        return self.with_export(super().jax(parameters, arrays, tools), tools)

    def pytorch(self, parameters, arrays, tools):
        return self.with_export(super().pytorch(parameters, arrays, tools), tools)

    def with_export(self, program, tools):
        """Waits for the process."""
        return replace(program, export=lambda _state, results: {"y": tools.put(results[-1].result())})


def layer(x, w):
    """In float64, as it happens."""
    return np.tanh(x.astype(float) @ w)
