"""Find descriptors by name: built-in ones and those of installed packages.

Built-in descriptors are the modules of a package, one each, with the descriptor in a constant. Others come from entry
points of the group that has the package's name. Modules are imported only when their descriptor is needed.
"""

import pkgutil
from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, Protocol, TypeVar

from accelbench.problem import describe_unknown


class Named(Protocol):
    """Require a name of every descriptor."""

    @property
    def name(self) -> str:
        """Return the name by which users select the descriptor."""
        ...


D = TypeVar("D", bound=Named)


class Registry(Generic[D]):
    """Find the descriptors of one kind, such as frameworks, by name."""

    def __init__(self, group: str, kind: type[D], error: type[LookupError]) -> None:
        """Create a registry.

        Args:
            group: Name of the package with the built-in descriptors, and of the group of entry points.
            kind: Class of the descriptors.
            error: Exception for a name without a valid descriptor.
        """
        self._group, self._kind, self._error = group, kind, error
        self._word = kind.__name__.lower()

    @cached_property
    def _built_in(self) -> tuple[str, ...]:
        """Return the names of the package's modules, sorted; `descriptor` only defines the class."""
        modules = (module.name for module in pkgutil.iter_modules(import_module(self._group).__path__))
        return tuple(sorted(name for name in modules if name != "descriptor"))

    @cached_property
    def _installed(self) -> Mapping[str, EntryPoint]:
        """Return the entry points of installed packages, by name."""
        return {point.name: point for point in entry_points(group=self._group)}

    @property
    def names(self) -> tuple[str, ...]:
        """Return all names, built-in ones first."""
        return (*self._built_in, *sorted(self._installed.keys() - set(self._built_in)))

    def find(self, name: str) -> D:
        """Return the descriptor of that name.

        Raises the registry's error if the name is unknown, or if an installed package's descriptor is invalid.
        """
        if name in self._built_in:
            descriptor: object = getattr(import_module(f"{self._group}.{name}"), self._word.upper())
        elif name in self._installed:
            point = self._installed[name]
            try:
                descriptor = point.load()
            except Exception as error:
                reason = f"{type(error).__name__}: {error}"
                raise self._error(f"{self._word} {name} ({point.value}): {reason}") from error
        else:
            raise self._error(describe_unknown(self._word, name, self.names))
        if not isinstance(descriptor, self._kind) or descriptor.name != name:
            raise self._error(f"{self._word} {name}: its entry point is not a {self._kind.__name__} of that name")
        return descriptor

    def every(self) -> tuple[D, ...]:
        """Return all valid descriptors, built-in ones first; `find` reports the mistakes of the others."""
        descriptors = []
        for name in self.names:
            try:
                descriptors.append(self.find(name))
            except self._error:
                continue
        return tuple(descriptors)


def load(path: str) -> object:
    """Import the module in `path`, which is `module:name`, and return that name of it."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
