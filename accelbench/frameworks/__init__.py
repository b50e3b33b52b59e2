"""Finds frameworks by name.

Ours are the modules of this package, one each. Others come from entry points of the group `accelbench.frameworks`, each
a `Framework` (`accelbench.frameworks.descriptor`) under its own name. No framework is imported here.
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
    """No framework has this name, or what has it is none; the message has the nearest, or says what is wrong."""


_REGISTRY = Registry(__name__, Framework, UnknownFrameworkError)


def names() -> tuple[str, ...]:
    """Every framework's name, ours first."""
    return _REGISTRY.names


def find(name: str) -> Framework:
    """The framework of that name; raises UnknownFrameworkError."""
    return _REGISTRY.find(name)


def packages() -> frozenset[str]:
    """What no launch of another framework may import, of every framework."""
    return frozenset[str]().union(*(framework.own for framework in every()))


def every() -> tuple[Framework, ...]:
    """All that can be found, ours first."""
    return _REGISTRY.every()
