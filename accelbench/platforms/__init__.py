"""Find platforms by name: the kinds of device that a profile can request.

Each module of this package describes one platform. Others come from entry points of the group `accelbench.platforms`,
each a `Platform` (`accelbench.platforms.descriptor`) under its own name, with a domain as prefix: `example.com/chip`.
"""

from accelbench.extensions import Registry
from accelbench.platforms.descriptor import Platform

__all__ = ["Platform", "UnknownPlatformError", "every", "find", "names"]


class UnknownPlatformError(LookupError):
    """Report an unknown or invalid platform; the message suggests the nearest name or describes the fault."""


_REGISTRY = Registry(__name__, Platform, UnknownPlatformError)


def names() -> tuple[str, ...]:
    """Return the names of all platforms, built-in ones first."""
    return _REGISTRY.names


def find(name: str) -> Platform:
    """Return the platform of that name; raises UnknownPlatformError."""
    return _REGISTRY.find(name)


def every() -> tuple[Platform, ...]:
    """Return all valid platforms, built-in ones first."""
    return _REGISTRY.every()
