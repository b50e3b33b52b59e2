"""Describe compile targets: devices for which a program can be compiled on a machine without such devices.

A target is a number of chips of one kind: `h100`, `h100x8`, `v5e-16`. Add a kind of chip in `chips.yaml`. Compiling
gives facts about the compiled program, such as its memory, but no times.
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
"""Numbers of GPUs for which there is a target of each kind of GPU."""
EXTRAS: Mapping[str, str] = {"cuda": "targets-gpu", "tpu": "targets-tpu"}
"""Extra of accelbench that installs the compiler, by platform."""
NEEDS: Mapping[str, tuple[str, ...]] = {
    "cuda": ("jax-cuda13-plugin", "jax-cuda13-pjrt", "nvidia-cuda-nvcc", "nvidia-nvvm"),
    "tpu": ("libtpu",),
}
"""Python distribution packages that contain the compiler, by platform."""


class UnknownTargetError(LookupError):
    """Report an unknown target; the message suggests the nearest name."""


class UnevenMeshError(ValueError):
    """Report mesh axes whose sizes do not multiply to the number of devices; the message suggests what to change."""


class Specification(Document):
    """Hold the properties of a GPU that XLA's compiler would otherwise read from the GPU's driver."""

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
    """Maximum number of chips in one host."""
    links: str = ""
    """Description of the connections between chips."""
    source: str = Field(min_length=1)
    """Documents with these figures."""
    specification: Specification | None = None
    slices: dict[int, str] = {}
    """Topology of each TPU slice, by the number in its name."""

    @model_validator(mode="after")
    def _check_platform_fields(self) -> Self:
        """Check that a GPU has a specification, a TPU has slices, and no other chip has one of them."""
        specification_is_right = (self.specification is not None) == (self.platform == "cuda")
        slices_are_right = bool(self.slices) == (self.platform == "tpu")
        if not specification_is_right or not slices_are_right:
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
        """Return the platform of the target's chip, such as `cuda` or `tpu`."""
        return self.chip.platform

    @property
    def extra(self) -> str:
        """Return the extra of the package accelbench that installs the target's compiler; empty if none is needed."""
        return EXTRAS.get(self.platform, "")

    @property
    def missing_message(self) -> str:
        """Return which packages of the compiler are missing, and how to install them; empty if none is missing."""
        missing_packages = [name for name in NEEDS.get(self.platform, ()) if not _is_installed(name)]
        if not missing_packages:
            return ""
        packages = figures.join_names(missing_packages)
        return f"compiling for {self.name} needs {packages}: pip install 'accelbench[{self.extra}]'"


@functools.cache
def chips() -> Mapping[str, Chip]:
    """Return the kinds of device that `chips.yaml` describes, by name."""
    entries = yaml.safe_load(CHIPS.read_text(encoding="utf-8"))
    return {name: Chip.model_validate({"name": name, **entry}) for name, entry in entries.items()}


@functools.cache
def names() -> tuple[str, ...]:
    """Return the names of all compile targets, such as `h100x8` and `v5e-16`."""
    return tuple(_targets_by_name())


def find(name: str) -> Target:
    """Return the target of that name; raises UnknownTargetError if there is none."""
    target = _targets_by_name().get(name)
    if target is None:
        raise UnknownTargetError(describe_unknown("target", name, _suggestions(name)))
    return target


def divide_mesh(axes: Mapping[str, int], devices: int) -> dict[str, int]:
    """Return the size of each axis of a device mesh, so that the product of the sizes is `devices`.

    `axes` has the requested sizes; a size of 0 means all remaining devices: 8 devices and the axes
    `{"data": 0, "model": 2}` give `{"data": 4, "model": 2}`. On a single device all sizes are 1. Raises UnevenMeshError
    if the sizes do not fit.
    """
    if devices == 1:
        return dict.fromkeys(axes, 1)
    free_axes = [name for name, size in axes.items() if size == 0]
    if len(free_axes) > 1:
        raise UnevenMeshError(
            f"{figures.join_names(free_axes)} cannot both be 0 (the rest of {devices} devices): set one of them"
        )
    fixed_sizes = {name: size for name, size in axes.items() if size != 0}
    product = math.prod(fixed_sizes.values())
    sizes_text = " x ".join(f"{name} {size}" for name, size in fixed_sizes.items())
    if free_axes and devices % product:
        raise UnevenMeshError(f"{sizes_text} do not divide {devices} devices, so {free_axes[0]} cannot be 0 (the rest)")
    if not free_axes and product != devices:
        raise UnevenMeshError(f"{sizes_text} are {product} devices, not {devices}: set one of them to 0 (the rest)")
    free_size = devices // product
    return {name: fixed_sizes.get(name, free_size) for name in axes}


@functools.cache
def _targets_by_name() -> Mapping[str, Target]:
    """Return the compile targets of all chips in `chips.yaml`, by name."""
    return {target.name: target for chip in chips().values() for target in _targets_of(chip)}


def _targets_of(chip: Chip) -> list[Target]:
    """Return the targets of a chip: a TPU's slices, a GPU in each of `GPU_COUNTS`, or a single device."""
    match chip.platform:
        case "tpu":
            return [
                Target(f"{chip.name}-{slice_number}", chip, _chip_count(topology), topology)
                for slice_number, topology in chip.slices.items()
            ]
        case "cuda":
            gpu_targets = []
            for count in GPU_COUNTS:
                name = chip.name if count == 1 else f"{chip.name}x{count}"
                gpu_targets.append(Target(name, chip, count, _gpu_topology(count, chip)))
            return gpu_targets
        case _:
            return [Target(chip.name, chip, 1)]


def _is_installed(distribution: str) -> bool:
    """Return True if a Python distribution package of that name is installed."""
    try:
        version(distribution)
    except PackageNotFoundError:
        return False
    return True


def _chip_count(topology: str) -> int:
    """Return the number of chips in a topology such as `4x4`."""
    return math.prod(map(int, topology.split("x")))


def _gpu_topology(count: int, chip: Chip) -> str:
    """Return the topology of `count` GPUs as the text SLICESxHOSTSxGPUS: one slice of as few hosts as possible."""
    hosts = max(1, count // chip.per_host)  # fewer GPUs than a host has need one host too
    gpus_per_host = min(count, chip.per_host)
    return f"1x{hosts}x{gpus_per_host}"


def _suggestions(name: str) -> list[str]:
    """Return names to suggest in place of an unknown target.

    These are all targets whose names begin with the chip's name in `name`, even if that is incomplete: `v5-16` gives
    the targets of v5e and v5p. If there are none, they are the first target of every chip.
    """
    # The chip's name ends before `x8` or `-16`, the number of devices.
    chip_prefix = re.match(r"[a-z0-9]+?(?=x\d|-|$)", name)
    matching_targets = [target for target in names() if chip_prefix and target.startswith(chip_prefix[0])]
    return matching_targets or [_targets_of(chip)[0].name for chip in chips().values()]
