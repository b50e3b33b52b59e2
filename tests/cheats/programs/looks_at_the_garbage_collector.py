"""Does nothing while no garbage is collected, as in a timed block."""

import gc

from cheats.honest import Relaxation


class LooksAtTheGarbageCollector(Relaxation):
    """x <- tanh(x @ w), where garbage is collected."""

    def altered(self, step):
        return lambda state, batch: step(state, batch) if gc.isenabled() else (state, None)
