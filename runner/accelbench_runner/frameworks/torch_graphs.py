"""Floating-point operations that Inductor's own passes have left; imports Inductor, which only what compiles needs."""

import math
from typing import Any

import torch
from torch._inductor.custom_graph_pass import CustomGraphPass
from torch.utils._pytree import tree_map

from accelbench_runner.frameworks.torch_arithmetic import count


class Compiled(CustomGraphPass):  # type: ignore[misc]
    """Counts what Inductor's own passes have left of each graph that it compiles, and changes nothing."""

    def __init__(self) -> None:
        self.operations = 0.0
        """NaN where a size is known to nobody before the graph runs."""
        self.graphs = 0

    def __call__(self, graph: torch.fx.Graph) -> None:
        """Called by Inductor, once a graph."""
        self.graphs += 1
        for node in graph.nodes:
            if node.op == "call_function":
                try:
                    arguments, keywords, result = tree_map(_value, (node.args, node.kwargs, node))
                except _NoSizeError:
                    self.operations = math.nan
                    return
                self.operations += count(node.target, arguments, keywords, result)

    def uuid(self) -> bytes:
        """What Inductor's cache knows the pass by: graphs that went through it are as they were."""
        return b"accelbench counts, and changes nothing"


class _NoSizeError(Exception):
    """Of a size that follows from data."""


def _value(node: Any) -> Any:
    return tree_map(_sized, node.meta.get("val")) if isinstance(node, torch.fx.Node) else _sized(node)


def _sized(value: Any) -> Any:
    """With the sizes that it is compiled with, where they are symbols.

    A symbol that is asked for its number is one no longer: Dynamo would compile anew for every other size.
    """
    if isinstance(value, torch.SymInt):
        if value.node.hint is None:
            raise _NoSizeError
        return value.node.hint
    if isinstance(value, torch.Tensor) and any(isinstance(size, torch.SymInt) for size in value.shape):
        return torch.empty([_sized(size) for size in value.shape], dtype=value.dtype, device="meta")
    return value
