"""Count operations in Inductor's graphs. Importing this module imports Inductor, which only compiling variants need."""

import math
from typing import Any

import torch
from torch._inductor.custom_graph_pass import CustomGraphPass
from torch.utils._pytree import tree_map

from accelbench_runner.frameworks.torch_operations import count


class GraphCounter(CustomGraphPass):  # type: ignore[misc]
    """Count floating-point operations that Inductor's passes leave in each graph, and change nothing."""

    def __init__(self) -> None:
        self.operations = 0.0
        """NaN if a size depends on data."""
        self.graphs = 0

    def __call__(self, graph: torch.fx.Graph) -> None:
        """Count one graph; Inductor calls this once per graph."""
        self.graphs += 1
        for node in graph.nodes:
            if node.op == "call_function":
                try:
                    arguments, keywords, result = tree_map(_value, (node.args, node.kwargs, node))
                except _UnknownSizeError:
                    self.operations = math.nan
                    return
                self.operations += count(node.target, arguments, keywords, result)

    def uuid(self) -> bytes:
        """Return the pass's key in Inductor's cache; it is constant, because the pass changes no graph."""
        return b"accelbench counts, and changes nothing"


class _UnknownSizeError(Exception):
    """Report a size that depends on data."""


def _value(node: Any) -> Any:
    """Return a node's example value, or any other argument, with concrete sizes."""
    return tree_map(_concrete, node.meta.get("val")) if isinstance(node, torch.fx.Node) else _concrete(node)


def _concrete(value: Any) -> Any:
    """Replace symbolic sizes by the hints they are compiled with.

    Converting a symbol to int would specialise it, and Dynamo would compile anew for every other size.
    """
    if isinstance(value, torch.SymInt):
        if value.node.hint is None:
            raise _UnknownSizeError
        return value.node.hint
    if isinstance(value, torch.Tensor) and any(isinstance(size, torch.SymInt) for size in value.shape):
        return torch.empty([_concrete(size) for size in value.shape], dtype=value.dtype, device="meta")
    return value
