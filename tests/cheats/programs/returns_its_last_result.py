"""Computes in its first call, and returns that from then on."""

from cheats.honest import Layer


class ReturnsItsLastResult(Layer):
    """y = tanh(x @ w), once."""

    def altered(self, step):
        last = []

        def cheating(state, batch):
            if not last:
                last.append(step(state, batch))
            return last[0]

        return cheating
