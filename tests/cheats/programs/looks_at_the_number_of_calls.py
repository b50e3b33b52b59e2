"""Does nothing where many calls are about to be timed: on a slow machine, a block may have no more than forty."""

import sys

from cheats.honest import Relaxation


class LooksAtTheNumberOfCalls(Relaxation):
    """x <- tanh(x @ w), where few look."""

    def altered(self, step):
        def cheating(state, batch):
            calls = sys._getframe(1).f_locals.get("calls", 1)
            return (state, None) if isinstance(calls, int) and calls > 8 else step(state, batch)

        return cheating
