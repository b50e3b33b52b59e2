"""Leaves out a bias that begins with zeros, as biases do."""

import numpy as np

from accelbench.workload import Arrays
from cheats.honest import SIZE, Layer


class ForgetsItsBias(Layer):
    """y = tanh(x @ w + b), with zeros for b."""

    def arrays(self, parameters, rng):
        """A layer as it is initialised."""
        honest = super().arrays(parameters, rng)
        return Arrays(state={**honest.state, "b": np.zeros(SIZE)}, batches=honest.batches)

    def reference(self, parameters, arrays, units):
        """With the bias."""
        return {"y": np.tanh(arrays.batches[0]["x"] @ arrays.state["w"] + arrays.state["b"])}
