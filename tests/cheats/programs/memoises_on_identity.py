"""Remembers by `id` what it has computed."""

from cheats.honest import Layer


class MemoisesOnIdentity(Layer):
    """y = tanh(x @ w), once for each array."""

    def altered(self, step):
        known = {}

        def cheating(state, batch):
            key = id(batch["x"])
            if key not in known:
                known[key] = step(state, batch)[1]
            return state, known[key]

        return cheating
