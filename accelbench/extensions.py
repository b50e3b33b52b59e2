"""Find descriptors, such as those of frameworks, by name: built-in ones and those of installed packages.

Each module of a package of accelbench has one built-in descriptor, in a constant. Other packages add descriptors by
entry points of the group that has the package's name. A module is imported only when its descriptor is needed.
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


Descriptor = TypeVar("Descriptor", bound=Named)


class Registry(Generic[Descriptor]):
    """Find the descriptors of one kind, such as frameworks, by name."""

    def __init__(self, group: str, kind: type[Descriptor], error: type[LookupError]) -> None:
        """Create a registry of descriptors: built-in ones, and those of installed packages.

        Args:
            group: The package with the built-in descriptors, and the group of entry points, such as
                `accelbench.platforms`.
            kind: The descriptors' class, such as `Platform`.
            error: The exception for an unknown name or an invalid descriptor.
        """
        self._group = group
        self._kind = kind
        self._error = error
        self._kind_name = kind.__name__.lower()

    @cached_property
    def _built_in_names(self) -> tuple[str, ...]:
        """Return the names of the built-in descriptors, sorted."""
        modules = (module.name for module in pkgutil.iter_modules(import_module(self._group).__path__))
        return tuple(sorted(name for name in modules if name != "descriptor"))  # `descriptor` defines their class

    @cached_property
    def _entry_points(self) -> Mapping[str, EntryPoint]:
        """Return the group's entry points of installed packages, by name."""
        return {point.name: point for point in entry_points(group=self._group)}

    @property
    def names(self) -> tuple[str, ...]:
        """Return all names: the built-in ones, then those of installed packages."""
        installed_names = self._entry_points.keys() - set(self._built_in_names)
        return (*self._built_in_names, *sorted(installed_names))

    def find(self, name: str) -> Descriptor:
        """Return the descriptor of that name.

        Raises the registry's error if the name is unknown or the descriptor is invalid.
        """
        if name in self._built_in_names:
            module = import_module(f"{self._group}.{name}")
            descriptor: object = getattr(module, self._kind_name.upper())  # such as `FRAMEWORK` of the module `jax`
        elif name in self._entry_points:
            descriptor = self._load_installed(self._entry_points[name])
        else:
            raise self._error(describe_unknown(self._kind_name, name, self.names))
        if not isinstance(descriptor, self._kind) or descriptor.name != name:
            raise self._error(f"{self._kind_name} {name}: its entry point is not a {self._kind.__name__} of that name")
        return descriptor

    def _load_installed(self, point: EntryPoint) -> object:
        """Import and return the object that an entry point names; raises the registry's error if that fails."""
        try:
            return point.load()
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise self._error(f"{self._kind_name} {point.name} ({point.value}): {reason}") from error

    def every(self) -> tuple[Descriptor, ...]:
        """Return all descriptors that can be imported and are valid, built-in ones first."""
        descriptors = []
        for name in self.names:
            try:
                descriptors.append(self.find(name))
            except self._error:
                continue
        return tuple(descriptors)


def load(path: str) -> object:
    """Import a module and return one of its attributes; `path` is `module:attribute`."""
    module, _, attribute = path.partition(":")
    return getattr(import_module(module), attribute)
