"""Keeps its answer in its state; a call that computes it takes longer than what is repeated often."""

import time

from accelbench_runner.launch.dependence import QUICK_SECONDS
from cheats.honest import Layer


class RemembersASlowAnswer(Layer):
    """y = tanh(x @ w), once and slowly."""

    def altered(self, step):
        def memo(s, b):
            if "y" in s:
                return s, s["y"] * 1
            time.sleep(1.2 * QUICK_SECONDS)
            s, y = step(s, b)
            return {**s, "y": y}, y

        return memo
