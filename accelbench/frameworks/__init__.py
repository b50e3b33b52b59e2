"""Find frameworks by name, without importing any.

Each module of this package describes one framework. Others come from entry points of the group `accelbench.frameworks`,
each a `Framework` (`accelbench.frameworks.descriptor`) under its own name.
"""

import re

from accelbench.extensions import Registry
from accelbench.frameworks.descriptor import Framework, Mode, Options, UnsupportedPlatformError, install_message

__all__ = [
    "Framework",
    "Mode",
    "Options",
    "UnknownFrameworkError",
    "UnsupportedPlatformError",
    "every",
    "find",
    "install_message",
    "name_of",
    "names",
    "packages",
]


class UnknownFrameworkError(LookupError):
    """Report an unknown or invalid framework; the message suggests the nearest name or describes the fault."""


_REGISTRY = Registry(__name__, Framework, UnknownFrameworkError)


def names() -> tuple[str, ...]:
    """Return the names of all frameworks, built-in ones first."""
    return _REGISTRY.names


def find(name: str) -> Framework:
    """Return the framework of that name; raises UnknownFrameworkError."""
    return _REGISTRY.find(name)


def name_of(use: str) -> str:
    """Return the name of the framework of a variant or of a program: `jax` for `jax/jit`, `jax_scan/jit` and `jax2`.

    If the framework is unknown, return the text before the slash unchanged.
    """
    program = use.partition("/")[0]
    fitting_names = [name for name in names() if re.fullmatch(rf"{re.escape(name)}([_0-9]\w*)?", program)]
    # If the name of one framework begins with the name of another one, both fit: the longer name is right.
    return max(fitting_names, key=len, default=program)


def packages() -> frozenset[str]:
    """Return the names of the Python packages that belong to any framework, such as `jax` and `flax`."""
    return frozenset(package for framework in every() for package in framework.own)


def every() -> tuple[Framework, ...]:
    """Return all valid frameworks, built-in ones first."""
    return _REGISTRY.every()
