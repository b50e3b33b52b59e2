"""A module with its optimizer, as PyTorch is taught: honest."""

from dataclasses import replace

from accelbench.workload import Measure
from cheats.honest import SIZE, Relaxation


class TrainsAModule(Relaxation):
    """One step of stochastic gradient descent."""

    def measure(self, parameters):
        """With gradients."""
        return Measure(differentiates=True)

    def reference(self, parameters, arrays, units):
        """By hand."""
        x, w = arrays.batches[0]["w"], arrays.state["x"]
        for _ in range(units):
            w = w - 0.1 * 2 * ((x @ w.T).T @ x) / x.size
        return {"x": w}

    def pytorch(self, parameters, arrays, tools):
        import torch

        model = torch.nn.Linear(SIZE, SIZE, bias=False)
        model.weight.data = tools.put(arrays.state["x"])
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

        def step(state, batch):
            model, optimizer = state
            optimizer.zero_grad()
            loss = model(batch["w"]).square().mean()
            loss.backward()
            optimizer.step()
            return state, loss

        honest = self.program(arrays, tools, step, export=lambda state, _: {"x": state[0].weight})
        return replace(honest, state=(model, optimizer))

    def jax(self, parameters, arrays, tools):
        import jax

        def step(state, batch):
            loss, slope = jax.value_and_grad(lambda w: ((batch["w"] @ w.T) ** 2).mean())(state["x"])
            return {"x": state["x"] - 0.1 * slope}, loss

        return self.program(arrays, tools, step)
