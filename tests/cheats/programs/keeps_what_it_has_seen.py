"""A running mean in a global, as of a batch norm that was left in training."""

from cheats.honest import Layer


class KeepsWhatItHasSeen(Layer):
    """y = tanh(x @ w), less its mean over time."""

    def altered(self, step):
        mean = 0.0

        def cheating(state, batch):
            nonlocal mean
            state, y = step(state, batch)
            result = y - mean
            mean = 0.9 * mean + 0.1 * float(y.sum())
            return state, result

        return cheating
