"""Observe random masks, call after call: do they differ, and is a repetition noticed?"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING, Any

from pydantic import Field

from accelbench.workload import Arrays, Measure, Program, Tools, Workload, WorkloadParameters, variant

if TYPE_CHECKING:
    from numpy.random import Generator

KEEP = 0.5


class Rng(Workload):
    """Draw a dropout mask of (size,) in each call, which keeps half.

    Row 59 of the claims: whoever forgets to split JAX's key has "identical dropout masks every step", without an error.
    Row 60: "if you're running multiple experiments in threads, PyTorch's global state can cause race conditions". For
    row 60, every call seeds anew, and `threads` threads draw `draws` masks each at once: reproducible draws are the
    same in every call.
    """

    name = "rng"
    modes = {"pytorch": ("eager", "compile")}
    observes = {
        "distinctMasks": "Number of distinct masks in all calls.",
        "masksAlike": "Did all calls that returned give the same mask?",
    }

    class Parameters(WorkloadParameters):
        """Set the shape and the number of calls."""

        size: int = Field(default=1024, ge=64, le=10_000_000, description="Numbers in the mask.")
        calls: int = Field(default=4, ge=2, le=100, description="Number of calls.")
        threads: int = Field(default=8, ge=2, le=64, description="Threads of the variants that draw in threads.")
        draws: int = Field(default=50, ge=1, le=10_000, description="Masks for each thread and call.")

    def measure(self, parameters: Parameters) -> Measure:
        """Observe each call."""
        del parameters
        return Measure(protocol="observe", unit="call")

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Return a seed, and ones to drop."""
        import numpy as np

        state = {"seed": rng.integers(2**31), "ones": np.ones(parameters.size)}
        return Arrays(state={name: np.asarray(array) for name, array in state.items()}, batches=[{}] * parameters.calls)

    @variant("jax/jit-reused-key")
    def jit_reused_key(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Reuse one key for all calls, as in the article's bug."""
        return _with_key(parameters, arrays, tools, splits=False)

    @variant("jax/jit-split-key")
    def jit_split_key(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Split the key in every call, as JAX requires."""
        return _with_key(parameters, arrays, tools, splits=True)

    @variant("jax/jit-reused-key-checked")
    def jit_reused_key_checked(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Reuse one key for all calls, with jax.debug_key_reuse."""
        return _with_key(parameters, arrays, tools, splits=False, checked=True)

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use the global generator, which advances by itself."""
        del parameters
        import torch

        torch.manual_seed(int(arrays.state["seed"]))

        def step(ones: Any, _batch: Any) -> tuple[Any, Any]:
            return ones, torch.nn.functional.dropout(ones, 1 - KEEP) > 0

        return Program(state=tools.put(arrays.state["ones"]), step=step, batches=arrays.batches, observe=_masks)

    @variant("pytorch/threads")
    def torch_threads(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Draw in all threads from the global generator, seeded before they start."""
        import torch

        seed = int(arrays.state["seed"])

        def step(ones: Any, _batch: Any) -> tuple[Any, Any]:
            torch.manual_seed(seed)
            return ones, torch.stack(_in_threads(parameters, lambda _: torch.nn.functional.dropout(ones, 1 - KEEP) > 0))

        state = tools.put(arrays.state["ones"])
        return Program(state=state, step=step, batches=arrays.batches, placed=True, observe=_masks)

    @variant("pytorch/threads-own-generator")
    def torch_threads_own_generator(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Draw in each thread from its own torch.Generator."""
        import torch

        seed = int(arrays.state["seed"])

        def step(ones: Any, _batch: Any) -> tuple[Any, Any]:
            own = [torch.Generator(ones.device).manual_seed(seed + thread) for thread in range(parameters.threads)]
            return ones, torch.stack(_in_threads(parameters, lambda t: torch.bernoulli(KEEP * ones, generator=own[t])))

        state = tools.put(arrays.state["ones"])
        return Program(state=state, step=step, batches=arrays.batches, placed=True, observe=_masks)

    @variant("jax/threads")
    def jax_threads(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Give each thread its own key, folded in from one."""
        import jax
        import jax.numpy as jnp

        mask = jax.jit(lambda key: jax.random.bernoulli(key, KEEP, (parameters.size,)))
        key = jax.random.key(int(arrays.state["seed"]))

        def step(ones: Any, _batch: Any) -> tuple[Any, Any]:
            own = [jax.random.fold_in(key, thread) for thread in range(parameters.threads)]

            def draw(thread: int) -> Any:
                own[thread], use = jax.random.split(own[thread])
                return mask(use)

            return ones, jnp.stack(_in_threads(parameters, draw))

        state = tools.put(arrays.state["ones"])
        return Program(state=state, step=step, batches=arrays.batches, placed=True, observe=_masks)


def _in_threads(parameters: Rng.Parameters, draw: Callable[[int], Any]) -> list[Any]:
    """Return the draws of each thread; all threads begin at once."""
    start = Barrier(parameters.threads)

    def run(thread: int) -> list[Any]:
        start.wait()
        return [draw(thread) for _ in range(parameters.draws)]

    with ThreadPoolExecutor(parameters.threads) as pool:
        return [mask for masks in pool.map(run, range(parameters.threads)) for mask in masks]


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
    return {"distinctMasks": distinct, "masksAlike": distinct == 1}
