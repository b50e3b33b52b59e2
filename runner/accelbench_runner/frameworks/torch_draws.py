"""Draw the same random numbers in float64 as in the policy's type.

From the same seed, PyTorch draws other numbers for float64 than for narrower types, so a module would get other random
weights in float64.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

FILLING = frozenset({"bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_", "normal_", "uniform_"})
"""ATen operations that fill a tensor with random numbers."""
DRAWING = frozenset({"bernoulli", "normal", "rand", "rand_like", "randn", "randn_like"})
"""ATen operations that return random numbers."""


class Draws(TorchDispatchMode):  # type: ignore[misc]
    """Draw random numbers of float64 inside this context as numbers of the narrower type `dtype`, and convert them."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False: to skip Dynamo, PyTorch would import it, which takes a second."""
        return False

    def __torch_dispatch__(
        self, operation: Any, _types: Any, arguments: Sequence[Any] = (), keywords: Mapping[str, Any] | None = None
    ) -> Any:
        """Run an ATen operation; if it draws random float64 numbers, draw them in the narrower type and convert."""
        keywords = dict(keywords or {})
        name = operation.overloadpacket.__name__
        if name in FILLING and arguments[0].dtype == torch.float64:
            drawn = operation(arguments[0].to(self.dtype), *arguments[1:], **keywords)
            return arguments[0].copy_(drawn)
        if name not in DRAWING:
            return operation(*arguments, **keywords)
        # Without `dtype`, the result has its operand's type or else PyTorch's default type, which is float64 here.
        if keywords.get("dtype") in {None, torch.float64} and _takes_dtype(operation):
            # Without `dtype`, `rand_like` and `randn_like` take the type of their operand, which is narrowed below.
            takes_type_of_operand = name.endswith("_like") and keywords.get("dtype") is None
            keywords["dtype"] = None if takes_type_of_operand else self.dtype
        narrow_arguments, narrow_keywords = tree_map_only(torch.Tensor, self._narrow, (arguments, keywords))
        drawn = operation(*narrow_arguments, **narrow_keywords)
        return drawn.double() if drawn.dtype == self.dtype else drawn

    def _narrow(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a tensor of float64 in the narrower type, and any other tensor unchanged."""
        return tensor.to(self.dtype) if tensor.dtype == torch.float64 else tensor


def _takes_dtype(operation: Any) -> bool:
    """Return True if an ATen operation has an argument `dtype`, the type of its result."""
    return any(argument.name == "dtype" for argument in operation._schema.arguments)  # noqa: SLF001 - has no other name


_active_draws: list[Draws] = []
"""The mode that is active in this process; an empty list if there is none."""


def draw_random_numbers_in(dtype: torch.dtype) -> None:
    """Make PyTorch draw random float64 numbers in a narrower type for the rest of the process.

    From the same seed, it would draw other numbers in float64.
    """
    if _active_draws:
        _active_draws[0].dtype = dtype
    elif dtype != torch.float64:
        _active_draws.append(Draws(dtype))
        _active_draws[0].__enter__()
