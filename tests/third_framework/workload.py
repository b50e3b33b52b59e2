# ruff: noqa: ARG002 - arguments are the interface's
"""x <- x / (1 + x^2), in NumPy and in lists."""

from typing import Any

from accelbench.workload import Arrays, Cost, NamedArrays, Program, Tools, Workload


class Damping(Workload):
    name = "damping"
    modes = {"numpy": ("eager",), "lists": ("eager",)}

    def arrays(self, parameters: Any, rng: Any) -> Arrays:
        return Arrays(state={"x": rng.standard_normal(4096)})

    def reference(self, parameters: Any, arrays: Arrays, units: int) -> NamedArrays:
        x = arrays.state["x"]
        for _ in range(units):
            x = x / (1 + x * x)
        return {"x": x}

    def cost(self, parameters: Any, float_bytes: int) -> Cost:
        return Cost(flops=3 * 4096, bytes=2 * 4096 * float_bytes)

    def numpy(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        return Program(state=tools.put(arrays.state), step=lambda state, _: ({"x": _damped(state["x"])}, None))

    def lists(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        import numpy as np

        return Program(
            state=tools.put(arrays.state),
            step=lambda state, _: ({"x": [_damped(x) for x in state["x"]]}, None),
            export=lambda state, _: {"x": np.array(state["x"])},
        )


def _damped(x: Any) -> Any:
    return x / (1 + x * x)
