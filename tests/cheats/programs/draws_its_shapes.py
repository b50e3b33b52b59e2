"""How many rows there are is drawn too: honest, and nobody can make others of that shape."""

from accelbench.workload import Arrays
from cheats.honest import SIZE, Layer


class DrawsItsShapes(Layer):
    """y = tanh(x @ w), of so many rows."""

    def arrays(self, parameters, rng):
        """Up to ten thousand."""
        x = rng.standard_normal((int(rng.integers(10, 10_000)), SIZE))
        return Arrays(state={"w": rng.standard_normal((SIZE, SIZE)) / 8}, batches=({"x": x},))
