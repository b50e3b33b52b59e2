"""Does nothing where a call follows close upon another."""

import time

from cheats.honest import Relaxation


class WorksAfterAPause(Relaxation):
    """x <- tanh(x @ w), if there is time."""

    def altered(self, step):
        last = -1.0
        close = 0

        def cheating(state, batch):
            nonlocal last, close
            close = close + 1 if time.monotonic() - last < 0.001 else 0
            if close <= 3:
                state, _ = step(state, batch)
            last = time.monotonic()
            return state, None

        return cheating
