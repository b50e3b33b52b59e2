"""Profiles: an administrator's name for a kind of accelerator node, and how to get one.

Ready ones stand in `presets.yaml`. Of these `cpu` and `nvidia` are always there; the others are there where an
administrator takes them up, in a YAML file whose path is in `ACCELBENCH_PROFILES` (the chart mounts it), which adds
profiles and replaces those two. The command line needs only the platform, the operator all of it.
"""

import functools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import Field, StringConstraints, ValidationError, model_validator

from accelbench import platforms, targets
from accelbench.api.case import PricePerHour
from accelbench.api.metadata import Name
from accelbench.api.slices import TOPOLOGY, chips
from accelbench.document import Document
from accelbench.problem import unknown

PROFILES_VARIABLE = "ACCELBENCH_PROFILES"
READY = Path(__file__).with_name("presets.yaml")
ALWAYS = ("cpu", "nvidia")
"""Ready profiles that nobody has to take up."""

ResourceName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9][-A-Za-z0-9_.]*$")]
ClassName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=253)]
Quantity = Annotated[str, StringConstraints(pattern=r"^[0-9]+(\.[0-9]+)?([EPTGMK]i?|m|k)?$")]


class ProfileToleration(Document):
    """A `core/v1` Toleration."""

    key: str | None = None
    operator: Literal["Exists", "Equal"] = "Exists"
    value: str | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = None


class Profile(Document):
    """How to get a node of one kind, and what a case's pod gets of it.

    Requests equal limits and `cpu` is a whole number, so that the pod is Guaranteed: nothing throttles it inside a
    scheduling period, and a static CPU policy gives it processors of its own.
    """

    name: Name
    platform: str = Field(description="The kind of device: cpu, cuda, rocm, tpu, or one that a package adds.")
    resource: ResourceName | None = Field(default=None, description="Extended resource, e.g. nvidia.com/gpu.")
    device_class: ClassName | None = Field(
        default=None,
        description="A DeviceClass of resource.k8s.io, instead of a resource: each pod claims one device of it.",
    )
    node_selector: dict[str, str] = Field(default={}, description="Labels of the nodes; no run can change them.")
    tolerations: tuple[ProfileToleration, ...] = Field(default=(), description="Taints that the nodes may have.")
    env: dict[str, str] = Field(default={}, description="The runner's environment; a run can override it.")
    runtime_class_name: str | None = Field(default=None, description="As in a PodSpec.")
    image: str | None = Field(default=None, description="The runner's image on these nodes; default: the operator's.")
    target: str | None = Field(
        default=None,
        description="Compile cases for this target instead of measuring: h100x8, v5e-16. The nodes are ordinary ones; "
        "a run's accelerator.targets take precedence.",
    )
    namespaces: tuple[Name, ...] = Field(default=(), description="The namespaces whose runs may use it; none: all.")
    price_per_hour: PricePerHour | None = Field(
        default=None,
        description="Price of what a case has to itself, its devices or its node, with a currency: 11.06 USD.",
    )
    exclusive: Literal["Node", "Device"] | None = Field(
        default=None,
        description="What a case has to itself while it is measured. Node: no other case is on its node. Device: "
        "others may be, on their own devices. Default: Device if the profile names devices, else Node.",
    )
    cpu: int = Field(default=1, ge=1, description="Whole processors, requested and limited.")
    memory: Quantity = Field(default="4Gi", description="Memory, requested and limited.")

    @property
    def takes_whole_node(self) -> bool:
        """Whether no other case may be on the node: where nothing else is said, a processor is a node's only device."""
        return (self.exclusive or ("Device" if self.resource or self.device_class else "Node")) == "Node"

    @property
    def slice_chips(self) -> int | None:
        """Chips of the TPU slice that it selects, all of which a pod has to ask for; None: it selects none."""
        return chips(self.node_selector) if TOPOLOGY in self.node_selector else None

    def admits(self, namespace: str) -> bool:
        """Whether runs of that namespace may use it."""
        return not self.namespaces or namespace in self.namespaces

    @model_validator(mode="after")
    def _what_is_compiled_needs_no_device(self) -> Self:
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
    def _devices_are_had_in_one_way(self) -> Self:
        if self.resource and self.device_class:
            raise ValueError("resource and deviceClass are two ways to get a device: keep one")
        if self.slice_chips and not self.resource:
            raise ValueError(f"{TOPOLOGY} selects a TPU slice: add resource: google.com/tpu")
        return self


class InvalidProfilesError(ValueError):
    """The administrator's profiles cannot be read: the message says where and why."""


class UnknownProfileError(LookupError):
    """A run asks for a profile that there is not; the message has the nearest one."""


class Profiles:
    """The profiles to be had here, by name."""

    def __init__(self, added: tuple[Profile, ...] = ()) -> None:
        always = (ready()[name] for name in ALWAYS)
        self._profiles = {profile.name: profile for profile in (*always, *added)}

    @property
    def names(self) -> tuple[str, ...]:
        """All names, sorted."""
        return tuple(sorted(self._profiles))

    def get(self, name: str) -> Profile:
        """The profile of that name; raises UnknownProfileError with the nearest one."""
        if name not in self._profiles:
            raise UnknownProfileError(unknown("profile", name, self._profiles))
        return self._profiles[name]

    def __iter__(self) -> Iterator[Profile]:
        """Each of them, by name."""
        return (self._profiles[name] for name in self.names)


@functools.cache
def ready() -> Mapping[str, Profile]:
    """The ready profiles, by name."""
    return {profile.name: profile for profile in _profiles(READY.read_text(encoding="utf-8"), READY.name, {})}


def load_profiles(environment: Mapping[str, str]) -> Profiles:
    """The presets and, where `ACCELBENCH_PROFILES` names a file, the administrator's; raises InvalidProfilesError."""
    path = environment.get(PROFILES_VARIABLE)
    if not path:
        return Profiles()
    try:
        return Profiles(parse_profiles(Path(path).read_text(encoding="utf-8"), source=path))
    except OSError as error:
        raise InvalidProfilesError(
            f"{PROFILES_VARIABLE}={path}: {error.strerror}: mount the file or unset it"
        ) from error


def parse_profiles(text: str, source: str) -> tuple[Profile, ...]:
    """Profiles of a YAML document `NAME: {platform: cuda, ...}`; raises InvalidProfilesError.

    `NAME: {preset: READY, ...}` is the ready profile of that name with the other fields in place of its own.
    """
    return _profiles(text, source, ready())


def _profiles(text: str, source: str, presets: Mapping[str, Profile]) -> tuple[Profile, ...]:
    try:
        document = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # a date that is none is a ValueError
        raise InvalidProfilesError(f"{source}: not YAML: {error}") from error
    if document is None:
        return ()
    if not isinstance(document, dict) or not all(isinstance(entry, dict) for entry in document.values()):
        raise InvalidProfilesError(
            f"{source}: must map each profile's name to its fields, e.g. a100: {{platform: cuda}}"
        )
    return tuple(_profile(str(name), entry, source, presets) for name, entry in document.items())


def _profile(name: str, entry: dict[str, Any], source: str, presets: Mapping[str, Profile]) -> Profile:
    if (preset := entry.get("preset")) is not None:
        if not isinstance(preset, str) or preset not in presets:
            raise InvalidProfilesError(f"{source}: profile {name}: preset: {unknown('preset', str(preset), presets)}")
        own = {key: value for key, value in entry.items() if key != "preset"}
        entry = presets[preset].model_dump(mode="json", by_alias=True, exclude_unset=True) | own
    try:
        profile = Profile.model_validate(entry | {"name": name})
        platforms.find(profile.platform)
    except platforms.UnknownPlatformError as error:
        raise InvalidProfilesError(f"{source}: profile {name}: platform: {error}") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        known = {field.alias for field in Profile.model_fields.values() if field.alias}
        message = unknown("field", field, known) if first["type"] == "extra_forbidden" else first["msg"]
        where = f"{field}: " if field else ""
        raise InvalidProfilesError(
            f"{source}: profile {name}: {where}{message.removeprefix('Value error, ')}"
        ) from error
    return profile
