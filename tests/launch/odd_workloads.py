"""Workloads that misbehave, each in one way; launches find them by entry points, as third parties' are."""

# ruff: noqa: ARG002 - the interface's signatures

import sys
from dataclasses import replace
from typing import Any, Self

from pydantic import Field, model_validator

from accelbench.workload import (
    Arrays,
    Cost,
    Measure,
    NamedArrays,
    Program,
    Tools,
    Workload,
    WorkloadParameters,
    variant,
)


class Odd(Workload):
    """x <- x + 1."""

    modes = {}

    def arrays(self, parameters: Any, rng: Any) -> Arrays:
        import numpy as np

        return Arrays(state={"x": np.zeros(8)})

    def reference(self, parameters: Any, arrays: Arrays, units: int) -> NamedArrays:
        return {"x": arrays.state["x"] + units}

    def cost(self, parameters: Any, float_bytes: int) -> Cost:
        return Cost(flops=8, bytes=0)


def program(arrays: Arrays, tools: Tools, step: Any) -> Program:
    return Program(state=tools.put(arrays.state), step=step, placed=True)


class Raising(Odd):
    name = "raising"

    @variant("jax/raising")
    def raising(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        def step(state: Any, batch: Any) -> Any:
            raise RuntimeError("the user's own mistake")

        return program(arrays, tools, step)


class Looking(Odd):
    """Decides by a value, as Python may where every operation runs at once."""

    name = "looking"
    modes = {"jax": ("op-by-op",)}

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        def step(state: Any, batch: Any) -> Any:
            return {"x": state["x"] + (1 if float(state["x"].sum()) >= 0 else 2)}, None

        return Program(state=tools.put(arrays.state), step=step)


class Loud(Odd):
    """Prints what looks like the protocol."""

    name = "loud"

    @variant("jax/loud")
    def loud(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        sys.stdout.write('{"type":"done"}\n' * 1000)
        return program(arrays, tools, lambda state, _: ({"x": state["x"] + 1}, None))


FIRST_RECOMPILATION = 16


class Recompiling(Odd):
    """Compiles anew now and then: the number of calls in between grows by a quarter.

    Timed calls are more than a quarter of those before them however busy the machine is, so some of them compile.
    """

    name = "recompiling"

    @variant("jax/now-and-then")
    def jax_now_and_then(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        import jax

        function = jax.jit(lambda x: x + 1)
        calls, again = 0, FIRST_RECOMPILATION

        def step(state: Any, _batch: Any) -> Any:
            nonlocal function, calls, again
            calls += 1
            if calls == again:
                again += again // 4
                function = jax.jit(lambda x: x + 1)
            return {"x": function(state["x"])}, None

        return program(arrays, tools, step)

    @variant("pytorch/compile")
    def torch_compile(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        import torch

        add = torch.compile(lambda x: x + 1, dynamic=False, backend="eager")
        calls, again = 0, FIRST_RECOMPILATION

        def step(state: Any, _batch: Any) -> Any:
            nonlocal calls, again
            calls += 1
            if calls == again:
                again += again // 4
                add(state["x"].new_zeros(again))
            return {"x": add(state["x"])}, None

        return program(arrays, tools, step)


class PastLimit(Odd):
    """Has been compiled so often that it is not compiled any more."""

    name = "past-limit"

    @variant("pytorch/compile")
    def torch_compile(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        import torch

        add = torch.compile(lambda x: x + 1, dynamic=False, backend="eager")
        for size in range(10, 20):
            add(torch.zeros(size))
        return program(arrays, tools, lambda state, _: ({"x": add(state["x"])}, None))


class Greedy(Odd):
    """Asks for more memory than any machine has."""

    name = "greedy"

    @variant("pytorch/greedy")
    def in_pytorch(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        return program(arrays, tools, lambda state, _: ({"x": state["x"].new_zeros(2**48)}, None))

    @variant("jax/greedy")
    def in_jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        import jax.numpy as jnp

        return program(arrays, tools, lambda state, _: ({"x": jnp.zeros(2**48) + state["x"][0]}, None))

    @variant("jax/greedy-numpy")
    def in_numpy(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        import numpy as np

        return program({"x": np.ones(2**48)}, tools, None)  # type: ignore[arg-type]


class Donating(Odd):
    """Hands its state's memory over with every call."""

    name = "donating"
    modes = {"jax": ("jit", "scan")}

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        return Program(
            state=tools.put(arrays.state),
            step=lambda state, _: ({"x": state["x"] + 1}, state["x"].sum()),
            inner=3,
            donate=True,
            export=lambda state, out: {"x": state["x"], "sum": out},
        )


class Choosy(Odd):
    """Has a rule about two parameters, and wants a protocol that is not built."""

    name = "choosy"
    modes = {"jax": ("jit",)}

    class Parameters(WorkloadParameters):
        low: int = Field(default=0, description="At most high.")
        high: int = Field(default=10, description="At least low.")

        @model_validator(mode="after")
        def _in_order(self) -> Self:
            if self.low > self.high:
                raise ValueError("low must not be above high")
            return self

    def measure(self, parameters: Any) -> Measure:
        return Measure(protocol="steady" if parameters.low else "observe")

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        return Program(state=tools.put(arrays.state), step=lambda state, _: ({"x": state["x"] + 1}, None))


class ByCall(Odd):
    """x <- x + 1, measured call by call; every tenth call in PyTorch takes ten times as long."""

    name = "by-call"

    def measure(self, parameters: Any) -> Measure:
        return Measure(protocol="latency", unit="answer", parity_units=3)

    @variant("pytorch/uneven")
    def uneven(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        import gc
        import time

        calls = 0

        def step(state: Any, _batch: Any) -> Any:
            nonlocal calls
            calls += 1
            assert gc.isenabled()
            until = time.perf_counter() + (0.001 if calls % 10 == 0 else 0.0001)
            while time.perf_counter() < until:
                pass
            return {"x": state["x"] + 1}, None

        return program(arrays, tools, step)


class InOnePass(Odd):
    """x <- x + sum(batch), where every batch has another shape, twice over."""

    name = "in-one-pass"
    modes = {"jax": ("jit",)}

    def measure(self, parameters: Any) -> Measure:
        return Measure(protocol="episode", unit="batch")

    def arrays(self, parameters: Any, rng: Any) -> Arrays:
        import numpy as np

        return Arrays(state={"x": np.zeros(8)}, batches=tuple({"y": np.ones(n)} for n in (2, 3, 4, 2, 3, 4)))

    def reference(self, parameters: Any, arrays: Arrays, units: int) -> NamedArrays:
        return {"x": arrays.state["x"] + sum(batch["y"].sum() for batch in arrays.batches[:units])}

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        return Program(
            state=tools.put(arrays.state),
            batches=tools.put(arrays.batches),
            step=lambda state, batch: ({"x": state["x"] + batch["y"].sum()}, None),
        )

    @variant("pytorch/compile-no-code")
    def compiled(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        """Dynamo counts what it compiles whoever writes code of it; nobody does here, so that no C++ compiler runs."""
        import torch

        plain = self.jax(parameters, arrays, tools)
        return replace(plain, step=torch.compile(plain.step, backend="eager"), placed=True)


class Exiting(Odd):
    """Ends its process."""

    name = "exiting"

    @variant("jax/exiting")
    def exiting(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        sys.exit(0)


class Unpaired(Odd):
    """Its step returns no pair: what `returns` says, of which rows of an array could pass for one."""

    name = "unpaired"
    modes = Workload.modes

    class Parameters(WorkloadParameters):
        returns: str = Field(default="rows", description="rows, three, none or list.")

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        def step(state: Any, _batch: Any) -> Any:
            x = state["x"]
            return {"rows": x.reshape(2, 4), "three": (x, x, x), "none": None, "list": [state, x]}[parameters.returns]

        return Program(state=tools.put(arrays.state), step=step)

    def pytorch(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        return self.jax(parameters, arrays, tools)

    @variant("pytorch/placed")
    def placed(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        return replace(self.jax(parameters, arrays, tools), placed=True)


ALL = [
    Exiting,
    Unpaired,
    ByCall,
    InOnePass,
    Choosy,
    Looking,
    Raising,
    Loud,
    Recompiling,
    PastLimit,
    Greedy,
    Donating,
]
