"""Forgets its return."""

from cheats.honest import Relaxation


class ReturnsNothing(Relaxation):
    """x <- tanh(x @ w), and keeps it."""

    def altered(self, step):
        def forgetting(state, batch):
            step(state, batch)

        return forgetting
