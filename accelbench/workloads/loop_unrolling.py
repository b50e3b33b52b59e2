"""Measure a long loop: unrolled, as a loop in the compiled program, or as one operation."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from accelbench.workload import Arrays, Cost, NamedArrays, Program, Tools, Workload, WorkloadParameters, variant

if TYPE_CHECKING:
    from numpy.random import Generator


class LoopUnrolling(Workload):
    """Compute carry <- carry + x[i] for x = 0, 1/n, 2/n, ...; or carry <- sin(carry + x[i]).

    Rows 14 and 15 of the claims: under jit a Python loop is unrolled, so that "the compiler sees 1000 copies of the
    loop body", and scan is "much faster than unrolling"; the article's example is the running sum of arange(1000). With
    `body: sum`, every sum is kept, so no compiler can fold the loop into one addition. Unrolled, XLA for CPUs
    recomputes each sum from the first number, and its compile time grows as n squared. With `body: sine`, only the last
    value is kept: nothing is folded, and nothing is computed twice. One step is one loop; the next begins with the last
    sum over n, or the last sine.
    """

    name = "loop-unrolling"
    moves_once = True
    modes = {"jax": ("jit", "op-by-op"), "pytorch": ("eager", "compile")}

    class Parameters(WorkloadParameters):
        """Set the length and the body of the loop."""

        length: int = Field(default=1000, ge=1, le=100_000, description="n, the numbers to add.")
        body: Literal["sum", "sine"] = Field(
            default="sum",
            description="sum: a running sum, all kept; sine: a sine around every addition, only the last kept.",
        )

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Return carry () and x (n,); nothing is random."""
        del rng
        import numpy as np

        n = parameters.length
        return Arrays(state={"carry": np.zeros(())}, batches=({"x": np.arange(n) / n},))

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """Compute the same in NumPy."""
        import numpy as np

        carry, x = arrays.state["carry"], arrays.batches[0]["x"]
        if parameters.body == "sine":
            for _ in range(units):
                for number in x:
                    carry = np.sin(carry + number)
            return {"carry": np.asarray(carry)}
        sums = x
        for _ in range(units):
            sums = carry + np.cumsum(x)
            carry = sums[-1] / parameters.length
        return {"carry": np.asarray(carry), "sums": sums}

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Count an addition for each number, and a sine; x is read, kept sums are written."""
        n = parameters.length
        if parameters.body == "sine":
            return Cost(flops=2.0 * n, bytes=float(n) * float_bytes)
        return Cost(flops=float(n + 1), bytes=2.0 * n * float_bytes)

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use a Python loop, which jit unrolls."""
        import jax.numpy as jnp

        def last(carry: Any, x: Any) -> Any:
            return _last_sine(carry, x, jnp.sin)

        return _program(parameters, arrays, tools, lambda carry, x: jnp.stack(_sums(carry, x)), last)

    @variant("jax/jit-scan")
    def jit_scan(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use lax.scan: a loop inside the program, whose body is compiled once."""
        import jax
        import jax.numpy as jnp

        def add(total: Any, number: Any) -> tuple[Any, Any]:
            return total + number, total + number

        def sine(carry: Any, number: Any) -> tuple[Any, None]:
            return jnp.sin(carry + number), None

        return _program(
            parameters,
            arrays,
            tools,
            lambda carry, x: jax.lax.scan(add, carry, x)[1],
            lambda carry, x: jax.lax.scan(sine, carry, x)[0],
            place=jax.jit,
        )

    @variant("jax/jit-fori")
    def jit_fori(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use lax.fori_loop, which writes each sum into its place."""
        import jax
        import jax.numpy as jnp

        def sums(carry: Any, x: Any) -> Any:
            def add(i: Any, state: Any) -> Any:
                total, kept = state
                return total + x[i], kept.at[i].set(total + x[i])

            return jax.lax.fori_loop(0, parameters.length, add, (carry, jnp.zeros_like(x)))[1]

        def last(carry: Any, x: Any) -> Any:
            return jax.lax.fori_loop(0, parameters.length, lambda i, carry: jnp.sin(carry + x[i]), carry)

        return _program(parameters, arrays, tools, sums, last, place=jax.jit)

    @variant("jax/jit-cumsum")
    def jit_cumsum(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use jnp.cumsum, without a loop; sums only."""
        import jax
        import jax.numpy as jnp

        return _program(parameters, arrays, tools, lambda carry, x: carry + jnp.cumsum(x), place=jax.jit)

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use a Python loop, which torch.compile unrolls."""
        import torch

        def last(carry: Any, x: Any) -> Any:
            return _last_sine(carry, x, torch.sin)

        return _program(parameters, arrays, tools, lambda carry, x: torch.stack(_sums(carry, x)), last)

    @variant("pytorch/cumsum")
    def cumsum(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use torch.cumsum, eagerly; sums only."""
        import torch

        return _program(parameters, arrays, tools, lambda carry, x: carry + torch.cumsum(x, 0), place=lambda step: step)

    @variant("pytorch/compile-cumsum")
    def compile_cumsum(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use torch.cumsum under torch.compile; sums only."""
        import torch

        return _program(parameters, arrays, tools, lambda carry, x: carry + torch.cumsum(x, 0), place=torch.compile)


def _sums(carry: Any, x: Any) -> list[Any]:
    sums = []
    for number in x:
        carry = carry + number
        sums.append(carry)
    return sums


def _last_sine(carry: Any, x: Any, sine: Callable[[Any], Any]) -> Any:
    for number in x:
        carry = sine(carry + number)
    return carry


def _program(
    parameters: LoopUnrolling.Parameters,
    arrays: Arrays,
    tools: Tools,
    sums_of: Callable[[Any, Any], Any],
    last_sine_of: Callable[[Any, Any], Any] | None = None,
    place: Callable[[Any], Any] | None = None,
) -> Program:
    """Make a program of carry and x; `place` compiles the step, or is None if the adapter does."""
    if parameters.body == "sum":

        def step(carry: Any, batch: Any) -> tuple[Any, Any]:
            sums = sums_of(carry, batch["x"])
            return sums[-1] / parameters.length, sums

    elif last_sine_of:

        def step(carry: Any, batch: Any) -> tuple[Any, Any]:
            return last_sine_of(carry, batch["x"]), None

    else:
        raise ValueError("cumsum cannot compute sines: leave this variant out, or set body: sum")

    return Program(
        state=tools.put(arrays.state["carry"]),
        batches=tools.put(arrays.batches),
        step=place(step) if place else step,
        placed=place is not None,
        export=lambda carry, sums: {"carry": carry} if sums is None else {"carry": carry, "sums": sums},
    )
