"""Describe targets: devices that a program can be compiled for without having them. Compiling yields facts, not times.

A target is a number of chips of one kind: `h100`, `h100x8`, `v5e-16`. Add a chip in `chips.yaml`.
"""

import functools
import math
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
from accelbench.problem import describe_unknown

CHIPS = Path(__file__).with_name("chips.yaml")
MAXIMUM_DEVICES = 1024
GPU_COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, MAXIMUM_DEVICES)
EXTRAS: Mapping[str, str] = {"cuda": "targets-gpu", "tpu": "targets-tpu"}
"""Extras of accelbench that install a platform's compiler."""
NEEDS: Mapping[str, tuple[str, ...]] = {
    "cuda": ("jax-cuda13-plugin", "jax-cuda13-pjrt", "nvidia-cuda-nvcc", "nvidia-nvvm"),
    "tpu": ("libtpu",),
}
"""Distributions that contain a platform's compiler."""


class UnknownTargetError(LookupError):
    """Report an unknown target; the message suggests the nearest name."""


class UnevenMeshError(ValueError):
    """Report axes that do not fit the devices; the message suggests what to change."""


class Specification(Document):
    """Hold the figures of a GPU that its driver would report to XLA's compiler."""

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
    """Describe one kind of device, from `chips.yaml`."""

    name: str
    title: str
    platform: str
    """Platform, as in a profile."""
    memory_bytes: int | None = None
    """Memory available to a program; None for this machine's memory."""
    per_host: int = 1
    """Number of chips in one host."""
    links: str = ""
    """Connections between chips, for people."""
    source: str = Field(min_length=1)
    """Source of these figures."""
    specification: Specification | None = None
    slices: dict[int, str] = {}
    """Topology of each TPU slice, by the number in its name."""

    @model_validator(mode="after")
    def _check_platform_fields(self) -> Self:
        """Raise ValueError for fields that belong to another platform, or that this one lacks."""
        if (self.platform == "cuda") != (self.specification is not None) or (self.platform == "tpu") != bool(
            self.slices
        ):
            raise ValueError(
                f"{self.name}: a GPU needs a specification, a TPU needs slices, and no other chip has either"
            )
        return self


@dataclass(frozen=True)
class Target:
    """Describe a number of chips of one kind."""

    name: str
    chip: Chip
    devices: int
    topology: str = ""
    """`4x4` for a TPU; `1x2x8` (slices, hosts, GPUs) for GPUs."""

    @property
    def platform(self) -> str:
        """Return the chip's platform."""
        return self.chip.platform

    @property
    def extra(self) -> str:
        """Return accelbench's extra that installs the compiler; empty if JAX contains it."""
        return EXTRAS.get(self.platform, "")

    @property
    def missing(self) -> str:
        """Return the message for missing packages of the target's compiler; empty if all are installed."""
        missing = [name for name in NEEDS.get(self.platform, ()) if not _is_installed(name)]
        if not missing:
            return ""
        return f"compiling for {self.name} needs {figures.listed(missing)}: pip install 'accelbench[{self.extra}]'"


@functools.cache
def chips() -> Mapping[str, Chip]:
    """Return all chips by name."""
    entries = yaml.safe_load(CHIPS.read_text(encoding="utf-8"))
    return {name: Chip.model_validate({"name": name, **entry}) for name, entry in entries.items()}


@functools.cache
def names() -> tuple[str, ...]:
    """Return the names of all targets."""
    return tuple(target.name for target in _targets_by_name().values())


def find(name: str) -> Target:
    """Return the target of that name; raise UnknownTargetError."""
    if (target := _targets_by_name().get(name)) is None:
        raise UnknownTargetError(describe_unknown("target", name, _suggestions(name)))
    return target


def divide_mesh(axes: Mapping[str, int], devices: int) -> dict[str, int]:
    """Return the number of devices along each axis, in the order of `axes`; raise UnevenMeshError.

    An axis of 0 gets the devices that the other axes leave. On a single device, every axis has size 1.
    """
    if devices == 1:
        return dict.fromkeys(axes, 1)
    unset = [name for name, count in axes.items() if not count]
    if len(unset) > 1:
        raise UnevenMeshError(
            f"{figures.listed(unset)} cannot both be 0 (the rest of {devices} devices): set one of them"
        )
    fixed = {name: count for name, count in axes.items() if count}
    product = math.prod(fixed.values())
    text = " x ".join(f"{name} {count}" for name, count in fixed.items())
    if unset and devices % product:
        raise UnevenMeshError(f"{text} do not divide {devices} devices, so {unset[0]} cannot be 0 (the rest)")
    if not unset and product != devices:
        raise UnevenMeshError(f"{text} are {product} devices, not {devices}: set one of them to 0 (the rest)")
    return {name: count or devices // product for name, count in axes.items()}


@functools.cache
def _targets_by_name() -> Mapping[str, Target]:
    return {target.name: target for chip in chips().values() for target in _targets_of(chip)}


def _targets_of(chip: Chip) -> list[Target]:
    """Return the targets of a chip: each slice of a TPU, each supported number of a GPU, or one device."""
    match chip.platform:
        case "tpu":
            return [
                Target(f"{chip.name}-{number}", chip, _chip_count(topology), topology)
                for number, topology in chip.slices.items()
            ]
        case "cuda":
            return [
                Target(f"{chip.name}x{count}" if count > 1 else chip.name, chip, count, _gpu_topology(count, chip))
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


def _chip_count(topology: str) -> int:
    """Return the number of chips in a topology such as `4x4`."""
    return math.prod(map(int, topology.split("x")))


def _gpu_topology(count: int, chip: Chip) -> str:
    """Return `SLICESxHOSTSxGPUS` for `count` GPUs in as few hosts as possible."""
    return f"1x{max(1, count // chip.per_host)}x{min(count, chip.per_host)}"


def _suggestions(name: str) -> list[str]:
    """Return the targets of the chip whose name begins like `name`, otherwise one target of every chip."""
    chip_name = re.match(r"[a-z0-9]+?(?=x\d|-|$)", name)
    targets_of_chip = [target for target in names() if chip_name and target.startswith(chip_name[0])]
    return targets_of_chip or [_targets_of(chip)[0].name for chip in chips().values()]
