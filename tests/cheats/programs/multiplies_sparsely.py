"""Keeps its matrix in PyTorch as a sparse tensor; honest."""

from dataclasses import replace

from accelbench.workload import Arrays
from cheats.honest import SIZE, Layer


class MultipliesSparsely(Layer):
    """y = tanh(x @ w), of a matrix that is mostly zeros."""

    def arrays(self, p, rng):
        x, w = rng.standard_normal((2, SIZE, SIZE))
        return Arrays(state={"w": w * (rng.random((SIZE, SIZE)) < 0.05)}, batches=({"x": x},))

    def pytorch(self, p, arrays, tools):
        import torch

        w = tools.put(arrays.state["w"])
        h = self.program(arrays, tools, lambda s, b: (s, torch.tanh((s["w"] @ b["x"].T).T)))
        return replace(h, state={"w": w.T.contiguous().to_sparse_csr()})
