"""A workload whose variants do away with work that it declares; launches find it as they find `odd_workloads`."""

# ruff: noqa: ARG002 - the interface's signatures

from typing import Any

from accelbench.workload import Arrays, Measure, Operations, Program, Tools, variant
from launch.odd_workloads import Odd


class Declaring(Odd):
    """Declares four products a call; each variant but two does away with some."""

    name = "declaring"
    modes = {"jax": ("jit", "op-by-op", "scan"), "pytorch": ("eager", "compile")}

    def measure(self, parameters: Any) -> Measure:
        return Measure(unit="product")

    def arrays(self, parameters: Any, rng: Any) -> Arrays:
        import numpy as np

        return Arrays(state={"x": np.eye(32)}, batches=({"w": np.eye(32)},))

    def operations(self, parameters: Any) -> Operations:
        return Operations(products=1)

    def _of(self, arrays: Arrays, tools: Tools, step: Any) -> Program:
        return Program(state=tools.put(arrays.state), batches=tools.put(arrays.batches), step=step, inner=4)

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        return self._of(arrays, tools, lambda state, batch: ({"x": state["x"] @ batch["w"]}, None))

    def pytorch(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        return self.jax(parameters, arrays, tools)

    @variant("jax/hoisted")
    def hoisted(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        import jax

        def one(state: Any, batch: Any) -> Any:
            return {"x": state["x"] + batch["w"] @ batch["w"]}, None

        return self._placed(
            arrays, tools, jax.jit(lambda state, batch: jax.lax.scan(lambda s, _: one(s, batch), state, length=4))
        )

    @variant("jax/folded")
    def folded(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        import jax

        w = tools.put(arrays.batches[0]["w"])
        return self._placed(arrays, tools, jax.jit(lambda state, _: ({"x": state["x"] + w @ w @ w @ w @ w}, None)))

    @variant("jax/dropped")
    def dropped(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        import jax

        return self._placed(arrays, tools, jax.jit(self._drops))

    @variant("pytorch/dropped")
    def dropped_by_autograd(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        import torch

        return self._placed(arrays, tools, torch.compile(self._drops, backend="aot_eager"))

    @variant("jax/endless")
    def endless(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        import jax

        def step(state: Any, batch: Any) -> Any:
            x = jax.lax.while_loop(lambda x: x.sum() < 0, lambda x: x @ batch["w"], state["x"])
            return {"x": x}, None

        return self._placed(arrays, tools, jax.jit(step))

    @staticmethod
    def _drops(state: Any, batch: Any) -> Any:
        x = state["x"]
        for _ in range(4):
            x = x @ batch["w"]
        return {"x": state["x"] + 1}, None

    def _placed(self, arrays: Arrays, tools: Tools, step: Any) -> Program:
        batches = tools.put(arrays.batches)
        return Program(state=tools.put(arrays.state), batches=batches, step=step, units=4, placed=True)
