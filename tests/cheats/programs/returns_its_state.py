"""Gives back what it was given."""

from cheats.honest import Relaxation


class ReturnsItsState(Relaxation):
    """x <- tanh(x @ w), but for the work."""

    def altered(self, step):
        return lambda state, _batch: (state, None)
