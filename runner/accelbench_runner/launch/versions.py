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

    beside = {package_of(library): _version(library) for library in sorted(libraries)}
    return {"python": platform.python_version(), "numpy": np.__version__, **adapter.versions(), **beside}


def _version(library: str) -> str:
    """Its own, or else its package's: orbax has none, and orbax.checkpoint has."""
    versions = (getattr(sys.modules[module], "__version__", None) for module in (library, package_of(library)))
    return next((str(version) for version in versions if version), "unknown")
