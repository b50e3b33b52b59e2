"""Does nothing where it is called from the file that times."""

import sys

from cheats.honest import Relaxation


class LooksAtFileNames(Relaxation):
    """x <- tanh(x @ w), unless it is timed."""

    def altered(self, step):
        def cheating(state, batch):
            timed = sys._getframe(1).f_code.co_filename.endswith("blocks.py")
            return (state, None) if timed else step(state, batch)

        return cheating
