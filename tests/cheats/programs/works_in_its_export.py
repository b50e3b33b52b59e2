"""Counts its steps, and does them in export, which nobody times."""

from dataclasses import replace

from cheats.honest import Relaxation


class WorksInItsExport(Relaxation):
    """x <- tanh(x @ w), once the clock has stopped."""

    def jax(self, parameters, arrays, tools):
        return self.lazily(super().jax(parameters, arrays, tools))

    def pytorch(self, parameters, arrays, tools):
        return self.lazily(super().pytorch(parameters, arrays, tools))

    def lazily(self, honest):
        """Its steps are counted in the state, its work is done by the way out."""

        def export(state, _out):
            done = {"x": state["x"]}
            for _ in range(int(state["n"])):
                done, _ = honest.step(done, state["batch"])
            return done

        def step(state, batch):
            return {"x": state["x"], "n": state["n"] + 1, "batch": batch}, None

        state = {**honest.state, "n": honest.state["x"][0, 0] * 0, "batch": honest.batches[0]}
        return replace(honest, state=state, step=step, export=export)
