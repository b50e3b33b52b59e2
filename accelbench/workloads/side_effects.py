"""What Python does beside computing: how often it happens once a function is compiled."""

from typing import TYPE_CHECKING, Any

from pydantic import Field

from accelbench.workload import Arrays, Measure, Program, Tools, Workload, WorkloadParameters

if TYPE_CHECKING:
    from numpy.random import Generator


class SideEffects(Workload):
    """x + 1 of x (size,), and a note in a list outside that it was called.

    Row 62 of the claims: a breakpoint in a compiled function fires "once during tracing" and never again; so does
    whatever else Python does there.
    """

    name = "side-effects"
    modes = {"jax": ("jit", "op-by-op"), "pytorch": ("eager", "compile")}
    observes = {"sideEffects": "Notes in the list after all calls."}

    class Parameters(WorkloadParameters):
        """Shape and number of calls."""

        size: int = Field(default=4, ge=1, le=1_000_000, description="Numbers in x.")
        calls: int = Field(default=4, ge=2, le=100, description="How often.")

    def measure(self, parameters: Parameters) -> Measure:
        """Each call is looked at."""
        del parameters
        return Measure(protocol="observe", unit="call")

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """The state is counted up; batches are nothing but calls."""
        return Arrays(state={"x": rng.standard_normal(parameters.size)}, batches=[{}] * parameters.calls)

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """`+` is the same in both frameworks."""
        del parameters
        return _program(arrays, tools)

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """`+` is the same in both frameworks."""
        del parameters
        return _program(arrays, tools)


def _program(arrays: Arrays, tools: Tools) -> Program:
    notes: list[str] = []

    def step(x: Any, _batch: Any) -> tuple[Any, Any]:
        notes.append("called")
        return x + 1, None

    return Program(
        state=tools.put(arrays.state["x"]),
        step=step,
        batches=arrays.batches,
        observe=lambda _outs: {"sideEffects": len(notes)},
    )
