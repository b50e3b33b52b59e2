"""Descriptors found by name, ours and other people's.

Ours are the modules of a package, one each, with the descriptor in a constant. Others come from entry points of the
group that has the package's name, each under its own name. Nothing is imported before it is asked for.
"""

import pkgutil
from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, Protocol, TypeVar

from accelbench.problem import unknown


class Named(Protocol):
    """What a descriptor has."""

    @property
    def name(self) -> str:
        """Under which it is found."""
        ...


D = TypeVar("D", bound=Named)


class Registry(Generic[D]):
    """The descriptors of one kind."""

    def __init__(self, group: str, kind: type[D], error: type[LookupError]) -> None:
        """`group`: our package, and the group of entry points; `error` is raised where a name leads nowhere."""
        self._group, self._kind, self._error = group, kind, error
        self._word = kind.__name__.lower()

    @cached_property
    def _built_in(self) -> tuple[str, ...]:
        modules = (module.name for module in pkgutil.iter_modules(import_module(self._group).__path__))
        return tuple(sorted(name for name in modules if name != "descriptor"))

    @cached_property
    def _installed(self) -> Mapping[str, EntryPoint]:
        return {point.name: point for point in entry_points(group=self._group)}

    @property
    def names(self) -> tuple[str, ...]:
        """Ours first."""
        return (*self._built_in, *sorted(self._installed.keys() - set(self._built_in)))

    def find(self, name: str) -> D:
        """The descriptor of that name; raises the registry's error, with the nearest name or with what is wrong."""
        if name in self._built_in:
            found: object = getattr(import_module(f"{self._group}.{name}"), self._word.upper())
        elif name in self._installed:
            point = self._installed[name]
            try:
                found = point.load()
            except Exception as error:
                why = f"{type(error).__name__}: {error}"
                raise self._error(f"{self._word} {name} ({point.value}): {why}") from error
        else:
            raise self._error(unknown(self._word, name, self.names))
        if not isinstance(found, self._kind) or found.name != name:
            raise self._error(f"{self._word} {name}: its entry point is not a {self._kind.__name__} of that name")
        return found

    def every(self) -> tuple[D, ...]:
        """All that can be found, ours first; what is broken is left out, and said where it is asked for by name."""
        found = []
        for name in self.names:
            try:
                found.append(self.find(name))
            except self._error:
                continue
        return tuple(found)


def load(path: str) -> object:
    """What `module:name` names; imports the module."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
