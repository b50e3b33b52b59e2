"""Observe for which platforms JAX has code of the functions that it runs on a CPU."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from accelbench.workload import Arrays, Measure, Program, Tools, Workload, variant

if TYPE_CHECKING:
    from numpy.random import Generator

PLATFORMS = ("cpu", "cuda", "tpu")
ROWS = 4


class AnyPlatform(Workload):
    """Lower a public function of a (4, 4) matrix for a CPU, a CUDA GPU and a TPU: one call each, and nothing is run.

    Row 84 of the claims: "The same code runs on any backend — XLA handles code generation for each." Lowering needs no
    device: JAX looks up each operation's translation for the platform, and raises an exception where there is none. A
    product of matrices has one for every platform. LAPACK computes eigenvalues of a matrix that is not symmetric, and
    Schur's decomposition, on a CPU; not every platform has a counterpart.
    """

    name = "any-platform"
    modes = {}
    observes = {"lowered": "For cpu, cuda and tpu: yes if JAX has code of the function for it."}

    def measure(self, parameters: Any) -> Measure:
        """Use the protocol `observe`, which records what the calls return and times nothing."""
        del parameters
        return Measure(protocol="observe", unit="call")

    def arrays(self, parameters: Any, rng: "Generator") -> Arrays:
        """Draw a matrix."""
        del parameters
        return Arrays(state={}, batches=({"x": rng.standard_normal((ROWS, ROWS))},))

    @variant("jax/product")
    def product(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        """Lower x @ x."""
        del parameters
        return _program(arrays, tools, lambda x: x @ x)

    @variant("jax/eigenvalues")
    def eigenvalues(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        """Lower jnp.linalg.eigvals(x)."""
        del parameters
        import jax.numpy as jnp

        return _program(arrays, tools, jnp.linalg.eigvals)

    @variant("jax/schur")
    def schur(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        """Lower jax.scipy.linalg.schur(x)."""
        del parameters
        import jax.scipy.linalg

        return _program(arrays, tools, jax.scipy.linalg.schur)


def _program(arrays: Arrays, tools: Tools, function: Callable[[Any], Any]) -> Program:
    """Return a program whose calls lower the function for one platform after another."""
    return Program(
        state=tools.put(arrays.batches[0]["x"]),
        step=partial(_lower, function),
        batches=PLATFORMS,
        placed=True,
        observe=lambda outs: {"lowered": [None if out is None else "yes" for out in outs]},
    )


def _lower(function: Callable[[Any], Any], x: Any, platform: str) -> tuple[Any, str]:
    """Lower the function for the platform; return x as the next state, and the platform as the output.

    Raises JAX's exception if JAX cannot lower the function.
    """
    import jax

    jax.jit(function).trace(x).lower(lowering_platforms=(platform,))
    return x, platform
