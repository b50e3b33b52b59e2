"""Computes once, and sleeps about as long in every later call."""

import time

from cheats.honest import Layer


class SleepsToLookBusy(Layer):
    """y = tanh(x @ w), once."""

    def altered(self, step):
        last = []

        def cheating(state, batch):
            if last:
                time.sleep(0.0002)
                return state, last[0]
            last.append(step(state, batch)[1])
            return state, last[0]

        return cheating
