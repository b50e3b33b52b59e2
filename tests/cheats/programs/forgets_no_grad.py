"""Parameters that would record a graph, and nobody who asks for gradients: honest, and measured without."""

from dataclasses import replace

from cheats.honest import Relaxation


class ForgetsNoGrad(Relaxation):
    """x <- tanh(x @ w), with a Parameter."""

    def pytorch(self, parameters, arrays, tools):
        import torch

        w = torch.nn.Parameter(tools.put(arrays.batches[0]["w"]))

        def step(state, batch):
            return {"x": torch.tanh(state["x"] @ batch["w"])}, None

        return replace(self.program(arrays, tools, step), batches=({"w": w},))
