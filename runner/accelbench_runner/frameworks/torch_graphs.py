"""Count operations in Inductor's graphs. Importing this module imports Inductor, which only compiling variants need."""

import math
from typing import Any

import torch
from torch._inductor.custom_graph_pass import CustomGraphPass
from torch.utils._pytree import tree_map

from accelbench_runner.frameworks.torch_operations import count_operations


class GraphCounter(CustomGraphPass):  # type: ignore[misc]
    """Count the floating-point operations that Inductor's passes leave in its graphs. The graphs are not changed."""

    def __init__(self) -> None:
        self.operations = 0.0
        """Operations of all graphs so far; NaN if they are unknown, as where a size depends on data."""
        self.graphs = 0
        """Number of graphs so far."""

    def __call__(self, graph: torch.fx.Graph) -> None:
        """Count the floating-point operations of a graph that Inductor has optimised; Inductor calls this.

        If they cannot be counted, the total becomes NaN.
        """
        self.graphs += 1
        for node in graph.nodes:
            if node.op == "call_function":
                try:
                    # The example value of the node itself is the operation's result.
                    arguments, keywords, result = tree_map(_example_value, (node.args, node.kwargs, node))
                    self.operations += count_operations(node.target, arguments, keywords, result)
                except Exception:  # noqa: BLE001 - counting must not fail a compilation
                    self.operations = math.nan  # adding the operations of other graphs keeps it NaN
                    return

    def uuid(self) -> bytes:
        """Return a constant as this pass's part of the key of Inductor's cache, because it changes no graph."""
        return b"accelbench counts, and changes nothing"


class _UnknownSizeError(Exception):
    """Report a size that depends on data."""


def _example_value(node: Any) -> Any:
    """Return the example value with which Dynamo traced a node of a graph; return any other argument itself."""
    if isinstance(node, torch.fx.Node):
        return tree_map(_with_concrete_sizes, node.meta.get("val"))
    return _with_concrete_sizes(node)


def _with_concrete_sizes(value: Any) -> Any:
    """Replace symbolic sizes by the sizes of the example inputs with which Dynamo compiles (`hint`).

    If a symbolic size were converted to int, Dynamo would compile again for every other size.
    """
    if isinstance(value, torch.SymInt):
        if value.node.hint is None:
            raise _UnknownSizeError
        return value.node.hint
    if isinstance(value, torch.Tensor) and any(isinstance(size, torch.SymInt) for size in value.shape):
        return torch.empty([_with_concrete_sizes(size) for size in value.shape], dtype=value.dtype, device="meta")
    return value
