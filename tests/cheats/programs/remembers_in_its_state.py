"""Keeps its answer in its state, where later calls find it."""

from cheats.honest import Layer


class RemembersInItsState(Layer):
    """y = tanh(x @ w), once."""

    def altered(self, step):
        def memo(s, b):
            if "y" in s:
                return s, s["y"] * 1
            s, y = step(s, b)
            return {**s, "y": y}, y

        return memo
