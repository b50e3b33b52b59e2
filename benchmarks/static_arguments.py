"""Measure the memory that each program of a jitted function with a static argument keeps: row 18 of the claims.

    python benchmarks/static_arguments.py > docs/results/static_arguments.md

The function is that of article A3: `x[:size]` with a static `size`, so each value is another program. Resident memory
also has tables that grow and what the compiler leaves. So it is measured several times, after equally many new values,
in a process that has compiled some before.
"""

import functools
import gc
import itertools
import platform
import statistics

import jax
import jax.numpy as jnp
import psutil

BEFORE, VALUES, TIMES = 100, 200, 5
"""Values that are compiled before measuring, values in each measurement, and number of measurements."""


@functools.partial(jax.jit, static_argnums=1)
def f(x: jax.Array, size: int) -> jax.Array:
    """Return the first `size` elements of x."""
    return x[:size]


def main() -> None:
    """Measure, and print the page as Markdown."""
    process, x = psutil.Process(), jnp.arange(float(BEFORE + VALUES * TIMES + 1))
    sizes = iter(range(1, len(x)))

    def compile_more(count: int) -> int:
        """Compile for this many new values, and return the resident memory in bytes."""
        for _ in range(count):
            f(x, next(sizes)).block_until_ready()
        return int(process.memory_info().rss)

    resident = [compile_more(BEFORE), *(compile_more(VALUES) for _ in range(TIMES))]
    jax.clear_caches()
    gc.collect()
    stayed = (int(process.memory_info().rss) - resident[0]) / (resident[-1] - resident[0])
    kept = [(after - before) / VALUES / 1e6 for before, after in itertools.pairwise(resident)]
    print(f"""# What a program for each static argument keeps in memory

`python benchmarks/static_arguments.py` with JAX {jax.__version__}, Python {platform.python_version()}: `x[:size]`
under jit with `size` static. After {BEFORE} values, {TIMES} times {VALUES} new ones, each of which compiles a program.

Resident memory grew by {statistics.median(kept):.2f} MB a program (median; {min(kept):.2f} to {max(kept):.2f}).

After `jax.clear_caches()` {stayed:.0%} of that was still resident: the system gets it back when the process ends.""")


if __name__ == "__main__":
    main()
