"""An honest program: the sign of its vectors is free, and its canonical form fixes it."""

from accelbench.workload import Arrays, Program
from cheats.honest import SIZE, Relaxation


class TurnsItsAxes(Relaxation):
    """v <- principal axes of x, by eigh or by SVD."""

    def arrays(self, parameters, rng):
        import numpy as np

        x = rng.standard_normal((SIZE, 4)) * np.array([4, 3, 2, 1])
        return Arrays(state={}, batches=({"x": x},))

    def reference(self, parameters, arrays, units):
        import numpy as np

        x = arrays.batches[0]["x"]
        return {"axes": np.linalg.eigh(x.T @ x)[1][:, ::-1]}

    def canonical(self, parameters, arrays, outputs):
        """Let the largest number of each axis be positive."""
        import numpy as np

        axes = outputs["axes"]
        return {"axes": axes * np.sign(axes[np.abs(axes).argmax(0), np.arange(axes.shape[1])])}

    def cost(self, parameters, float_bytes):
        return None

    def jax(self, parameters, arrays, tools):
        import jax.numpy as jnp

        return self.program(arrays, tools, lambda _, batch: jnp.linalg.eigh(batch["x"].T @ batch["x"])[1][:, ::-1])

    def pytorch(self, parameters, arrays, tools):
        import torch

        return self.program(arrays, tools, lambda _, batch: -torch.linalg.svd(batch["x"], full_matrices=False)[2].T)

    def program(self, arrays, tools, step, **more):
        batches = tuple(tools.put(batch) for batch in arrays.batches)
        return Program(
            state={},
            step=lambda state, batch: (state, step(state, batch)),
            batches=batches,
            export=lambda _state, axes: {"axes": axes},
            **more,
        )
