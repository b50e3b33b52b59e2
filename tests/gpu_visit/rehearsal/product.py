"""Time a product of matrices under jit, as a program on the list of a visit prints what it measured."""

import json
import statistics
import time

import jax
import jax.numpy as jnp

SIZE, CALLS = 128, 20


def main() -> None:
    """Print a table of one row."""
    product = jax.jit(jnp.dot)
    matrix = jnp.ones((SIZE, SIZE))
    product(matrix, matrix).block_until_ready()
    seconds = []
    for _ in range(CALLS):
        began = time.perf_counter()
        product(matrix, matrix).block_until_ready()
        seconds.append(time.perf_counter() - began)
    columns, row = ["size", "median"], [f"{SIZE} x {SIZE}", f"{statistics.median(seconds) * 1e6:.0f} µs"]
    print(json.dumps({"title": "A product", "summary": f"{CALLS} calls.", "columns": columns, "rows": [row]}))


if __name__ == "__main__":
    main()
