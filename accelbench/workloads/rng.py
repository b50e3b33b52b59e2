"""Random masks, call after call: whether they differ, and who notices where they do not."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from accelbench.workload import Arrays, Measure, Program, Tools, Workload, WorkloadParameters, variant

if TYPE_CHECKING:
    from numpy.random import Generator

KEEP = 0.5


class Rng(Workload):
    """A dropout mask of (size,) in each call; half of it is kept.

    Row 59 of the claims: who forgets to split JAX's key has "identical dropout masks every step", and no error says so.
    """

    name = "rng"
    modes = {"pytorch": ("eager", "compile")}
    observes = {
        "distinctMasks": "Masks that differ from each other, of all calls.",
        "masksAlike": "Whether every call that returned had the same mask.",
    }

    class Parameters(WorkloadParameters):
        """Shape and number of calls."""

        size: int = Field(default=1024, ge=64, le=10_000_000, description="Numbers in the mask.")
        calls: int = Field(default=4, ge=2, le=100, description="How often.")

    def measure(self, parameters: Parameters) -> Measure:
        """Each call is looked at."""
        del parameters
        return Measure(protocol="observe", unit="call")

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """A seed, and ones to drop."""
        import numpy as np

        state = {"seed": rng.integers(2**31), "ones": np.ones(parameters.size)}
        return Arrays(state={name: np.asarray(each) for name, each in state.items()}, batches=[{}] * parameters.calls)

    @variant("jax/jit-reused-key")
    def jit_reused_key(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """The article's bug: one key for all calls."""
        return _with_key(parameters, arrays, tools, splits=False)

    @variant("jax/jit-split-key")
    def jit_split_key(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """The key is split in every call, as it should be."""
        return _with_key(parameters, arrays, tools, splits=True)

    @variant("jax/jit-reused-key-checked")
    def jit_reused_key_checked(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """The same bug, with jax.debug_key_reuse."""
        return _with_key(parameters, arrays, tools, splits=False, checked=True)

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """The generator is global, and moves on by itself."""
        del parameters
        import torch

        torch.manual_seed(int(arrays.state["seed"]))

        def step(ones: Any, _batch: Any) -> tuple[Any, Any]:
            return ones, torch.nn.functional.dropout(ones, 1 - KEEP) > 0

        return Program(state=tools.put(arrays.state["ones"]), step=step, batches=arrays.batches, observe=_masks)


def _with_key(
    parameters: Rng.Parameters, arrays: Arrays, tools: Tools, *, splits: bool, checked: bool = False
) -> Program:
    import jax

    mask = jax.jit(lambda key: jax.random.bernoulli(key, KEEP, (parameters.size,)))

    def step(state: Any, _batch: Any) -> tuple[Any, Any]:
        key, ones = state
        with jax.debug_key_reuse(checked):
            following, use = jax.random.split(key) if splits else (key, key)
            return (following, ones), mask(use)

    key = jax.random.key(int(arrays.state["seed"]))
    state = (key, tools.put(arrays.state["ones"]))
    return Program(state=state, step=step, batches=arrays.batches, placed=True, observe=_masks)


def _masks(outs: Sequence[Any]) -> dict[str, Any]:
    distinct = len({out.tobytes() for out in outs if out is not None})
    return {"distinctMasks": distinct, "masksAlike": distinct <= 1}
