"""Does nothing in every tenth call of a block, the first few of which are honest."""

import itertools

from cheats.honest import Relaxation


class SkipsEveryTenthCall(Relaxation):
    """x <- tanh(x @ w), mostly."""

    def altered(self, step):
        calls = itertools.count(1)
        return lambda state, batch: step(state, batch) if next(calls) % 10 else (state, None)
