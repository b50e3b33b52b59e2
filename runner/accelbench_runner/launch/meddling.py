"""Detect programs that replace accelbench's functions, or change environment variables that frameworks read."""

import os
import sys
from collections.abc import Iterator, Mapping
from types import FunctionType, ModuleType

PACKAGES = ("accelbench", "accelbench_runner")
FLAGS = (
    *("XLA_", "JAX_", "LIBTPU_", "TF_", "TORCH", "PYTORCH_", "TRITON_", "CUDA_", "CUBLAS_", "CUDNN_", "NVIDIA_"),
    *("OMP_", "KMP_", "MKL_", "OPENBLAS_", "DNNL_", "ONEDNN_"),
)
"""Prefixes of the environment variables that decide what a framework computes, and how."""

Functions = Mapping[str, tuple[object, object]]
"""Functions, each with its code object, by qualified name."""


def imported_functions() -> Functions:
    """Return all functions and methods of accelbench's imported modules by qualified name, each with its code object.

    A workload's file that replaces one of them, or its code, could change what is measured.
    """
    modules = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] in PACKAGES]
    functions: dict[str, tuple[object, object]] = {}
    for module in modules:
        for owner_name, owner in _modules_and_classes(module):
            for attribute, value in list(vars(owner).items()):
                if isinstance(value, FunctionType):  # also True for a mock of a function, which has no code object
                    functions[f"{owner_name}.{attribute}"] = (value, getattr(value, "__code__", None))
    return functions


def _modules_and_classes(module: ModuleType) -> Iterator[tuple[str, ModuleType | type]]:
    """Yield the module and the classes that it defines, with their qualified names."""
    yield module.__name__, module
    for name, value in list(vars(module).items()):
        if isinstance(value, type) and value.__module__ == module.__name__:
            yield f"{module.__name__}.{name}", value


def replaced_functions(before: Functions) -> list[str]:
    """Return the names of accelbench's functions that were replaced, deleted or changed after `before` was read."""
    now = imported_functions()
    return sorted(name for name, function in before.items() if not _is_same(function, now.get(name)))


def _is_same(before: tuple[object, object], now: tuple[object, object] | None) -> bool:
    """Return True if the function and its code object are the same objects as before."""
    if now is None:
        return False
    function_before, code_before = before
    function_now, code_now = now
    return function_before is function_now and code_before is code_now


def flags() -> dict[str, str]:
    """Return the environment variables that frameworks read: those whose names begin with one of `FLAGS`."""
    return {name: value for name, value in os.environ.items() if name.startswith(FLAGS)}


def changed_flags(before: Mapping[str, str]) -> list[str]:
    """Return the names of the environment variables in `flags` that were changed after `before` was read."""
    now = flags()
    return sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
