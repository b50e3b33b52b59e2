"""Run steps whose compiled parts torch.compile records as CUDA graphs and replays.

A graph replays kernels on the addresses that it was recorded with. torch.compile copies other inputs to these
addresses before each replay, but expects parameters to stay where they are: at another address, it records again. And a
replay overwrites the outputs of the replay before it. PyTorch's documentation has users mark each iteration, and clone
outputs that they keep: https://docs.pytorch.org/docs/stable/torch.compiler_cudagraph_trees.html
"""

import copy
from collections.abc import Callable, Iterator
from functools import wraps
from importlib import import_module
from typing import Any

import torch
from torch.utils import _pytree as pytree

from accelbench_runner.frameworks.adapter import UnsupportedError

Step = Callable[[Any, Any], tuple[Any, Any]]
"""(state, batch) -> (next state, out)."""
RECORDED = "cudagraph_recorded_non_static_inputs"
"""Counter that torch.compile creates when it records a graph. Its value may be 0, so only its presence counts."""
SKIPPED = "cudagraph_skips"
"""Counter of the graphs that torch.compile could not record."""


def with_marked_iterations(step: Step) -> Step:
    """Return the step, changed to mark the beginning of an iteration, and to clone outputs that a replay may overwrite.

    An output that is one of the inputs, because the step changes it in place, is not cloned.
    """

    @wraps(step)
    def marked_step(state: Any, batch: Any) -> tuple[Any, Any]:
        torch.compiler.cudagraph_mark_step_begin()
        input_ids = {id(value) for value in pytree.tree_leaves((state, batch))}

        def clone_output(value: Any) -> Any:
            """Clone a tensor that the next replay may overwrite."""
            is_new_tensor = isinstance(value, torch.Tensor) and id(value) not in input_ids
            return value.clone() if is_new_tensor else value

        result: tuple[Any, Any] = pytree.tree_map(clone_output, step(state, batch))
        return result

    return marked_step


class SameAddresses:
    """Copy a state for each block, always to the same addresses."""

    def __init__(self) -> None:
        self._copies: dict[int, torch.Tensor] = {}
        """The only copy of each of the state's tensors, by the tensor's `id`."""

    def copy(self, state: Any) -> Any:
        """Return a deep copy of the state, in the memory of the previous copy.

        The previous copy must not be used any more. The state itself must stay alive.
        """
        with torch.no_grad():
            for tensor in _tensors(state):
                if id(tensor) not in self._copies:
                    self._copies[id(tensor)] = copy.deepcopy(tensor)
                    continue
                earlier_copy = self._copies[id(tensor)]
                earlier_copy.copy_(tensor)
                if earlier_copy.is_leaf:
                    earlier_copy.grad = None  # drop the gradient of the block that used the copy
        # `deepcopy` takes finished copies by `id` as its argument `memo`.
        return copy.deepcopy(state, memo=dict(self._copies))


def require_graphs() -> None:
    """Raise UnsupportedError if torch.compile recorded no CUDA graph in the calls so far.

    Without a graph, the times would be those of another mode, max-autotune-no-cudagraphs or the default.
    """
    counters = import_module("torch._dynamo.utils").counters["inductor"]
    if counters[SKIPPED] and RECORDED not in counters:
        raise UnsupportedError(
            "torch.compile recorded no CUDA graph, for the reason on stderr ('skipping cudagraphs'; mutated inputs are "
            "the usual one): leave the mode out, or take max-autotune-no-cudagraphs"
        )


def _tensors(state: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors of a state: its own, and the parameters and buffers of its modules."""
    for value in pytree.tree_leaves(state):
        if isinstance(value, torch.nn.Module):
            yield from value.parameters()
            yield from value.buffers()
        elif isinstance(value, torch.Tensor):
            yield value
