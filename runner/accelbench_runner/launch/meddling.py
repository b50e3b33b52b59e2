"""Whether a program meddles with what measures it: accelbench's own functions, and flags that frameworks read."""

import os
import sys
from collections.abc import Iterator, Mapping
from types import FunctionType, ModuleType

OURS = ("accelbench", "accelbench_runner")
FLAGS = (
    *("XLA_", "JAX_", "LIBTPU_", "TF_", "TORCH", "PYTORCH_", "TRITON_", "CUDA_", "CUBLAS_", "CUDNN_", "NVIDIA_"),
    *("OMP_", "KMP_", "MKL_", "OPENBLAS_", "DNNL_", "ONEDNN_"),
)
"""How the environment variables begin that decide what a framework computes, and how."""

Functions = Mapping[str, tuple[object, object]]
"""Functions by name, each with the code that it runs."""


def functions() -> Functions:
    """Of accelbench's modules that have been imported, and of their classes."""
    modules = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] in OURS]
    return {
        f"{name}.{attribute}": (value, getattr(value, "__code__", None))
        for module in modules
        for name, owner in _owners(module)
        for attribute, value in list(vars(owner).items())
        if isinstance(value, FunctionType)
    }


def _owners(module: ModuleType) -> Iterator[tuple[str, ModuleType | type]]:
    yield module.__name__, module
    for name, value in list(vars(module).items()):
        if isinstance(value, type) and value.__module__ == module.__name__:
            yield f"{module.__name__}.{name}", value


def replaced(before: Functions) -> list[str]:
    """The names of functions that are others now than they were."""
    now = functions()
    return sorted(name for name, function in before.items() if not _same(function, now.get(name)))


def _same(one: tuple[object, object], other: tuple[object, object] | None) -> bool:
    return other is not None and one[0] is other[0] and one[1] is other[1]


def flags() -> dict[str, str]:
    """The environment variables that frameworks read."""
    return {name: value for name, value in os.environ.items() if name.startswith(FLAGS)}


def changed(before: Mapping[str, str]) -> list[str]:
    """The names of those that have been set, changed or taken away."""
    now = flags()
    return sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
