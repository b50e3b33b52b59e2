"""Does nothing where it is called by the function that times."""

import sys

from cheats.honest import Relaxation


class LooksAtTheStack(Relaxation):
    """x <- tanh(x @ w), unless it is timed."""

    def altered(self, step):
        def timed():
            frame = sys._getframe(1)
            while frame := frame.f_back:
                if frame.f_code.co_name in {"time_calls", "measure", "measure_as_planned"}:
                    return True
            return False

        return lambda state, batch: (state, None) if timed() else step(state, batch)
