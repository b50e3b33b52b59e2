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
        """Observe each call."""
        del parameters
        return Measure(protocol="observe", unit="call")

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Return x, and the values of a."""
        del rng
        import numpy as np

        return Arrays(
            state={"x": np.array(1.0)}, batches=[{"a": np.array(10.0**n)} for n in range(1, parameters.calls + 1)]
        )

    @variant("jax/jit")
    def jit(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Trace once; the first value stays in the program."""
        del parameters
        import jax

        return _program(jax.jit, arrays, tools)

    @variant("jax/op-by-op")
    def op_by_op(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Read the global in every call."""
        del parameters
        return _program(lambda function: function, arrays, tools)

    @variant("pytorch/eager")
    def eager(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Read the global in every call."""
        del parameters
        return _program(lambda function: function, arrays, tools)

    @variant("pytorch/compile")
    def compile(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Guard the global: recompile when it has changed, the second time for any value."""
        del parameters
        import torch

        return _program(torch.compile, arrays, tools)


def _program(place: Callable[[Any], Any], arrays: Arrays, tools: Tools) -> Program:
    captured = {"a": 0.0}
    add = place(lambda x: x + captured["a"])

    def step(x: Any, a: float) -> tuple[Any, Any]:
        captured["a"] = a
        return x, add(x)

    return Program(
        state=tools.put(arrays.state["x"]),
        step=step,
        batches=[float(batch["a"]) for batch in arrays.batches],
        placed=True,
        observe=_values,
    )


def _values(outs: Sequence[Any]) -> dict[str, Any]:
    return {"values": outs}
