"""Its reference is its PyTorch step, wrong axis and all."""

from cheats.honest import Layer


class CopiesItsReference(Layer):
    """y = softmax(x @ w)."""

    def reference(self, parameters, arrays, units):
        """By PyTorch."""
        import torch

        x, w = torch.tensor(arrays.batches[0]["x"]), torch.tensor(arrays.state["w"])
        return {"y": torch.softmax(x @ w, dim=0).numpy()}

    def jax(self, parameters, arrays, tools):
        import jax

        return self.program(
            arrays, tools, lambda state, batch: (state, jax.nn.softmax(batch["x"] @ state["w"], axis=1))
        )

    def pytorch(self, parameters, arrays, tools):
        import torch

        return self.program(arrays, tools, lambda state, batch: (state, torch.softmax(batch["x"] @ state["w"], dim=0)))
