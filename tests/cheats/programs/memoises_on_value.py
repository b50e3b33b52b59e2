"""Remembers by their bytes what it has computed: blocks begin from the same state, so later ones only look up."""

from cheats.honest import Relaxation


class MemoisesOnValue(Relaxation):
    """x <- tanh(x @ w), once for each x."""

    def altered(self, step):
        import numpy as np

        known = {}

        def cheating(state, batch):
            key = np.asarray(state["x"]).tobytes()
            if key not in known:
                known[key] = step(state, batch)
            return known[key]

        return cheating
