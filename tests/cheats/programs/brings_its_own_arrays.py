"""Places its arrays itself: NumPy's are float64, and PyTorch keeps them so."""

from accelbench.workload import Program
from cheats.honest import Relaxation


class BringsItsOwnArrays(Relaxation):
    """x <- tanh(x @ w), in float64."""

    def pytorch(self, parameters, arrays, tools):
        import torch

        def step(state, batch):
            return {"x": torch.tanh(state["x"] @ batch["w"])}, None

        x, w = torch.from_numpy(arrays.state["x"]), torch.from_numpy(arrays.batches[0]["w"])
        return Program(state={"x": x}, step=step, batches=({"w": w},))
