"""accelbench settles JAX-against-PyTorch questions with paired, checked experiments."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from accelbench.notebook import compare

__all__ = ["compare"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`compare`, imported when somebody asks for it: a launch imports nothing that it does not need."""
    if name == "compare":
        from accelbench.notebook import compare

        return compare
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
