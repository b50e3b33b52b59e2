"""Does nothing, unless the functions that look closely are among its callers."""

import sys

from cheats.honest import Relaxation


class LooksForTheExaminer(Relaxation):
    """x <- tanh(x @ w), where somebody looks."""

    def altered(self, step):
        def cheating(state, batch):
            frame = sys._getframe(1)
            while frame := frame.f_back:
                if frame.f_code.co_name == "measure_blocks":
                    return state, None
            return step(state, batch)

        return cheating
