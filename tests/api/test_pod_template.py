"""The schema knows every field of a pod in Kubernetes, so that none is silently pruned."""

from typing import Any

import pytest
from kubernetes import client

from accelbench.api.crd import schema_of
from accelbench.api.manifest import RUN

POD = "spec"
RUNNER = "spec.containers[]"
NODES = "spec.affinity.nodeAffinity"
TERM = f"{NODES}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[]"
SPREAD = "spec.topologySpreadConstraints[]"
MODELS = {
    POD: "V1PodSpec",
    "spec.tolerations[]": "V1Toleration",
    "spec.imagePullSecrets[]": "V1LocalObjectReference",
    "spec.affinity": "V1Affinity",
    NODES: "V1NodeAffinity",
    f"{NODES}.preferredDuringSchedulingIgnoredDuringExecution[]": "V1PreferredSchedulingTerm",
    TERM: "V1NodeSelectorTerm",
    f"{TERM}.matchExpressions[]": "V1NodeSelectorRequirement",
    "spec.securityContext": "V1PodSecurityContext",
    SPREAD: "V1TopologySpreadConstraint",
    f"{SPREAD}.labelSelector": "V1LabelSelector",
    "spec.resourceClaims[]": "V1PodResourceClaim",
    "spec.volumes[]": "V1Volume",
    "spec.volumes[].configMap": "V1ConfigMapVolumeSource",
    "spec.volumes[].secret": "V1SecretVolumeSource",
    "spec.volumes[].emptyDir": "V1EmptyDirVolumeSource",
    "spec.volumes[].persistentVolumeClaim": "V1PersistentVolumeClaimVolumeSource",
    RUNNER: "V1Container",
    f"{RUNNER}.resources": "V1ResourceRequirements",
    f"{RUNNER}.resources.claims[]": "CoreV1ResourceClaim",
    f"{RUNNER}.volumeMounts[]": "V1VolumeMount",
    f"{RUNNER}.env[]": "V1EnvVar",
    f"{RUNNER}.env[].valueFrom": "V1EnvVarSource",
    f"{RUNNER}.env[].valueFrom.configMapKeyRef": "V1ConfigMapKeySelector",
    f"{RUNNER}.env[].valueFrom.secretKeyRef": "V1SecretKeySelector",
}


def fields(path: str) -> set[str]:
    """Return the fields of the object at `path` of `spec.podTemplate`."""
    node: dict[str, Any] = schema_of(RUN)["properties"]["spec"]["properties"]["podTemplate"]
    for part in path.split("."):
        node = node["properties"][part.removesuffix("[]")]
        node = node["items"] if part.endswith("[]") else node
    return set(node["properties"])


@pytest.mark.parametrize(("path", "model"), MODELS.items(), ids=MODELS)
def test_each_field_of_kubernetes_is_offered_or_refused_by_name(path: str, model: str) -> None:
    assert fields(path) == set(getattr(client, model).attribute_map.values())
