"""Multiply a chain of matrices: the gain of compilation where one large operation does all the work."""

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from accelbench.workload import (
    SMALLEST_PRODUCT,
    Arrays,
    Cost,
    Measure,
    NamedArrays,
    Operations,
    Program,
    Tools,
    Workload,
    WorkloadParameters,
)

if TYPE_CHECKING:
    from numpy.random import Generator


class MatmulChain(Workload):
    """Compute x <- x @ w, `length` times in one call; x and w are (size, size).

    Rows 1 to 5 of the claims: "PyTorch takes ~0.0087s ... JAX clocks in at ~0.0031s". The article multiplies x by
    itself, which overflows at the fifth product (`scaling: none`). By default w is orthogonal, so that all products
    work on numbers of the same scale.
    """

    name = "matmul-chain"
    modes = {**Workload.modes, "numpy": ("eager",)}
    moves_once = True

    class Parameters(WorkloadParameters):
        """Describe the chain."""

        size: int = Field(default=512, ge=1, le=32768, description="Rows and columns of the matrices.")
        length: int = Field(default=100, ge=1, le=2000, description="Products in one call.")
        scaling: Literal["normalized", "none"] = Field(
            default="normalized",
            description="normalized: x @ w with w orthogonal; none: x @ x, which overflows, as first published.",
        )

    def measure(self, parameters: Parameters) -> Measure:
        """Make one product the unit of work; for `scaling: none`, expect infinity and NaN."""
        overflows = "x @ x squares the numbers with every product: infinite at about the fifth, then not a number"
        return Measure(unit="product", non_finite=overflows if parameters.scaling == "none" else None)

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Draw x (size, size) and, unless scaling is `none`, an orthogonal w. A product with w keeps the scale of x."""
        import numpy as np

        n = parameters.size
        x = rng.standard_normal((n, n))
        if parameters.scaling == "none":
            return Arrays(state={"x": x})
        # Hartley matrix: cos + sin of 2 pi i j / n. The remainder i j mod n keeps the angle exact.
        turns = np.arange(n) / n
        angles = 2 * np.pi * turns[np.outer(np.arange(n), np.arange(n)) % n]
        hartley = (np.cos(angles) + np.sin(angles)) / np.sqrt(n)
        # Random signs of rows and a random order of columns leave w orthogonal.
        signs = rng.choice([-1.0, 1.0], size=(n, 1))
        w = (signs * hartley)[:, rng.permutation(n)]
        return Arrays(state={"x": x}, batches=({"w": w},))

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """Return x @ w^units or, for `scaling: none`, x squared `units` times."""
        import numpy as np

        x = arrays.state["x"]
        if parameters.scaling == "normalized":
            return {"x": x @ np.linalg.matrix_power(arrays.batches[0]["w"], units)}
        with np.errstate(over="ignore", invalid="ignore"):  # the programs overflow too
            for _ in range(units):
                x = x @ x
        return {"x": x}

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Count a product of two n x n matrices: 2 n^3 operations, two matrices read, one written."""
        n = parameters.size
        return Cost(flops=2.0 * n**3, bytes=3.0 * n**2 * float_bytes)

    def operations(self, parameters: Parameters) -> Operations | None:
        """Count one matrix product, unless it is so small that compilers turn it into sums."""
        return Operations(products=1) if parameters.size >= SMALLEST_PRODUCT else None

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Multiply matrices by `@`, which is the same in JAX, PyTorch and NumPy."""
        return _program(parameters, arrays, tools)

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Multiply matrices by `@`, which is the same in JAX, PyTorch and NumPy."""
        return _program(parameters, arrays, tools)

    def numpy(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Multiply matrices by `@`, which is the same in JAX, PyTorch and NumPy."""
        return _program(parameters, arrays, tools)


def _program(parameters: MatmulChain.Parameters, arrays: Arrays, tools: Tools) -> Program:
    """Return a program whose step multiplies x by w or, for `scaling: none`, x by itself."""

    def multiply_by_w(x: Any, batch: Any) -> tuple[Any, None]:
        return x @ batch["w"], None

    def square(x: Any, _batch: Any) -> tuple[Any, None]:
        return x @ x, None

    return Program(
        state=tools.put(arrays.state["x"]),
        batches=tools.put(arrays.batches),
        step=multiply_by_w if parameters.scaling == "normalized" else square,
        inner=parameters.length,
        export=lambda x, _: {"x": x},
    )
