"""Its answer is NaN."""

from pydantic import Field

from accelbench.workload import Measure, WorkloadParameters
from cheats.honest import Layer


class IsNotANumber(Layer):
    """y = log(-1 - (x @ w)^2)."""

    class Parameters(WorkloadParameters):
        """Whether it says so."""

        declared: bool = Field(default=False, description="NaN is expected.")

    def measure(self, parameters):
        """With what it declares."""
        return Measure(non_finite="logarithms of negative numbers" if parameters.declared else None)

    def reference(self, parameters, arrays, units):
        """NaN, everywhere."""
        return {"y": arrays.batches[0]["x"] * float("nan")}

    def jax(self, parameters, arrays, tools):
        return self.program(arrays, tools, lambda state, batch: (state, batch["x"] * float("nan")))

    def pytorch(self, parameters, arrays, tools):
        import torch

        def step(state, batch):
            return state, torch.log(-1 - torch.square(batch["x"] @ state["w"]))

        return self.program(arrays, tools, step)
