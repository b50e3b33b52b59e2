"""Does nothing once it has run for a moment."""

import time

from cheats.honest import Relaxation


class StopsAfterAWhile(Relaxation):
    """x <- tanh(x @ w), for a moment."""

    def altered(self, step):
        began = time.monotonic()
        return lambda state, batch: step(state, batch) if time.monotonic() - began < 0.1 else (state, None)
