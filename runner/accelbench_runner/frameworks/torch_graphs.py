"""Floating-point operations that Inductor's own passes have left; imports Inductor, which only what compiles needs."""

from typing import Any

import torch
from torch._inductor.custom_graph_pass import CustomGraphPass
from torch.utils._pytree import tree_map

from accelbench_runner.frameworks.torch_arithmetic import count


class Compiled(CustomGraphPass):  # type: ignore[misc]
    """Counts what Inductor's own passes have left of each graph that it compiles, and changes nothing."""

    def __init__(self) -> None:
        self.operations = 0.0
        self.graphs = 0

    def __call__(self, graph: torch.fx.Graph) -> None:
        """Called by Inductor, once a graph."""
        self.graphs += 1
        for node in graph.nodes:
            if node.op == "call_function":
                arguments, keywords, result = tree_map(_value, (node.args, node.kwargs, node))
                self.operations += count(node.target, arguments, keywords, result)

    def uuid(self) -> bytes:
        """What Inductor's cache knows the pass by: graphs that went through it are as they were."""
        return b"accelbench counts and changes nothing"


def _value(node: Any) -> Any:
    return node.meta.get("val") if isinstance(node, torch.fx.Node) else node
