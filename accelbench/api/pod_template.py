"""What a run may say about its pods: `spec.podTemplate`, a fragment of a PodTemplateSpec that is merged over ours.

A closed list. What would let the pod disturb other pods, be disturbed by them on purpose, or escape its isolation
(host namespaces, privileges, further containers, host paths) has no field here: kubectl refuses it as unknown, other
clients see it pruned. A cluster-wide need belongs in a profile, which is the administrator's.
"""

from typing import Annotated, Any, Literal

from pydantic import Field, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from accelbench.api.rules import ENVIRONMENT_NOT_OURS, one_of
from accelbench.document import Document

Text = Annotated[str, Field(max_length=1024)]
ObjectName = Annotated[str, Field(min_length=1, max_length=253)]
Key = Annotated[str, Field(min_length=1, max_length=317)]
Quantity = (
    Annotated[int, Field(ge=0, le=2**53 - 1)]
    | Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?(m|k|[MGTPE]|[KMGTPE]i)?$", max_length=32)]
)
Quantities = Annotated[dict[str, Quantity], Field(max_length=16)]


class Metadata(Document):
    """Labels and annotations of the pod, beside ours."""

    labels: dict[str, Text] = Field(default={}, max_length=32)
    annotations: dict[str, Text] = Field(default={}, max_length=32)


class Toleration(Document):
    """A taint that the pod bears."""

    key: Key | None = Field(default=None, description="The taint's key; default: every key.")
    operator: Literal["Equal", "Exists"] | None = Field(default=None, description="Default: Equal.")
    value: Text | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = Field(
        default=None, description="Default: every effect."
    )
    toleration_seconds: int | None = Field(default=None, ge=0, le=2**31 - 1)


class NodeRequirement(Document):
    """A requirement on a node's label."""

    key: Key
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: tuple[Text, ...] = Field(default=(), max_length=64)


class NodeSelectorTerm(Document):
    """Requirements that a node meets together."""

    match_expressions: tuple[NodeRequirement, ...] = Field(default=(), max_length=16)


class NodeSelector(Document):
    """Terms of which a node meets one."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = Field(min_length=1, max_length=16)


class PreferredTerm(Document):
    """A preference among nodes."""

    weight: int = Field(ge=1, le=100)
    preference: NodeSelectorTerm


class NodeAffinity(Document):
    """Which nodes the pod needs or prefers."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredTerm, ...] = Field(default=(), max_length=16)


class Affinity(Document):
    """Where the pod may run. Affinity to other pods is not offered: neighbours disturb the measurement."""

    node_affinity: NodeAffinity | None = None


class LocalReference(Document):
    """An object in the run's namespace."""

    name: ObjectName


class KeyReference(Document):
    """A key of a ConfigMap or a Secret in the run's namespace."""

    name: ObjectName
    key: ObjectName
    optional: bool | None = None


class ValueSource(Document):
    """Where a variable's value comes from."""

    config_map_key_ref: KeyReference | None = None
    secret_key_ref: KeyReference | None = None


class EnvironmentVariable(Document):
    """A variable in the runner's environment; every variant sees it."""

    name: Annotated[str, Field(pattern="^[A-Za-z_][A-Za-z0-9_]*$", max_length=253), ENVIRONMENT_NOT_OURS]
    value: Annotated[str, Field(max_length=4096)] | None = None
    value_from: Annotated[ValueSource, one_of("configMapKeyRef", "secretKeyRef")] | None = None


class Resources(Document):
    """Resources beside the profile's; limits and requests should be equal, or the pod can be throttled unevenly."""

    limits: Quantities = {}
    requests: Quantities = {}


class VolumeMount(Document):
    """Where a volume appears in the runner."""

    name: ObjectName
    mount_path: Text
    sub_path: Text | None = None
    read_only: bool | None = None


class Runner(Document):
    """The runner's container."""

    name: Literal["runner"] = Field(description="Always runner: a container beside it would share the device.")
    image: Annotated[str, Field(min_length=1, max_length=1024)] | None = None
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    env: tuple[EnvironmentVariable, ...] = Field(default=(), max_length=64)
    resources: Resources | None = None
    volume_mounts: tuple[VolumeMount, ...] = Field(default=(), max_length=16)


class EmptyDirectory(Document):
    """Scratch space; medium Memory for /dev/shm."""

    medium: Literal["", "Memory"] | None = None
    size_limit: Quantity | None = None


class ConfigMapSource(Document):
    """The keys of a ConfigMap as files."""

    name: ObjectName
    optional: bool | None = None


class SecretSource(Document):
    """The keys of a Secret as files."""

    secret_name: ObjectName
    optional: bool | None = None


class ClaimSource(Document):
    """A PersistentVolumeClaim, e.g. with data or a compilation cache."""

    claim_name: ObjectName
    read_only: bool | None = None


class Volume(Document):
    """A volume for the runner to mount."""

    name: ObjectName
    empty_dir: EmptyDirectory | None = None
    config_map: ConfigMapSource | None = None
    secret: SecretSource | None = None
    persistent_volume_claim: ClaimSource | None = None


ONE_SOURCE = one_of("emptyDir", "configMap", "secret", "persistentVolumeClaim")


class PodSpec(Document):
    """The part of a PodSpec that a run may set."""

    node_selector: dict[str, Text] = Field(default={}, max_length=16, description="Beside the profile's.")
    tolerations: tuple[Toleration, ...] = Field(default=(), max_length=16, description="Beside the profile's.")
    affinity: Affinity | None = None
    priority_class_name: ObjectName | None = None
    runtime_class_name: ObjectName | None = None
    scheduler_name: ObjectName | None = None
    image_pull_secrets: tuple[LocalReference, ...] = Field(default=(), max_length=8)
    volumes: tuple[Annotated[Volume, ONE_SOURCE], ...] = Field(default=(), max_length=16)
    containers: tuple[Runner, ...] = Field(default=(), max_length=1)


class PodTemplate(Document):
    """A PodTemplateSpec fragment."""

    metadata: Metadata | None = None
    spec: PodSpec | None = None


class AsPodTemplate:
    """Gives a plain dict the schema of `PodTemplate`: the operator merges it as it was written."""

    @classmethod
    def __get_pydantic_json_schema__(cls, _: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """The schema of `PodTemplate` in place of a free-form object's."""
        return handler(PodTemplate.__pydantic_core_schema__)


PodTemplateFragment = Annotated[dict[str, Any], AsPodTemplate]
