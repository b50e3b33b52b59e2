"""Versions of what a launch has imported, for the fingerprint."""

import platform
import sys
from collections.abc import Iterable

from accelbench_runner.frameworks.adapter import Adapter


def package_of(module: str) -> str:
    """`flax` of `flax.nnx`."""
    return module.partition(".")[0]


def versions_of(adapter: Adapter, libraries: Iterable[str]) -> dict[str, str]:
    """Of Python, NumPy, the framework, and the packages that a workload's libraries come from."""
    import numpy as np

    packages = sorted(set(map(package_of, libraries)))
    beside = {package: str(getattr(sys.modules[package], "__version__", "unknown")) for package in packages}
    return {"python": platform.python_version(), "numpy": np.__version__, **adapter.versions(), **beside}
