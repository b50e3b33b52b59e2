"""A long loop: unrolled, as one loop of the compiled program, or as the one operation that it is."""

from typing import TYPE_CHECKING, Any

from pydantic import Field

from accelbench.workload import Arrays, Cost, NamedArrays, Program, Tools, Workload, WorkloadParameters, variant

if TYPE_CHECKING:
    from numpy.random import Generator


class LoopUnrolling(Workload):
    """sums[i] = carry + x[0] + ... + x[i] for x = 0, 1/n, 2/n, ...; the next carry is the last sum over n.

    Rows 14 and 15 of the claims: under jit a Python loop is unrolled, so that "the compiler sees 1000 copies of the
    loop body", and scan is "much faster than unrolling"; the article's example is the running sum of arange(1000).
    Every sum is kept, so that no compiler can fold the loop into one addition. One step is one loop.
    """

    name = "loop-unrolling"
    moves_once = True
    modes = {"jax": ("jit", "op-by-op"), "pytorch": ("eager", "compile")}

    class Parameters(WorkloadParameters):
        """How long the loop is."""

        length: int = Field(default=1000, ge=1, le=100_000, description="n, the numbers that are added up.")

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Carry () and x (n,); nothing is random."""
        del rng
        import numpy as np

        n = parameters.length
        return Arrays(state={"carry": np.zeros(())}, batches=({"x": np.arange(n) / n},))

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """The same in NumPy."""
        import numpy as np

        carry, x = arrays.state["carry"], arrays.batches[0]["x"]
        sums = x
        for _ in range(units):
            sums = carry + np.cumsum(x)
            carry = sums[-1] / parameters.length
        return {"carry": np.asarray(carry), "sums": sums}

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """An addition for each number; x is read, the sums are written."""
        return Cost(flops=float(parameters.length + 1), bytes=2.0 * parameters.length * float_bytes)

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """A Python loop, which jit unrolls."""
        import jax.numpy as jnp

        return _program(parameters, arrays, tools, lambda carry, x: jnp.stack(_loop(carry, x)))

    @variant("jax/jit-scan")
    def jit_scan(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """lax.scan: the loop is the program's own, its body compiled once."""
        import jax

        def add(total: Any, number: Any) -> tuple[Any, Any]:
            return total + number, total + number

        return _program(parameters, arrays, tools, lambda carry, x: jax.lax.scan(add, carry, x)[1], place=jax.jit)

    @variant("jax/jit-fori")
    def jit_fori(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """lax.fori_loop, which writes each sum into its place."""
        import jax
        import jax.numpy as jnp

        def sums(carry: Any, x: Any) -> Any:
            def add(i: Any, state: Any) -> Any:
                total, found = state
                return total + x[i], found.at[i].set(total + x[i])

            return jax.lax.fori_loop(0, parameters.length, add, (carry, jnp.zeros_like(x)))[1]

        return _program(parameters, arrays, tools, sums, place=jax.jit)

    @variant("jax/jit-cumsum")
    def jit_cumsum(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """jnp.cumsum: no loop at all."""
        import jax
        import jax.numpy as jnp

        return _program(parameters, arrays, tools, lambda carry, x: carry + jnp.cumsum(x), place=jax.jit)

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """A Python loop, which torch.compile unrolls."""
        import torch

        return _program(parameters, arrays, tools, lambda carry, x: torch.stack(_loop(carry, x)))

    @variant("pytorch/cumsum")
    def cumsum(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """torch.cumsum, eager."""
        import torch

        return _program(parameters, arrays, tools, lambda carry, x: carry + torch.cumsum(x, 0), place=lambda step: step)

    @variant("pytorch/compile-cumsum")
    def compile_cumsum(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """torch.cumsum under torch.compile."""
        import torch

        return _program(parameters, arrays, tools, lambda carry, x: carry + torch.cumsum(x, 0), place=torch.compile)


def _loop(carry: Any, x: Any) -> list[Any]:
    sums = []
    for number in x:
        carry = carry + number
        sums.append(carry)
    return sums


def _program(
    parameters: LoopUnrolling.Parameters, arrays: Arrays, tools: Tools, sums_of: Any, place: Any = None
) -> Program:
    """`sums_of` is given carry and x; `place` is what compiles the step, None where the adapter does by its mode."""

    def step(carry: Any, batch: Any) -> tuple[Any, Any]:
        sums = sums_of(carry, batch["x"])
        return sums[-1] / parameters.length, sums

    return Program(
        state=tools.put(arrays.state["carry"]),
        batches=tools.put(arrays.batches),
        step=place(step) if place else step,
        placed=place is not None,
        export=lambda carry, sums: {"carry": carry, "sums": sums},
    )
