"""Define what a run may set on its pods: `spec.podTemplate`, merged over the operator's pod template.

The list of fields is closed. Fields with which the pod could disturb other pods or escape its isolation (host
namespaces, privileges, further containers, host paths) are declared and refused by name: the API server would silently
drop an undeclared field unless the client asks for strict validation. Settings for a whole cluster belong in a profile,
which the administrator owns.
"""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from accelbench.api.rules import ANY_FIELDS_KEYWORD, ENVIRONMENT_NOT_RESERVED, RULES_KEYWORD, forbidden_field, one_of
from accelbench.document import Document

Text = Annotated[str, Field(max_length=1024)]
ObjectName = Annotated[str, Field(min_length=1, max_length=253)]
Key = Annotated[str, Field(min_length=1, max_length=317)]
"""Key of a label or taint: an optional DNS subdomain (253 characters) with a slash, and a name (63 characters)."""
Quantity = (
    Annotated[int, Field(ge=0, le=2**53 - 1)]
    | Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)?(m|k|[MGTPE]|[KMGTPE]i)?$", max_length=32)]
)
Quantities = Annotated[dict[str, Quantity], Field(max_length=16)]


REFUSED_DESCRIPTION = "A run cannot set this field."
"""Description of a field that is refused."""
INTEGER = {"type": "integer", "minimum": -(2**31), "maximum": 2**53 - 1}
FIELD_SCHEMAS: dict[str, dict[str, Any]] = {
    "boolean": {"type": "boolean"},
    "string": {"type": "string", "maxLength": 1024},
    "integer": INTEGER,
    "integers": {"type": "array", "maxItems": 1024, "items": INTEGER},
    "object": {"type": "object", ANY_FIELDS_KEYWORD: True},
    "strings": {"type": "array", "maxItems": 1024, "items": {"type": "string", "maxLength": 32768}},
    "objects": {"type": "array", "maxItems": 1024, "items": {"type": "object", ANY_FIELDS_KEYWORD: True}},
}


def refuse_fields(**names_by_type: str) -> ConfigDict:
    """Return the configuration of a model that refuses these fields of Kubernetes.

    The model declares them, because the API server drops an undeclared field before a rule could refuse it.

    Args:
        **names_by_type: names of fields by their type in `FIELD_SCHEMAS`, as `boolean="stdin tty"`.
    """

    def add_fields(schema: dict[str, Any]) -> None:
        """Add each refused field to the model's JSON schema, with the rule that forbids a user to set it."""
        for type_name, field_names in names_by_type.items():
            for field_name in field_names.split():
                schema["properties"][field_name] = {**FIELD_SCHEMAS[type_name], "description": REFUSED_DESCRIPTION}
                rule = forbidden_field(field_name).register()
                schema.setdefault(RULES_KEYWORD, []).append(rule.to_crd())

    return ConfigDict(json_schema_extra=add_fields)


class Metadata(Document):
    """Add labels and annotations to the pod, in addition to the operator's."""

    labels: dict[str, Text] = Field(default={}, max_length=32)
    annotations: dict[str, Text] = Field(default={}, max_length=32)


class Toleration(Document):
    """Tolerate a taint."""

    key: Key | None = Field(default=None, description="The taint's key; default: every key.")
    operator: Literal["Equal", "Exists"] | None = Field(default=None, description="Default: Equal.")
    value: Text | None = None
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = Field(
        default=None, description="Default: every effect."
    )
    toleration_seconds: int | None = Field(default=None, ge=0, le=2**31 - 1)


class NodeRequirement(Document):
    """Require a label of the node."""

    key: Key
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: tuple[Text, ...] = Field(default=(), max_length=64)


class NodeSelectorTerm(Document):
    """List requirements, all of which a node must meet."""

    model_config = refuse_fields(objects="matchFields")

    match_expressions: tuple[NodeRequirement, ...] = Field(default=(), max_length=16)


class NodeSelector(Document):
    """List terms, at least one of which a node must meet."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = Field(min_length=1, max_length=16)


class PreferredTerm(Document):
    """Prefer some nodes."""

    weight: int = Field(ge=1, le=100)
    preference: NodeSelectorTerm


class NodeAffinity(Document):
    """Select the nodes that the pod needs or prefers."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: tuple[PreferredTerm, ...] = Field(default=(), max_length=16)


class Affinity(Document):
    """Select where the pod may run. Affinity to other pods is not offered: they would disturb the measurement."""

    model_config = refuse_fields(object="podAffinity podAntiAffinity")

    node_affinity: NodeAffinity | None = None


class LocalReference(Document):
    """Name an object in the run's namespace."""

    name: ObjectName


class KeyReference(Document):
    """Select a key of a ConfigMap or a Secret in the run's namespace."""

    name: ObjectName
    key: ObjectName
    optional: bool | None = None


class ValueSource(Document):
    """Take a variable's value from a ConfigMap or a Secret."""

    model_config = refuse_fields(object="fieldRef fileKeyRef resourceFieldRef")

    config_map_key_ref: KeyReference | None = None
    secret_key_ref: KeyReference | None = None


class EnvironmentVariable(Document):
    """Set a variable in the runner's environment; every variant sees it."""

    name: Annotated[str, Field(pattern="^[A-Za-z_][A-Za-z0-9_]*$", max_length=253), ENVIRONMENT_NOT_RESERVED]
    value: Annotated[str, Field(max_length=4096)] | None = None
    value_from: Annotated[ValueSource, one_of("configMapKeyRef", "secretKeyRef")] | None = None


class ContainerClaim(Document):
    """Give one of the pod's `resourceClaims` to the runner."""

    name: ObjectName
    request: ObjectName | None = None


class Resources(Document):
    """Add resources to the profile's; limits should equal requests, or the pod can be throttled unevenly."""

    limits: Quantities = {}
    requests: Quantities = {}
    claims: tuple[ContainerClaim, ...] = Field(default=(), max_length=16)


class VolumeMount(Document):
    """Mount a volume in the runner."""

    model_config = refuse_fields(string="mountPropagation recursiveReadOnly subPathExpr", strings="bindMountOptions")

    name: ObjectName
    mount_path: Text
    sub_path: Text | None = None
    read_only: bool | None = None


class RunnerContainer(Document):
    """Configure the runner's container."""

    model_config = refuse_fields(
        boolean="stdin stdinOnce tty",
        string="workingDir restartPolicy terminationMessagePath terminationMessagePolicy",
        strings="command args",
        objects="envFrom ports resizePolicy restartPolicyRules volumeDevices",
        object="lifecycle livenessProbe readinessProbe startupProbe securityContext",
    )

    name: Literal["runner"] = Field(description="Always runner: a second container would share the device.")
    image: Annotated[str, Field(pattern=r"^\S+$", max_length=1024)] | None = None
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = None
    env: tuple[EnvironmentVariable, ...] = Field(default=(), max_length=64)
    resources: Resources | None = None
    volume_mounts: tuple[VolumeMount, ...] = Field(default=(), max_length=16)


class EmptyDirectory(Document):
    """Provide scratch space; medium Memory for /dev/shm."""

    model_config = refuse_fields(integer="mode")

    medium: Literal["", "Memory"] | None = None
    size_limit: Quantity | None = None


class ConfigMapSource(Document):
    """Mount the keys of a ConfigMap as files."""

    model_config = refuse_fields(integer="defaultMode defaultUser", objects="items")

    name: ObjectName
    optional: bool | None = None


class SecretSource(Document):
    """Mount the keys of a Secret as files."""

    model_config = refuse_fields(integer="defaultMode defaultUser", objects="items")

    secret_name: ObjectName
    optional: bool | None = None


class ClaimSource(Document):
    """Mount a PersistentVolumeClaim, e.g. with data or a compilation cache."""

    claim_name: ObjectName
    read_only: bool | None = None


class Volume(Document):
    """Define a volume for the runner to mount."""

    model_config = refuse_fields(
        object="awsElasticBlockStore azureDisk azureFile cephfs cinder csi downwardAPI ephemeral fc flexVolume flocker"
        " gcePersistentDisk gitRepo glusterfs hostPath image iscsi nfs photonPersistentDisk portworxVolume projected"
        " quobyte rbd scaleIO storageos vsphereVolume"
    )

    name: ObjectName
    empty_dir: EmptyDirectory | None = None
    config_map: ConfigMapSource | None = None
    secret: SecretSource | None = None
    persistent_volume_claim: ClaimSource | None = None


ONE_CLAIM = one_of("resourceClaimName", "resourceClaimTemplateName")
ONE_SOURCE = one_of("emptyDir", "configMap", "secret", "persistentVolumeClaim")


class ResourceClaim(Document):
    """Claim a device by dynamic resource allocation, by name or from a template."""

    name: ObjectName
    resource_claim_name: ObjectName | None = None
    resource_claim_template_name: ObjectName | None = None


class LabelSelector(Document):
    """Select pods by their labels."""

    model_config = refuse_fields(objects="matchExpressions")

    match_labels: dict[str, Text] = Field(default={}, max_length=16)


class SpreadConstraint(Document):
    """Spread the pods of several cases over nodes, zones or racks."""

    model_config = refuse_fields(
        integer="minDomains", string="nodeAffinityPolicy nodeTaintsPolicy", strings="matchLabelKeys"
    )

    max_skew: int = Field(ge=1, le=1000)
    topology_key: Key
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"]
    label_selector: LabelSelector | None = None


class SecurityContext(Document):
    """Set who owns the files of mounted volumes; the runner sets everything else."""

    model_config = refuse_fields(
        boolean="runAsNonRoot",
        integer="runAsUser runAsGroup",
        integers="supplementalGroups",
        string="supplementalGroupsPolicy seLinuxChangePolicy",
        objects="sysctls",
        object="appArmorProfile seLinuxOptions seccompProfile windowsOptions",
    )

    fs_group: int | None = Field(default=None, ge=0, le=2**31 - 1)
    fs_group_change_policy: Literal["OnRootMismatch", "Always"] | None = None


class PodSpec(Document):
    """Set the part of a PodSpec that a run may set."""

    model_config = refuse_fields(
        boolean="automountServiceAccountToken enableServiceLinks hostIPC hostNetwork hostPID hostUsers"
        " setHostnameAsFQDN shareProcessNamespace",
        string="dnsPolicy hostname hostnameOverride nodeName preemptionPolicy restartPolicy serviceAccount"
        " serviceAccountName subdomain",
        integer="activeDeadlineSeconds priority terminationGracePeriodSeconds",
        objects="ephemeralContainers evictionResponders hostAliases initContainers readinessGates schedulingGates",
        object="dnsConfig os overhead resources schedulingGroup",
    )

    node_selector: dict[str, Text] = Field(default={}, max_length=16, description="In addition to the profile's.")
    tolerations: tuple[Toleration, ...] = Field(default=(), max_length=16, description="In addition to the profile's.")
    affinity: Affinity | None = None
    priority_class_name: ObjectName | None = None
    runtime_class_name: ObjectName | None = None
    scheduler_name: ObjectName | None = None
    image_pull_secrets: tuple[LocalReference, ...] = Field(default=(), max_length=8)
    volumes: tuple[Annotated[Volume, ONE_SOURCE], ...] = Field(default=(), max_length=16)
    resource_claims: tuple[Annotated[ResourceClaim, ONE_CLAIM], ...] = Field(default=(), max_length=16)
    topology_spread_constraints: tuple[SpreadConstraint, ...] = Field(default=(), max_length=8)
    security_context: SecurityContext | None = None
    containers: tuple[RunnerContainer, ...] = Field(default=(), max_length=1)


class PodTemplate(Document):
    """Set a fragment of a PodTemplateSpec."""

    metadata: Metadata | None = None
    spec: PodSpec | None = None


class AsPodTemplate:
    """Give a plain dict the schema of `PodTemplate`: the operator merges it as the user wrote it."""

    @classmethod
    def __get_pydantic_json_schema__(cls, _: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return the JSON schema of `PodTemplate` for a dict that is annotated with this class; pydantic calls it."""
        return handler(PodTemplate.__pydantic_core_schema__)


PodTemplateFragment = Annotated[dict[str, Any], AsPodTemplate]
