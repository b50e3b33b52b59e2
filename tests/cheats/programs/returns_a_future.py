"""Hands its work to a thread pool and returns what will be, which nobody waits for before the end."""

from concurrent.futures import Future, ThreadPoolExecutor

from cheats.honest import Relaxation


class ReturnsAFuture(Relaxation):
    """x <- tanh(x @ w), later."""

    def altered(self, step):
        pool = ThreadPoolExecutor(1)

        def later(state, batch):
            return step({"x": state["x"].result() if isinstance(state["x"], Future) else state["x"]}, batch)[0]["x"]

        return lambda state, batch: ({"x": pool.submit(later, state, batch)}, None)

    def program(self, arrays, tools, step, **more):
        return super().program(arrays, tools, step, export=lambda state, _: {"x": state["x"].result()}, **more)
