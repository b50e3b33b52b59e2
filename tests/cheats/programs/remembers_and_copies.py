"""Remembers its answer, and multiplies it by one, so that as many operations run as in the work."""

from cheats.honest import Layer


class RemembersAndCopies(Layer):
    """y = tanh(x @ w), once."""

    def altered(self, step):
        import numpy as np

        known = {}

        def cheating(state, batch):
            key = np.asarray(batch["x"]).tobytes()
            if key not in known:
                known[key] = step(state, batch)[1]
                return state, known[key]
            return state, known[key] * 1 * 1 * 1

        return cheating
