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
        """Return carry = 0, and x (n,) = 0, 1/n, 2/n, ..."""
        del rng
        import numpy as np

        n = parameters.length
        return Arrays(state={"carry": np.zeros(())}, batches=({"x": np.arange(n) / n},))

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """Run the loop `units` times in NumPy, each time from the previous loop's last sine, or last sum / n."""
        import numpy as np

        carry, x = arrays.state["carry"], arrays.batches[0]["x"]
        if parameters.body == "sine":
            for _ in range(units):
                for element in x:
                    carry = np.sin(carry + element)
            return {"carry": np.asarray(carry)}
        sums = x
        for _ in range(units):
            sums = carry + np.cumsum(x)
            carry = sums[-1] / parameters.length
        return {"carry": np.asarray(carry), "sums": sums}

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Count the operations and bytes of one loop over x.

        `body: sine` adds n times, takes n sines and reads x. `body: sum` adds n times, divides once, reads x and writes
        the sums.
        """
        n = parameters.length
        if parameters.body == "sine":
            return Cost(flops=2.0 * n, bytes=float(n) * float_bytes)
        additions_and_division = float(n + 1)
        return Cost(flops=additions_and_division, bytes=2.0 * n * float_bytes)

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Write a Python loop over x, which jit unrolls."""
        import jax.numpy as jnp

        def all_sums(carry: Any, x: Any) -> Any:
            return jnp.stack(_running_sums(carry, x))

        def last_sine(carry: Any, x: Any) -> Any:
            return _last_sine(carry, x, jnp.sin)

        return _program(parameters, arrays, tools, all_sums, last_sine)

    @variant("jax/jit-scan")
    def jit_scan(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use lax.scan: the program has a loop, and its body is compiled once."""
        import jax
        import jax.numpy as jnp

        def add(total: Any, element: Any) -> tuple[Any, Any]:
            """Return the new total twice: as the carry of the scan, and as the output of this iteration."""
            return total + element, total + element

        def add_and_sine(carry: Any, element: Any) -> tuple[Any, None]:
            """Return the next sine as the carry of the scan, and no output."""
            return jnp.sin(carry + element), None

        def all_sums(carry: Any, x: Any) -> Any:
            _last, sums = jax.lax.scan(add, carry, x)
            return sums

        def last_sine(carry: Any, x: Any) -> Any:
            last, _ = jax.lax.scan(add_and_sine, carry, x)
            return last

        return _program(parameters, arrays, tools, all_sums, last_sine, compiler=jax.jit)

    @variant("jax/jit-fori")
    def jit_fori(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use lax.fori_loop; for `body: sum`, it writes each sum into an array."""
        import jax
        import jax.numpy as jnp

        def all_sums(carry: Any, x: Any) -> Any:
            """Return the running sums of x, starting from `carry`."""

            def add(i: Any, state: Any) -> Any:
                """Add x[i] to the total, and write the new total into `sums`."""
                total, sums = state
                return total + x[i], sums.at[i].set(total + x[i])

            _last, sums = jax.lax.fori_loop(0, parameters.length, add, (carry, jnp.zeros_like(x)))
            return sums

        def last_sine(carry: Any, x: Any) -> Any:
            return jax.lax.fori_loop(0, parameters.length, lambda i, carry: jnp.sin(carry + x[i]), carry)

        return _program(parameters, arrays, tools, all_sums, last_sine, compiler=jax.jit)

    @variant("jax/jit-cumsum")
    def jit_cumsum(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use jnp.cumsum instead of a loop; only for `body: sum`."""
        import jax
        import jax.numpy as jnp

        return _program(parameters, arrays, tools, all_sums=lambda carry, x: carry + jnp.cumsum(x), compiler=jax.jit)

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Write a Python loop over x, which torch.compile unrolls."""
        import torch

        def all_sums(carry: Any, x: Any) -> Any:
            return torch.stack(_running_sums(carry, x))

        def last_sine(carry: Any, x: Any) -> Any:
            return _last_sine(carry, x, torch.sin)

        return _program(parameters, arrays, tools, all_sums, last_sine)

    @variant("pytorch/cumsum")
    def cumsum(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use torch.cumsum instead of a loop, eagerly; only for `body: sum`."""
        import torch

        def all_sums(carry: Any, x: Any) -> Any:
            return carry + torch.cumsum(x, 0)

        return _program(parameters, arrays, tools, all_sums, compiler=_without_compiler)

    @variant("pytorch/compile-cumsum")
    def compile_cumsum(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use torch.cumsum instead of a loop, under torch.compile; only for `body: sum`."""
        import torch

        def all_sums(carry: Any, x: Any) -> Any:
            return carry + torch.cumsum(x, 0)

        return _program(parameters, arrays, tools, all_sums, compiler=torch.compile)


def _without_compiler(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function unchanged; this takes the place of jax.jit or torch.compile."""
    return function


def _running_sums(carry: Any, x: Any) -> list[Any]:
    """Return the running sums of x, starting from `carry`, in a Python loop."""
    sums = []
    for element in x:
        carry = carry + element
        sums.append(carry)
    return sums


def _last_sine(carry: Any, x: Any, sine: Callable[[Any], Any]) -> Any:
    """Replace carry by sine(carry + element) for each element of x; return the last sine."""
    for element in x:
        carry = sine(carry + element)
    return carry


def _program(
    parameters: LoopUnrolling.Parameters,
    arrays: Arrays,
    tools: Tools,
    all_sums: Callable[[Any, Any], Any],
    last_sine: Callable[[Any, Any], Any] | None = None,
    compiler: Callable[[Any], Any] | None = None,
) -> Program:
    """Return a program that runs `all_sums` (carry, x) -> sums or, for `body: sine`, `last_sine` (carry, x) -> sine.

    `compiler` compiles the step; without a compiler, accelbench compiles the step as the variant's mode says.
    """
    if parameters.body == "sum":

        def step(carry: Any, batch: Any) -> tuple[Any, Any]:
            """Return the next carry and the running sums."""
            sums = all_sums(carry, batch["x"])
            # The next loop needs the last sum of this one. The division keeps numbers small.
            return sums[-1] / parameters.length, sums

    elif last_sine:

        def step(carry: Any, batch: Any) -> tuple[Any, Any]:
            return last_sine(carry, batch["x"]), None

    else:
        raise ValueError("cumsum cannot compute sines: leave this variant out, or set body: sum")

    return Program(
        state=tools.put(arrays.state["carry"]),
        batches=tools.put(arrays.batches),
        step=compiler(step) if compiler else step,
        placed=compiler is not None,
        export=_export,
    )


def _export(carry: Any, sums: Any) -> dict[str, Any]:
    """Return the arrays to compare, by name; `sums` is None for `body: sine`."""
    return {"carry": carry} if sums is None else {"carry": carry, "sums": sums}
