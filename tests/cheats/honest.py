"""The honest computations behind the cheating programs, each of which overrides one framework's program or both."""

# ruff: noqa: ARG002 - the interface's signatures

from typing import Any

from accelbench.workload import Arrays, Cost, NamedArrays, Program, Tools, Workload

SIZE = 64


class Relaxation(Workload):
    """x <- tanh(x @ w): each step takes what the one before returned."""

    modes = {"jax": ("jit", "op-by-op", "scan"), "pytorch": ("eager", "compile")}

    def arrays(self, parameters: Any, rng: Any) -> Arrays:
        x, w = rng.standard_normal((2, SIZE, SIZE))
        return Arrays(state={"x": x}, batches=({"w": w / SIZE**0.5},))

    def reference(self, parameters: Any, arrays: Arrays, units: int) -> NamedArrays:
        import numpy as np

        x, w = arrays.state["x"], arrays.batches[0]["w"]
        for _ in range(units):
            x = np.tanh(x @ w)
        return {"x": x}

    def cost(self, parameters: Any, float_bytes: int) -> Cost:
        return Cost(flops=2.0 * SIZE**3 + SIZE**2, bytes=3.0 * SIZE**2 * float_bytes)

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        import jax.numpy as jnp

        return self.program(arrays, tools, lambda state, batch: ({"x": jnp.tanh(state["x"] @ batch["w"])}, None))

    def pytorch(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        import torch

        return self.program(arrays, tools, lambda state, batch: ({"x": torch.tanh(state["x"] @ batch["w"])}, None))

    def program(self, arrays: Arrays, tools: Tools, step: Any, **more: Any) -> Program:
        """`step`, altered, on the arrays as they are."""
        batches = tuple(tools.put(batch) for batch in arrays.batches)
        return Program(state=tools.put(arrays.state), step=self.altered(step), batches=batches, **more)

    def altered(self, step: Any) -> Any:
        """Where one cheats in either framework's step."""
        return step


class Descent(Relaxation):
    """x <- x - d/dx mean(tanh(x @ w)**2): each step computes a gradient, and the class declares nothing."""

    def reference(self, parameters: Any, arrays: Arrays, units: int) -> NamedArrays:
        import numpy as np

        x, w = arrays.state["x"], arrays.batches[0]["w"]
        for _ in range(units):
            y = np.tanh(x @ w)
            x = x - 2 * (y * (1 - y * y)) @ w.T / x.size
        return {"x": x}

    def cost(self, parameters: Any, float_bytes: int) -> None:  # type: ignore[override]
        return None


class Layer(Relaxation):
    """y = tanh(x @ w): a forward pass, which has no state and computes the same in every step."""

    def arrays(self, parameters: Any, rng: Any) -> Arrays:
        x, w = rng.standard_normal((2, SIZE, SIZE))
        return Arrays(state={"w": w / SIZE**0.5}, batches=({"x": x},))

    def reference(self, parameters: Any, arrays: Arrays, units: int) -> NamedArrays:
        import numpy as np

        return {"y": np.tanh(arrays.batches[0]["x"] @ arrays.state["w"])}

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        import jax.numpy as jnp

        return self.program(arrays, tools, lambda state, batch: (state, jnp.tanh(batch["x"] @ state["w"])))

    def pytorch(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        import torch

        return self.program(arrays, tools, lambda state, batch: (state, torch.tanh(batch["x"] @ state["w"])))

    def program(self, arrays: Arrays, tools: Tools, step: Any, **more: Any) -> Program:
        return super().program(arrays, tools, step, **{"export": lambda _state, y: {"y": y}, **more})
