"""Does nothing in every second call."""

import itertools

from cheats.honest import Relaxation


class SkipsEverySecondCall(Relaxation):
    """x <- tanh(x @ w), now and then."""

    def altered(self, step):
        calls = itertools.count()
        return lambda state, batch: step(state, batch) if next(calls) % 2 == 0 else (state, None)
