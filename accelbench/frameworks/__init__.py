"""Find frameworks by name, without importing any.

Each module of this package describes one framework. Others come from entry points of the group `accelbench.frameworks`,
each a `Framework` (`accelbench.frameworks.descriptor`) under its own name.
"""

from accelbench.extensions import Registry
from accelbench.frameworks.descriptor import DoesNotComputeThereError, Framework, Mode, Options, not_installed

__all__ = [
    "DoesNotComputeThereError",
    "Framework",
    "Mode",
    "Options",
    "UnknownFrameworkError",
    "every",
    "find",
    "names",
    "not_installed",
    "packages",
]


class UnknownFrameworkError(LookupError):
    """Report an unknown or invalid framework; the message suggests the nearest name or describes the fault."""


_REGISTRY = Registry(__name__, Framework, UnknownFrameworkError)


def names() -> tuple[str, ...]:
    """Return the names of all frameworks, built-in ones first."""
    return _REGISTRY.names


def find(name: str) -> Framework:
    """Return the framework of that name; raise UnknownFrameworkError."""
    return _REGISTRY.find(name)


def packages() -> frozenset[str]:
    """Return the packages of all frameworks that a launch of another framework must not import."""
    return frozenset[str]().union(*(framework.own for framework in every()))


def every() -> tuple[Framework, ...]:
    """Return all frameworks that load, built-in ones first."""
    return _REGISTRY.every()
