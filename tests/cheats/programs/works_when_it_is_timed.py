"""Works only where it is called by the function that times, as if that were enough."""

import sys

from cheats.honest import Relaxation


class WorksWhenItIsTimed(Relaxation):
    """x <- tanh(x @ w), where it is timed."""

    def altered(self, step):
        def cheating(state, batch):
            timed = sys._getframe(1).f_code.co_filename.endswith("blocks.py")
            return step(state, batch) if timed else (state, None)

        return cheating
