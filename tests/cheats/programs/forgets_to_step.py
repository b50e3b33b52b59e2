"""Computes the loss in JAX, and forgets the update, which is too small to be missed."""

from accelbench.workload import Cost, Measure
from cheats.honest import SIZE, Relaxation


class ForgetsToStep(Relaxation):
    """w <- w - 1e-4 gradient of the mean of (x @ w)^2."""

    def measure(self, parameters):
        return Measure(differentiates=True)

    def cost(self, parameters, float_bytes):
        return Cost(flops=4.0 * SIZE**3, bytes=3.0 * SIZE**2 * float_bytes)

    def reference(self, parameters, arrays, units):
        x, w = arrays.batches[0]["w"], arrays.state["x"]
        for _ in range(units):
            loss = ((x @ w.T) ** 2).mean()
            w = w - 1e-4 * 2 * ((x @ w.T).T @ x) / x.size
        return {"x": w, "loss": loss}

    def pytorch(self, parameters, arrays, tools):
        import torch

        def step(state, batch):
            w = state["x"].detach().requires_grad_()
            loss = (batch["w"] @ w.T).square().mean()
            (g,) = torch.autograd.grad(loss, w)
            return {"x": w.detach() - 1e-4 * g}, loss.detach()

        return self.program(arrays, tools, step, export=lambda s, loss: {"x": s["x"], "loss": loss})

    def jax(self, parameters, arrays, tools):
        def step(state, batch):
            return {"x": state["x"]}, ((batch["w"] @ state["x"].T) ** 2).mean()

        return self.program(arrays, tools, step, export=lambda s, loss: {"x": s["x"], "loss": loss})
