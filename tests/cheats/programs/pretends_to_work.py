"""Remembers its answer, and computes an eighth of it again, for whoever counts."""

from cheats.honest import Layer


class PretendsToWork(Layer):
    """y = tanh(x @ w), an eighth of it."""

    def altered(self, step):
        import numpy as np

        known = {}

        def cheating(state, batch):
            key = np.asarray(batch["x"]).tobytes()
            if key not in known:
                known[key] = step(state, batch)[1]
                return state, known[key]
            step(state, {"x": batch["x"][:8]})
            return state, known[key] * 1

        return cheating
