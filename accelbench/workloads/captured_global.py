"""A function that reads what is not its argument: which value a compiled one sees after it has changed."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from accelbench.workload import Arrays, Measure, Program, Tools, Workload, WorkloadParameters, variant

if TYPE_CHECKING:
    from numpy.random import Generator


class CapturedGlobal(Workload):
    """x + a of x = 1, where a is no argument: 10 in the first call, then 10 times what it was.

    Row 61 of the claims: after a = 100 the compiled function "still" returns 11, because tracing reads a value once.
    What Python would return is 11, 101.
    """

    name = "captured-global"
    modes = {}
    observes = {"values": "What each call returned."}

    class Parameters(WorkloadParameters):
        """How often the value changes."""

        calls: int = Field(default=2, ge=2, le=8, description="How often; the value changes before each.")

    def measure(self, parameters: Parameters) -> Measure:
        """Each call is looked at."""
        del parameters
        return Measure(protocol="observe", unit="call")

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """x, and the values that a takes."""
        del rng
        import numpy as np

        return Arrays(
            state={"x": np.array(1.0)}, batches=[{"a": np.array(10.0**n)} for n in range(1, parameters.calls + 1)]
        )

    @variant("jax/jit")
    def jit(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Traced once."""
        del parameters
        import jax

        return _program(jax.jit, arrays, tools)

    @variant("jax/op-by-op")
    def op_by_op(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Python, every time."""
        del parameters
        return _program(lambda function: function, arrays, tools)

    @variant("pytorch/eager")
    def eager(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Python, every time."""
        del parameters
        return _program(lambda function: function, arrays, tools)

    @variant("pytorch/compile")
    def compile(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Guarded: compiled again where what it read has changed, the second time for any number."""
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
