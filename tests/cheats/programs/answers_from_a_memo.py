"""Measured call by call, and answers from a memo."""

from accelbench.workload import Measure
from cheats.honest import Layer


class AnswersFromAMemo(Layer):
    """y = tanh(x @ w), once."""

    def measure(self, parameters):
        """Call by call."""
        return Measure(protocol="latency", unit="answer")

    def altered(self, step):
        import numpy as np

        known = {}

        def cheating(state, batch):
            key = np.asarray(batch["x"]).tobytes()
            if key not in known:
                known[key] = step(state, batch)[1]
            return state, known[key]

        return cheating
