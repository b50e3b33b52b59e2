"""Observe which value of a global a compiled function sees after the global has changed."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from accelbench.workload import Arrays, Measure, Program, Tools, Workload, WorkloadParameters, variant

if TYPE_CHECKING:
    from numpy.random import Generator


class CapturedGlobal(Workload):
    """Compute x + a for x = 1, where a is a global: 10 in the first call, then ten times its last value.

    Row 61 of the claims: after a = 100 the compiled function "still" returns 11, because tracing reads a value once.
    Plain Python returns 11, then 101.
    """

    name = "captured-global"
    modes = {}
    observes = {"values": "Values that the calls returned."}

    class Parameters(WorkloadParameters):
        """Set how often the value changes."""

        calls: int = Field(default=2, ge=2, le=8, description="Number of calls; the value changes before each.")

    def measure(self, parameters: Parameters) -> Measure:
        """Use the protocol `observe`, which records what the calls return and times nothing."""
        del parameters
        return Measure(protocol="observe", unit="call")

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Return x = 1, and the value that the global `a` gets before each call: 10, 100, ..."""
        del rng
        import numpy as np

        batches = [{"a": np.array(10.0**call)} for call in range(1, parameters.calls + 1)]
        return Arrays(state={"x": np.array(1.0)}, batches=batches)

    @variant("jax/jit")
    def jit(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Trace the function once, so that the global's first value stays in the program."""
        del parameters
        import jax

        return _program(jax.jit, arrays, tools)

    @variant("jax/op-by-op")
    def op_by_op(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Read the global in every call, because nothing is compiled."""
        del parameters
        return _program(_without_compiler, arrays, tools)

    @variant("pytorch/eager")
    def eager(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Read the global in every call, because nothing is compiled."""
        del parameters
        return _program(_without_compiler, arrays, tools)

    @variant("pytorch/compile")
    def compile(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Guard the global's value: its first change compiles a second program, which takes any value."""
        del parameters
        import torch

        return _program(torch.compile, arrays, tools)


def _without_compiler(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function unchanged; this takes the place of jax.jit or torch.compile."""
    return function


def _program(compiler: Callable[[Any], Any], arrays: Arrays, tools: Tools) -> Program:
    """Return a program whose calls set the global `a` and return x + a; `compiler` compiles the addition."""
    global_values = {"a": 0.0}  # stands for the globals of a module
    add = compiler(lambda x: x + global_values["a"])

    def step(x: Any, a: float) -> tuple[Any, Any]:
        """Set the global to `a`; return x and x + a."""
        global_values["a"] = a
        return x, add(x)

    return Program(
        state=tools.put(arrays.state["x"]),
        step=step,
        batches=[float(batch["a"]) for batch in arrays.batches],
        placed=True,
        observe=_observe_values,
    )


def _observe_values(outs: Sequence[Any]) -> dict[str, Any]:
    """Report the value that each call returned."""
    return {"values": outs}
