"""Describe a framework without importing it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict

from accelbench.extensions import load


class DoesNotComputeThereError(LookupError):
    """Report that a framework does not support a platform; the message lists those that it supports."""


class Options(BaseModel):
    """Base the options of a mode on this model; without fields, a mode has no options."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


@dataclass(frozen=True)
class Mode:
    """Describe a way to run a plain step."""

    summary: str = ""
    """One sentence for users who choose a mode."""
    options: type[Options] = Options
    compiles_in_first_call: bool = False
    """False: the program is compiled before its first call, or not at all."""


@dataclass(frozen=True)
class Framework:
    """Describe a framework. A workload writes its program in a method of the same name."""

    name: str
    """Name in manifests, as in `jax/jit`."""
    title: str
    """Name in reports and messages."""
    package: str
    """Package to import."""
    modes: Mapping[str, Mode]
    adapter: str
    """`module:class` of its adapter (`accelbench_runner.frameworks.adapter.Adapter`), which only launches load."""
    platforms: tuple[str, ...] = ("cpu",)
    """Supported platforms, by the framework's own names."""
    extra: str = ""
    """accelbench's extra that installs it; empty if it comes with accelbench or with the package that describes it."""
    own: frozenset[str] = frozenset()
    """Packages that a launch of another framework must not import."""
    caches: Mapping[str, str] = field(default_factory=dict)
    """Environment variables for its compile caches, each with the name of a folder for a launch."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Other environment variables of its launches."""

    def backend(self, platform: str, backends: Mapping[str, str]) -> str:
        """Return the framework's own name of a platform; raise DoesNotComputeThereError.

        `backends` are the platform's (`Platform.backends`), which take precedence.
        """
        if self.name in backends:
            return backends[self.name]
        if platform not in self.platforms:
            supported = ", ".join(self.platforms)
            raise DoesNotComputeThereError(f"{self.title} computes on {supported}, and not on {platform}")
        return platform

    @property
    def not_installed(self) -> str:
        """Return the message for a missing package."""
        return not_installed(self.package, self.extra)

    def load_adapter(self) -> Any:
        """Import the adapter's class, and with it the framework."""
        return load(self.adapter)


def not_installed(package: str, extra: str) -> str:
    """Return the message for a missing package, with the command that installs it."""
    requirement = f"accelbench[{extra}]" if extra else package
    return f"{package} is not installed: pip install '{requirement}'"
