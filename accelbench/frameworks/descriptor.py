"""What accelbench has to know of a framework without importing it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict

from accelbench.extensions import load


class DoesNotComputeThereError(LookupError):
    """A framework does not compute on that kind of device; the message says where it does."""


class Options(BaseModel):
    """The options of a mode; without a field it has none."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


@dataclass(frozen=True)
class Mode:
    """A way to run a plain step."""

    summary: str = ""
    """What it does, for people who choose among them."""
    options: type[Options] = Options
    compiles_in_first_call: bool = False
    """Else the first call is a step and no more: it was compiled before, or never is."""


@dataclass(frozen=True)
class Framework:
    """A framework that steps can be written in. A workload writes its program in a method of the same name."""

    name: str
    """As in `jax/jit`."""
    title: str
    """For people."""
    package: str
    """It is imported as."""
    modes: Mapping[str, Mode]
    adapter: str
    """`module:class` of its adapter (`accelbench_runner.frameworks.adapter.Adapter`); launches alone load it."""
    platforms: tuple[str, ...] = ("cpu",)
    """Those that it computes on, by the name that it has for them itself."""
    extra: str = ""
    """Of accelbench, that installs it; empty: it comes with accelbench, or with the package that describes it."""
    own: frozenset[str] = frozenset()
    """Packages that no launch of another framework may import."""
    caches: Mapping[str, str] = field(default_factory=dict)
    """Environment variables that say where it keeps what it compiles, each with a name for that folder."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """What its launches need beside."""

    def backend(self, platform: str, backends: Mapping[str, str]) -> str:
        """What it calls the platform, whose own `backends` come first; raises DoesNotComputeThereError."""
        if self.name in backends:
            return backends[self.name]
        if platform not in self.platforms:
            there = ", ".join(self.platforms)
            raise DoesNotComputeThereError(f"{self.title} computes on {there}, and not on {platform}")
        return platform

    @property
    def not_installed(self) -> str:
        """What to say, and what to do, where its package is missing."""
        return not_installed(self.package, self.extra)

    def load_adapter(self) -> Any:
        """The adapter's class, and with it the framework."""
        return load(self.adapter)


def not_installed(package: str, extra: str) -> str:
    """What to say, and what to do, where a package is missing that the extra of accelbench brings along."""
    what = f"accelbench[{extra}]" if extra else package
    return f"{package} is not installed: pip install '{what}'"
