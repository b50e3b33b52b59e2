"""Profiles: an administrator's name for a kind of accelerator node, and how to get one.

Presets stand here; administrators add theirs, or replace a preset, in a YAML file whose path is in
`ACCELBENCH_PROFILES` (the chart mounts it). The command line needs only the platform, the operator all of it.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field, StringConstraints, ValidationError

from accelbench import platforms
from accelbench.api.metadata import Name
from accelbench.document import Document
from accelbench.problem import unknown

PROFILES_VARIABLE = "ACCELBENCH_PROFILES"

ResourceName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9][-A-Za-z0-9_.]*$")]
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
    platform: str = Field(description="The kind of device: cpu, cuda, tpu, or one that a package adds.")
    resource: ResourceName | None = Field(default=None, description="Extended resource, e.g. nvidia.com/gpu.")
    node_selector: dict[str, str] = {}
    tolerations: tuple[ProfileToleration, ...] = ()
    env: dict[str, str] = {}
    runtime_class_name: str | None = None
    exclusive: Literal["Node", "Device"] | None = Field(
        default=None,
        description="What a case has to itself while it is measured. Node: no other case is on its node. Device: "
        "others may be, on devices of their own. Default: Device where the profile names a resource, else Node.",
    )
    cpu: int = Field(default=1, ge=1, description="Whole processors.")
    memory: Quantity = "4Gi"

    @property
    def takes_whole_node(self) -> bool:
        """Whether no other case may be on the node: where nothing else is said, a processor is a node's only device."""
        return (self.exclusive or ("Device" if self.resource else "Node")) == "Node"


class InvalidProfilesError(ValueError):
    """The administrator's profiles cannot be read: the message says where and why."""


class UnknownProfileError(LookupError):
    """A run asks for a profile that there is not; the message has the nearest one."""


PRESETS = (
    Profile(name="cpu", platform="cpu"),
    Profile(
        name="nvidia",
        platform="cuda",
        resource="nvidia.com/gpu",
        tolerations=(ProfileToleration(key="nvidia.com/gpu"),),
        cpu=4,
        memory="16Gi",
    ),
)


class Profiles:
    """The profiles to be had here, by name."""

    def __init__(self, added: tuple[Profile, ...] = ()) -> None:
        self._profiles = {profile.name: profile for profile in (*PRESETS, *added)}

    @property
    def names(self) -> tuple[str, ...]:
        """All names, sorted."""
        return tuple(sorted(self._profiles))

    def get(self, name: str) -> Profile:
        """The profile of that name; raises UnknownProfileError with the nearest one."""
        if name not in self._profiles:
            raise UnknownProfileError(unknown("profile", name, self._profiles))
        return self._profiles[name]


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
    """Profiles of a YAML document `NAME: {platform: cuda, ...}`; raises InvalidProfilesError."""
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InvalidProfilesError(f"{source}: not YAML: {error}") from error
    if document is None:
        return ()
    if not isinstance(document, dict) or not all(isinstance(entry, dict) for entry in document.values()):
        raise InvalidProfilesError(
            f"{source}: must map each profile's name to its fields, e.g. a100: {{platform: cuda}}"
        )
    return tuple(_profile(str(name), entry, source) for name, entry in document.items())


def _profile(name: str, entry: dict[str, Any], source: str) -> Profile:
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
        raise InvalidProfilesError(f"{source}: profile {name}: {field}: {message}") from error
    return profile
