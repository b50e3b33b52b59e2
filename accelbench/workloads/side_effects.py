"""Observe how often a Python side effect happens once a function is compiled."""

from typing import TYPE_CHECKING, Any

from pydantic import Field

from accelbench.workload import Arrays, Measure, Program, Tools, Workload, WorkloadParameters

if TYPE_CHECKING:
    from numpy.random import Generator


class SideEffects(Workload):
    """Compute x + 1 for x (size,), and append to a list outside of the function in each call.

    Row 62 of the claims: a breakpoint in a compiled function fires "once during tracing" and never again; so does any
    other side effect.
    """

    name = "side-effects"
    modes = {"jax": ("jit", "op-by-op"), "pytorch": ("eager", "compile")}
    observes = {"sideEffects": "Entries in the list after all calls."}

    class Parameters(WorkloadParameters):
        """Set the shape and the number of calls."""

        size: int = Field(default=4, ge=1, le=1_000_000, description="Numbers in x.")
        calls: int = Field(default=4, ge=2, le=100, description="Number of calls.")

    def measure(self, parameters: Parameters) -> Measure:
        """Use the protocol `observe`, which records what the calls return and times nothing."""
        del parameters
        return Measure(protocol="observe", unit="call")

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Draw x (size,) as the state, and return an empty batch for each call."""
        return Arrays(state={"x": rng.standard_normal(parameters.size)}, batches=[{}] * parameters.calls)

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Append to a list and return x + 1, by code that is the same in JAX and PyTorch."""
        del parameters
        return _program(arrays, tools)

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Append to a list and return x + 1, by code that is the same in JAX and PyTorch."""
        del parameters
        return _program(arrays, tools)


def _program(arrays: Arrays, tools: Tools) -> Program:
    """Return a program whose step appends to a Python list, and whose observation is the list's length."""
    side_effects: list[str] = []

    def step(x: Any, _batch: Any) -> tuple[Any, Any]:
        """Append to the list; return x + 1 as the next state."""
        side_effects.append("called")
        return x + 1, None

    return Program(
        state=tools.put(arrays.state["x"]),
        step=step,
        batches=arrays.batches,
        observe=lambda _outs: {"sideEffects": len(side_effects)},
    )
