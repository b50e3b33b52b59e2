"""Says that it costs nothing: there is nothing to hold its speed against."""

from accelbench.workload import Cost
from cheats.honest import Relaxation


class DeclaresNoCost(Relaxation):
    """x <- tanh(x @ w), for free."""

    def cost(self, parameters, float_bytes):
        """None."""
        return Cost(flops=0, bytes=0)
