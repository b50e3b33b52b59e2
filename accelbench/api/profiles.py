"""Define profiles: an administrator's name for a kind of accelerator node, and how to get one.

Ready-made profiles are in `presets.yaml`. `cpu` and `nvidia` always exist; an administrator selects others, and adds or
replaces profiles, in a YAML file whose path is in `ACCELBENCH_PROFILES` (the chart mounts it). The command line needs
only a profile's platform, the operator needs all of it.

TPU slices on GKE: a pod is placed on a slice only if it requests every chip of its node; labels and sizes are from
cloud.google.com/kubernetes-engine/docs/concepts/plan-tpus.
"""

import functools
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import Field, StringConstraints, ValidationError, model_validator

from accelbench import platforms, targets
from accelbench.api.case import PricePerHour
from accelbench.api.metadata import Name
from accelbench.document import Document
from accelbench.problem import describe_unknown

PROFILES_VARIABLE = "ACCELBENCH_PROFILES"
PRESETS_FILE = Path(__file__).with_name("presets.yaml")
ALWAYS_AVAILABLE = ("cpu", "nvidia")
"""Ready-made profiles that exist without an administrator's file."""
OS_LABEL = "kubernetes.io/os"
ARCHITECTURE_LABEL = "kubernetes.io/arch"
TPU_ACCELERATOR = "cloud.google.com/gke-tpu-accelerator"
TPU_TOPOLOGY = "cloud.google.com/gke-tpu-topology"
TOPOLOGIES_ON_ONE_HOST: Mapping[str, tuple[str, ...]] = {
    "tpu-v5-lite-podslice": ("1x1", "2x2", "2x4"),  # v5e: ct5lp-hightpu-1t, -4t, -8t
    "tpu-v5p-slice": ("2x2x1",),  # ct5p-hightpu-4t
    "tpu-v6e-slice": ("1x1", "2x2", "2x4"),  # ct6e-standard-1t, -4t, -8t
}
"""Topologies that fit on one host, by accelerator."""

ResourceName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9][-A-Za-z0-9_.]*$")]
ClassName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=253)]
Quantity = Annotated[str, StringConstraints(pattern=r"^[0-9]+(\.[0-9]+)?([EPTGMK]i?|m|k)?$")]


class ProfileToleration(Document):
    """Tolerate a taint, as a `core/v1` Toleration."""

    key: str | None = None
    operator: Literal["Exists", "Equal"] = "Exists"
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None


class Profile(Document):
    """Define how to get a node of one kind, and what a case's pod gets of it.

    Requests equal limits and `cpu` is a whole number, so the pod is Guaranteed: its CPU time is not throttled within a
    scheduling period, and a static CPU policy gives it exclusive processors.
    """

    name: Name
    platform: str = Field(description="The kind of device: cpu, cuda, rocm, tpu, or one that a package adds.")
    resource: ResourceName | None = Field(default=None, description="Extended resource, e.g. nvidia.com/gpu.")
    device_class: ClassName | None = Field(
        default=None,
        description="A DeviceClass of resource.k8s.io, instead of a resource: each pod claims one device of it.",
    )
    node_selector: dict[str, str] = Field(default={}, description="Labels of the nodes; no run can change them.")
    arch: Literal["amd64", "arm64"] | None = Field(
        default=None,
        description="The architecture of the image, where nodes have several; default: any.",
    )
    tolerations: tuple[ProfileToleration, ...] = Field(default=(), description="Taints that the nodes may have.")
    env: dict[str, str] = Field(default={}, description="The runner's environment; a run can override it.")
    runtime_class_name: str | None = Field(default=None, description="As in a PodSpec.")
    image: str | None = Field(
        default=None, description="The runner's image on these nodes; default: the chart's images.runner."
    )
    target: str | None = Field(
        default=None,
        description="Compile cases for this target instead of measuring: h100x8, v5e-16. The nodes are ordinary ones; "
        "a run's accelerator.targets take precedence.",
    )
    namespaces: tuple[Name, ...] = Field(default=(), description="The namespaces whose runs may use it; none: all.")
    price_per_hour: PricePerHour | None = Field(
        default=None,
        description="Price per hour of what a case occupies, its devices or its node, with a currency: 11.06 USD.",
    )
    exclusive: Literal["Node", "Device"] | None = Field(
        default=None,
        description="What a case uses exclusively while it is measured. Node: no other case is on its node. Device: "
        "other cases may use the node's other devices. Default: Device if the profile names devices, else Node.",
    )
    cpu: int = Field(default=1, ge=1, description="Whole processors, requested and limited.")
    memory: Quantity = Field(default="4Gi", description="Memory, requested and limited.")
    ephemeral_storage: Quantity = Field(
        default="8Gi", description="Disk for caches, temporary files and the log, requested and limited."
    )

    @property
    def selected_labels(self) -> dict[str, str]:
        """Return the node labels that distinguish the profile's nodes from other Linux nodes."""
        arch = {ARCHITECTURE_LABEL: self.arch} if self.arch else {}
        return arch | self.node_selector

    @property
    def node_labels(self) -> dict[str, str]:
        """Return the labels of the nodes that can run the profile's pods; the runner's images are for Linux."""
        return {OS_LABEL: "linux"} | self.selected_labels

    @property
    def takes_whole_node(self) -> bool:
        """Return True if no other case may run on the node at the same time.

        By default, only a profile without a `resource` and a `device_class` takes the whole node.
        """
        if self.exclusive is not None:
            return self.exclusive == "Node"
        return not self.resource and not self.device_class

    @property
    def slice_chips(self) -> int | None:
        """Return how many chips the selected TPU slice has, all of which a pod requests; None without a slice."""
        if TPU_TOPOLOGY not in self.node_selector:
            return None
        return _count_slice_chips(self.node_selector)

    def admits(self, namespace: str) -> bool:
        """Return True if runs in this namespace may use the profile."""
        return not self.namespaces or namespace in self.namespaces

    @model_validator(mode="after")
    def _refuse_invalid_target(self) -> Self:
        """Refuse an unknown target, and a target in a profile that has a device."""
        if self.target is None:
            return self
        try:
            targets.find(self.target)
        except targets.UnknownTargetError as error:
            raise ValueError(f"target: {error}") from error
        if self.platform != "cpu" or self.resource or self.device_class:
            raise ValueError("target: compiling needs no device: keep platform: cpu, without a resource")
        return self

    @model_validator(mode="after")
    def _refuse_invalid_devices(self) -> Self:
        """Refuse fields about devices that contradict each other."""
        if self.resource and self.device_class:
            raise ValueError("resource and deviceClass are two ways to get a device: keep one")
        if self.slice_chips and not self.resource:
            raise ValueError(f"{TPU_TOPOLOGY} selects a TPU slice: add resource: google.com/tpu")
        return self


def _count_slice_chips(node_selector: Mapping[str, str]) -> int:
    """Return the number of chips of the TPU slice that these labels select.

    Raises ValueError if there is no such slice, or if it has several hosts.
    """
    topology, accelerator = node_selector[TPU_TOPOLOGY], node_selector.get(TPU_ACCELERATOR, "")
    if accelerator not in TOPOLOGIES_ON_ONE_HOST:
        known_accelerators = ", ".join(TOPOLOGIES_ON_ONE_HOST)
        raise ValueError(f"nodeSelector: {TPU_TOPOLOGY} also needs {TPU_ACCELERATOR}, one of {known_accelerators}")
    # Two or three numbers of chips, one for each axis of the slice.
    if not re.fullmatch(r"[1-9][0-9]*(x[1-9][0-9]*){1,2}", topology):
        raise ValueError(f"nodeSelector: {TPU_TOPOLOGY}: {topology}: must be chips along each axis, as 2x4 or 2x2x1")
    chip_count = math.prod(int(axis_length) for axis_length in topology.split("x"))
    if topology not in TOPOLOGIES_ON_ONE_HOST[accelerator]:
        one_host = ", ".join(TOPOLOGIES_ON_ONE_HOST[accelerator])
        raise ValueError(
            f"nodeSelector: {TPU_TOPOLOGY}: {topology} has {chip_count} chips, and no host of {accelerator} has them "
            f"in that shape; a case runs on one host: take {one_host}"
        )
    return chip_count


class InvalidProfilesError(ValueError):
    """Report that the administrator's profiles cannot be read; the message names the file and the reason."""


class UnknownProfileError(LookupError):
    """Report that a run names an unknown profile; the message suggests a known one."""


class Profiles:
    """Hold the available profiles, by name."""

    def __init__(self, administrator_profiles: tuple[Profile, ...] = ()) -> None:
        """Store the built-in profiles and an administrator's.

        An administrator's profile replaces a built-in one of the same name.
        """
        presets = load_presets()
        always_available = [presets[name] for name in ALWAYS_AVAILABLE]
        self._profiles = {profile.name: profile for profile in (*always_available, *administrator_profiles)}

    @property
    def names(self) -> tuple[str, ...]:
        """Return all names, sorted."""
        return tuple(sorted(self._profiles))

    def get(self, name: str) -> Profile:
        """Return the profile with that name; raises UnknownProfileError."""
        if name not in self._profiles:
            raise UnknownProfileError(describe_unknown("profile", name, self._profiles))
        return self._profiles[name]

    def __iter__(self) -> Iterator[Profile]:
        """Iterate over the profiles, sorted by name."""
        return (self._profiles[name] for name in self.names)


@functools.cache
def load_presets() -> Mapping[str, Profile]:
    """Return the ready-made profiles of presets.yaml, by name."""
    text = PRESETS_FILE.read_text(encoding="utf-8")
    return {profile.name: profile for profile in _parse_profiles(text, PRESETS_FILE.name, {})}


def load_profiles(environment: Mapping[str, str]) -> Profiles:
    """Return the built-in profiles, and those of the administrator's file if `environment` names one.

    Raises InvalidProfilesError if that file cannot be read, or for an invalid profile in it.
    """
    path = environment.get(PROFILES_VARIABLE)
    if not path:
        return Profiles()
    try:
        return Profiles(parse_profiles(Path(path).read_text(encoding="utf-8"), source=path))
    except OSError as error:
        raise InvalidProfilesError(
            f"{PROFILES_VARIABLE}={path}: {error.strerror}: mount the file or unset it"
        ) from error
    except UnicodeDecodeError as error:
        raise InvalidProfilesError(f"{PROFILES_VARIABLE}={path} is not UTF-8 text: save it as UTF-8") from error


def parse_profiles(text: str, source: str) -> tuple[Profile, ...]:
    """Parse a YAML document `NAME: {platform: cuda, ...}`; raises InvalidProfilesError, which names `source`."""
    return _parse_profiles(text, source, load_presets())


def _parse_profiles(text: str, source: str, presets: Mapping[str, Profile]) -> tuple[Profile, ...]:
    """Parse a YAML document of profiles, each of which may extend one of `presets`; raises InvalidProfilesError.

    `source` names the document in error messages.
    """
    try:
        document = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # PyYAML raises ValueError for an impossible date
        raise InvalidProfilesError(f"{source}: not YAML: {error}") from error
    if document is None:
        return ()
    if not isinstance(document, dict) or not all(isinstance(entry, dict) for entry in document.values()):
        raise InvalidProfilesError(
            f"{source}: must map each profile's name to its fields, e.g. a100: {{platform: cuda}}"
        )
    return tuple(_build_profile(str(name), fields, source, presets) for name, fields in document.items())


def _build_profile(name: str, fields: dict[str, Any], source: str, presets: Mapping[str, Profile]) -> Profile:
    """Build a profile of `fields`, which replace those of the preset that they name; raises InvalidProfilesError."""
    preset_name = fields.get("preset")
    if preset_name is not None:
        if not isinstance(preset_name, str) or preset_name not in presets:
            problem = describe_unknown("preset", str(preset_name), presets)
            raise InvalidProfilesError(f"{source}: profile {name}: preset: {problem}")
        preset_fields = presets[preset_name].model_dump(mode="json", by_alias=True, exclude_unset=True)
        replaced_fields = {key: value for key, value in fields.items() if key != "preset"}
        fields = preset_fields | replaced_fields
    try:
        profile = Profile.model_validate(fields | {"name": name})
        platforms.find(profile.platform)
    except platforms.UnknownPlatformError as error:
        raise InvalidProfilesError(f"{source}: profile {name}: platform: {error}") from error
    except ValidationError as error:
        raise InvalidProfilesError(f"{source}: profile {name}: {_describe_first_error(error)}") from error
    return profile


def _describe_first_error(error: ValidationError) -> str:
    """Return `FIELD: MESSAGE` for the first mistake that pydantic found."""
    first_error = error.errors(include_url=False)[0]
    field_path = ".".join(str(name) for name in first_error["loc"])
    is_unknown_field = first_error["type"] == "extra_forbidden"
    if is_unknown_field:
        known_fields = {field.alias for field in Profile.model_fields.values() if field.alias}
        message = describe_unknown("field", field_path, known_fields)
    else:
        message = first_error["msg"].removeprefix("Value error, ")
    return f"{field_path}: {message}" if field_path else message
