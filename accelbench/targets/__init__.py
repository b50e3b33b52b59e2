"""Targets: what a program can be compiled for on a machine that has none of it. Facts come of it, and never a time.

`chips.yaml` has the chips; a target is so many of one: `h100`, `h100x8`, `v5e-16`. To add a chip, add it there.
"""

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Self

import yaml
from pydantic import Field, model_validator

from accelbench import figures
from accelbench.document import Document
from accelbench.problem import unknown

CHIPS = Path(__file__).with_name("chips.yaml")
MAXIMUM_DEVICES = 1024
GPU_COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, MAXIMUM_DEVICES)
EXTRAS: Mapping[str, str] = {"cuda": "targets-gpu", "tpu": "targets-tpu"}
"""Of accelbench, that bring a platform's compiler."""
NEEDS: Mapping[str, tuple[str, ...]] = {
    "cuda": ("jax-cuda13-plugin", "jax-cuda13-pjrt", "nvidia-cuda-nvcc", "nvidia-nvvm"),
    "tpu": ("libtpu",),
}
"""Distributions that a platform's compiler is in."""


class UnknownTargetError(LookupError):
    """Nothing of that name can be compiled for; the message has the nearest that can."""


class Specification(Document):
    """What XLA's compiler for GPUs would ask a driver for."""

    name: str
    major: int
    minor: int = 0
    features: str
    cores: int
    fpus_per_core: int
    shared_memory_per_core: int
    shared_memory_per_block: int
    l2_cache_bytes: int
    clock_gigahertz: str
    memory_bytes_per_second: int


class Chip(Document):
    """One kind of device, from `chips.yaml`."""

    name: str
    title: str
    platform: str
    """The kind of device, as a profile names it."""
    memory_bytes: int | None = None
    """That a program can have of it; None: what this machine has."""
    per_host: int = 1
    links: str = ""
    source: str = Field(min_length=1)
    """Where these figures are from."""
    specification: Specification | None = None
    slices: dict[int, str] = {}
    """Of a TPU: by the number in the slice's name, how its chips lie."""

    @model_validator(mode="after")
    def _a_gpu_is_specified_and_a_tpu_has_slices(self) -> Self:
        if (self.platform == "cuda") != (self.specification is not None) or (self.platform == "tpu") != bool(
            self.slices
        ):
            raise ValueError(f"{self.name}: a GPU needs a specification, a TPU slices, and nothing else either")
        return self


@dataclass(frozen=True)
class Target:
    """So many chips of a kind."""

    name: str
    chip: Chip
    devices: int
    topology: str = ""
    """How they lie: `4x4` of a TPU; `1x2x8`, slices by hosts by GPUs, of GPUs."""

    @property
    def platform(self) -> str:
        """The kind of device."""
        return self.chip.platform

    @property
    def extra(self) -> str:
        """Of accelbench, that brings its compiler; empty: JAX itself has it."""
        return EXTRAS.get(self.platform, "")

    @property
    def missing(self) -> str:
        """What to install before anything is compiled for it here; empty where all is there. Nothing is imported."""
        absent = [name for name in NEEDS.get(self.platform, ()) if not _is_installed(name)]
        if not absent:
            return ""
        return f"compiling for {self.name} needs {figures.listed(absent)}: pip install 'accelbench[{self.extra}]'"


@functools.cache
def chips() -> Mapping[str, Chip]:
    """The table, by name."""
    entries = yaml.safe_load(CHIPS.read_text(encoding="utf-8"))
    return {name: Chip.model_validate({"name": name, **entry}) for name, entry in entries.items()}


@functools.cache
def names() -> tuple[str, ...]:
    """Every target's name."""
    return tuple(target.name for target in _every().values())


def find(name: str) -> Target:
    """The target of that name; raises UnknownTargetError."""
    if (target := _every().get(name)) is None:
        raise UnknownTargetError(unknown("target", name, _short(name)))
    return target


@functools.cache
def _every() -> Mapping[str, Target]:
    return {target.name: target for chip in chips().values() for target in _of(chip)}


def _of(chip: Chip) -> list[Target]:
    match chip.platform:
        case "tpu":
            return [Target(f"{chip.name}-{number}", chip, _product(lie), lie) for number, lie in chip.slices.items()]
        case "cuda":
            return [
                Target(chip.name if count == 1 else f"{chip.name}x{count}", chip, count, _hosts(count, chip.per_host))
                for count in GPU_COUNTS
            ]
        case _:
            return [Target(chip.name, chip, 1)]


def _is_installed(distribution: str) -> bool:
    try:
        version(distribution)
    except PackageNotFoundError:
        return False
    return True


def _product(lie: str) -> int:
    return functools.reduce(int.__mul__, map(int, lie.split("x")))


def _hosts(count: int, per_host: int) -> str:
    return f"1x{max(1, count // per_host)}x{min(count, per_host)}"


def _short(name: str) -> list[str]:
    """The names to suggest: those of the chip that it begins with, or of every chip one."""
    own = [each for each in names() if (chip := re.match(r"[a-z0-9]+?(?=x\d|-|$)", name)) and each.startswith(chip[0])]
    return own or [next(each.name for each in _every().values() if each.chip is chip) for chip in chips().values()]
