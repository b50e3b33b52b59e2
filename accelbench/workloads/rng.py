"""Observe random masks, call after call: do they differ, and is a repetition noticed?"""

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING, Any

from pydantic import Field

from accelbench.workload import Arrays, Measure, Program, Tools, Workload, WorkloadParameters, variant

if TYPE_CHECKING:
    from numpy.random import Generator

KEEP_PROBABILITY = 0.5


class Rng(Workload):
    """Draw a dropout mask of (size,) in each call, which keeps half.

    Row 59 of the claims: if JAX's key is not split, there are "identical dropout masks every step", without an error.
    Row 60: "if you're running multiple experiments in threads, PyTorch's global state can cause race conditions". For
    row 60, every call sets the seed again, and `threads` threads draw `draws` masks each at the same time: if draws are
    reproducible, every call gives the same masks.
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
        """Use the protocol `observe`, which records what the calls return and times nothing."""
        del parameters
        return Measure(protocol="observe", unit="call")

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Return a random seed, ones (size,) for dropout, and empty batches."""
        import numpy as np

        seed = np.asarray(rng.integers(2**31))
        return Arrays(state={"seed": seed, "ones": np.ones(parameters.size)}, batches=[{}] * parameters.calls)

    @variant("jax/jit-reused-key")
    def jit_reused_key(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use the same key in all calls, a bug that makes all masks equal."""
        return _jax_program(parameters, arrays, tools, splits=False)

    @variant("jax/jit-split-key")
    def jit_split_key(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Split the key in every call, as JAX requires."""
        return _jax_program(parameters, arrays, tools, splits=True)

    @variant("jax/jit-reused-key-checked")
    def jit_reused_key_checked(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use the same key in all calls under jax.debug_key_reuse, which raises an error when a key is used again."""
        return _jax_program(parameters, arrays, tools, splits=False, detects_reuse=True)

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Seed PyTorch's global generator once; each call draws from it, so that masks differ."""
        del parameters
        import torch

        torch.manual_seed(int(arrays.state["seed"]))

        def step(ones: Any, _batch: Any) -> tuple[Any, Any]:
            """Draw one mask from the global generator."""
            return ones, torch.nn.functional.dropout(ones, 1 - KEEP_PROBABILITY) > 0

        return Program(state=tools.put(arrays.state["ones"]), step=step, batches=arrays.batches, observe=_observe_masks)

    @variant("pytorch/threads")
    def torch_threads(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Draw from PyTorch's global generator in all threads, after seeding it in every call."""
        import torch

        seed = int(arrays.state["seed"])

        def step(ones: Any, _batch: Any) -> tuple[Any, Any]:
            """Seed the global generator, and draw masks from it in all threads."""
            torch.manual_seed(seed)

            def draw_mask(_thread: int) -> Any:
                """Draw one mask from the global generator, which all threads share."""
                return torch.nn.functional.dropout(ones, 1 - KEEP_PROBABILITY) > 0

            return ones, torch.stack(_draw_in_threads(parameters, draw_mask))

        state = tools.put(arrays.state["ones"])
        return Program(state=state, step=step, batches=arrays.batches, placed=True, observe=_observe_masks)

    @variant("pytorch/threads-own-generator")
    def torch_threads_own_generator(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Give each thread its own torch.Generator."""
        import torch

        seed = int(arrays.state["seed"])

        def step(ones: Any, _batch: Any) -> tuple[Any, Any]:
            """Create a seeded generator for each thread, and draw masks in all threads."""
            threads = range(parameters.threads)
            generators = [torch.Generator(ones.device).manual_seed(seed + thread) for thread in threads]

            def draw_mask(thread: int) -> Any:
                """Draw one mask from the thread's own generator."""
                return torch.bernoulli(KEEP_PROBABILITY * ones, generator=generators[thread])

            return ones, torch.stack(_draw_in_threads(parameters, draw_mask))

        state = tools.put(arrays.state["ones"])
        return Program(state=state, step=step, batches=arrays.batches, placed=True, observe=_observe_masks)

    @variant("jax/threads")
    def jax_threads(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Give each thread its own key, made from one key by jax.random.fold_in."""
        import jax
        import jax.numpy as jnp

        mask_of = jax.jit(lambda key: jax.random.bernoulli(key, KEEP_PROBABILITY, (parameters.size,)))
        key = jax.random.key(int(arrays.state["seed"]))

        def step(ones: Any, _batch: Any) -> tuple[Any, Any]:
            """Derive a key for each thread, and draw masks in all threads."""
            thread_keys = [jax.random.fold_in(key, thread) for thread in range(parameters.threads)]

            def draw_mask(thread: int) -> Any:
                """Split the thread's key, and draw a mask with the new key."""
                thread_keys[thread], mask_key = jax.random.split(thread_keys[thread])
                return mask_of(mask_key)

            return ones, jnp.stack(_draw_in_threads(parameters, draw_mask))

        state = tools.put(arrays.state["ones"])
        return Program(state=state, step=step, batches=arrays.batches, placed=True, observe=_observe_masks)


def _draw_in_threads(parameters: Rng.Parameters, draw_mask: Callable[[int], Any]) -> list[Any]:
    """Draw `draws` masks in each thread; return all masks in one list.

    A barrier makes the threads start at the same time.
    """
    barrier = Barrier(parameters.threads)

    def draw_masks(thread: int) -> list[Any]:
        """Wait until all threads have started, then draw this thread's masks."""
        barrier.wait()
        return [draw_mask(thread) for _ in range(parameters.draws)]

    with ThreadPoolExecutor(parameters.threads) as pool:
        masks_of_threads = pool.map(draw_masks, range(parameters.threads))
        return list(itertools.chain.from_iterable(masks_of_threads))


def _jax_program(
    parameters: Rng.Parameters, arrays: Arrays, tools: Tools, *, splits: bool, detects_reuse: bool = False
) -> Program:
    """Return a program that draws one mask in each call.

    If `splits`, each call uses a new key; otherwise all use the same key. If `detects_reuse`, JAX raises an error when
    a key is used again.
    """
    import jax

    mask_of = jax.jit(lambda key: jax.random.bernoulli(key, KEEP_PROBABILITY, (parameters.size,)))

    def step(state: Any, _batch: Any) -> tuple[Any, Any]:
        """Draw one mask; return the next state and the mask."""
        key, ones = state
        with jax.debug_key_reuse(detects_reuse):
            next_key, mask_key = jax.random.split(key) if splits else (key, key)
            return (next_key, ones), mask_of(mask_key)

    key = jax.random.key(int(arrays.state["seed"]))
    state = (key, tools.put(arrays.state["ones"]))
    return Program(state=state, step=step, batches=arrays.batches, placed=True, observe=_observe_masks)


def _observe_masks(outs: Sequence[Any]) -> dict[str, Any]:
    """Return how many different masks there are, and whether all are the same."""
    distinct_masks = len({out.tobytes() for out in outs if out is not None})
    return {"distinctMasks": distinct_masks, "masksAlike": distinct_masks == 1}
