"""Says no_grad itself, as a careful user does: honest."""

from cheats.honest import Relaxation


class NeedsNoGradients(Relaxation):
    """x <- tanh(x @ w), without gradients."""

    def pytorch(self, parameters, arrays, tools):
        import torch

        @torch.no_grad()
        def step(state, batch):
            return {"x": torch.tanh(state["x"] @ batch["w"])}, None

        return self.program(arrays, tools, step)
