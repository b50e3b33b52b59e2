"""Answer JAX-against-PyTorch questions with paired, checked experiments."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accelbench.notebook import compare

__all__ = ["compare"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import and return `compare` when it is first used, because a launch must not import what it does not need."""
    if name == "compare":
        from accelbench.notebook import compare

        return compare
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
