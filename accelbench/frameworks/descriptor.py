"""Describe a framework without importing it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict

from accelbench.extensions import load


class UnsupportedPlatformError(LookupError):
    """Report that a framework does not support a platform; the message lists the supported platforms."""


class Options(BaseModel):
    """Base class of the options of a mode. A mode without options uses this class itself."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def unsupported(self, platform: str) -> str:  # noqa: ARG002 - a subclass may read it
        """Return which option the platform does not support, and why; empty (the default) if it supports all."""
        return ""


@dataclass(frozen=True)
class Mode:
    """Describe a way in which a framework runs a step, such as compiled."""

    summary: str = ""
    """One sentence for users who choose a mode."""
    options: type[Options] = Options
    compiles_in_first_call: bool = False
    """True if the first call compiles the program; False if it is compiled before, or not at all."""


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
    oldest: str = ""
    """The oldest release that the adapter works with; empty if unknown."""
    extra: str = ""
    """accelbench's extra that installs the framework.

    Empty if accelbench, or the package that has this descriptor, depends on the framework anyway.
    """
    own: frozenset[str] = frozenset()
    """Packages that a launch of another framework must not import."""
    returns_dataclasses: bool = True
    """False if a program can return a dataclass only after the dataclass was registered with the framework."""
    caches: Mapping[str, str] = field(default_factory=dict)
    """Name of each compile cache's folder in a launch, by the environment variable for the folder's path."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Other environment variables for launches."""
    profiling: Mapping[str, str] = field(default_factory=dict)
    """Environment variables for launches under the framework's profiler, which are not timed."""

    def backend(self, platform: str, backends: Mapping[str, str]) -> str:
        """Return the framework's own name of a platform; raises UnsupportedPlatformError.

        `backends` is what the platform's descriptor declares: each framework's name of the platform, by the framework's
        name. These names take precedence; without one, the framework has to list the platform among its own.
        """
        if self.name in backends:
            return backends[self.name]
        if platform not in self.platforms:
            supported = ", ".join(self.platforms)
            raise UnsupportedPlatformError(f"{self.title} computes on {supported}, and not on {platform}")
        return platform

    def why_too_old(self, version: str) -> str:
        """Return why a release of the framework, such as `0.6.2`, is too old to be measured; empty if it is not."""
        if not self.oldest or _release(version) >= _release(self.oldest):
            return ""
        return f"it has {self.title} {version}, and accelbench measures {self.title} from {self.oldest}"

    @property
    def install_message(self) -> str:
        """Return the message to show if the framework is not installed."""
        return install_message(self.package, self.extra)

    def load_adapter(self) -> Any:
        """Import and return the adapter's class. This imports the framework too."""
        return load(self.adapter)


def install_message(package: str, extra: str) -> str:
    """Return the message for a missing package, with the command that installs it.

    `extra` is accelbench's extra that has the package, or empty.
    """
    requirement = f"accelbench[{extra}]" if extra else package
    return f"{package} is not installed: pip install '{requirement}'"


def _release(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version: (2, 10, 0) for `2.10.0+cu130`."""
    numbers = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, numbers[0].split("."))) if numbers else ()
