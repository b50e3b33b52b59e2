"""Finds platforms by name: the kinds of device that a profile can ask for.

Ours are the modules of this package, one each. Others come from entry points of the group `accelbench.platforms`, each
a `Platform` (`accelbench.platforms.descriptor`) under its own name, with a domain before it: `example.com/chip`.
"""

from accelbench.extensions import Registry
from accelbench.platforms.descriptor import Platform

__all__ = ["Platform", "UnknownPlatformError", "every", "find", "names"]


class UnknownPlatformError(LookupError):
    """No platform has this name, or what has it is none; the message has the nearest, or says what is wrong."""


_REGISTRY = Registry(__name__, Platform, UnknownPlatformError)


def names() -> tuple[str, ...]:
    """Every platform's name, ours first."""
    return _REGISTRY.names


def find(name: str) -> Platform:
    """The platform of that name; raises UnknownPlatformError."""
    return _REGISTRY.find(name)


def every() -> tuple[Platform, ...]:
    """All that can be found, ours first."""
    return _REGISTRY.every()
