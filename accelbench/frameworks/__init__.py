"""Finds frameworks by name.

Ours are the modules of this package, one each. Others come from entry points of the group `accelbench.frameworks`, each
a `Framework` (`accelbench.frameworks.descriptor`) under its own name. No framework is imported here.
"""

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points

from accelbench.frameworks.descriptor import Framework, Mode, Options, not_installed
from accelbench.problem import unknown

__all__ = ["Framework", "Mode", "Options", "UnknownFrameworkError", "every", "find", "names", "not_installed"]

GROUP = "accelbench.frameworks"


class UnknownFrameworkError(LookupError):
    """No framework has this name, or what has it is none; the message has the nearest, or says what is wrong."""


@cache
def _built_in() -> tuple[str, ...]:
    return tuple(sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name != "descriptor"))


@cache
def _installed() -> Mapping[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


@cache
def names() -> tuple[str, ...]:
    """Every framework's name, ours first."""
    return (*_built_in(), *sorted(_installed().keys() - set(_built_in())))


@cache
def find(name: str) -> Framework:
    """The framework of that name; raises UnknownFrameworkError."""
    if name in _built_in():
        found: object = import_module(f"{__name__}.{name}").FRAMEWORK
    elif name in _installed():
        point = _installed()[name]
        try:
            found = point.load()
        except Exception as error:
            raise UnknownFrameworkError(f"framework {name} ({point.value}): {type(error).__name__}: {error}") from error
    else:
        raise UnknownFrameworkError(unknown("framework", name, names()))
    if not isinstance(found, Framework) or found.name != name:
        raise UnknownFrameworkError(f"framework {name}: its entry point is no Framework of that name")
    return found


def every() -> tuple[Framework, ...]:
    """All that can be found, ours first; what is broken is left out, and said where it is asked for by name."""
    found = []
    for name in names():
        try:
            found.append(find(name))
        except UnknownFrameworkError:
            continue
    return tuple(found)
