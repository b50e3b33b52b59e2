"""Answer JAX-against-PyTorch questions with paired, checked experiments."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accelbench.notebook import check, compare

__all__ = ["check", "compare"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import `check` or `compare` when it is first used, because a launch must not import what it does not need."""
    if name in __all__:
        from accelbench import notebook

        return getattr(notebook, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
