"""Does nothing any more after some calls."""

from pydantic import Field

from accelbench.workload import WorkloadParameters
from cheats.honest import Relaxation


class SkipsLaterCalls(Relaxation):
    """x <- tanh(x @ w), for a while."""

    class Parameters(WorkloadParameters):
        """When it stops."""

        calls: int = Field(default=3, description="Of honest work.")

    def jax(self, parameters, arrays, tools):
        self.left = parameters.calls
        return super().jax(parameters, arrays, tools)

    def pytorch(self, parameters, arrays, tools):
        self.left = parameters.calls
        return super().pytorch(parameters, arrays, tools)

    def altered(self, step):
        def cheating(state, batch):
            self.left -= 1
            return step(state, batch) if self.left >= 0 else (state, None)

        return cheating
