"""Nothing is wrong with it."""

from cheats.honest import Relaxation


class HonestRelaxation(Relaxation):
    """x <- tanh(x @ w)."""
