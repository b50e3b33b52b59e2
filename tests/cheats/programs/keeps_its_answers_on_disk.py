"""Remembers its answers beyond its process, beside the launches of its case."""

import hashlib
import os
from pathlib import Path

from cheats.honest import Layer


class KeepsItsAnswersOnDisk(Layer):
    """y = tanh(x @ w), once in a machine's life."""

    def altered(self, step):
        import numpy as np

        def cheating(state, batch):
            x = np.asarray(batch["x"])
            kept = Path(os.environ["TMPDIR"]).parents[1] / f"{hashlib.sha256(x.tobytes()).hexdigest()}.npy"
            if not kept.exists():
                np.save(kept, np.asarray(step(state, batch)[1]))
            return state, self.tools.put(np.load(kept))

        return cheating

    def program(self, arrays, tools, step, **more):
        self.tools = tools
        return super().program(arrays, tools, step, **more)
