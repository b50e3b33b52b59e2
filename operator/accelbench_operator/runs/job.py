"""Build the Job of an attempt, and the template of its device claim, from a case and its profile, without requests.

One attempt at one case is one Job with one pod, and only the operator retries it.
"""

import posixpath
from collections.abc import Mapping
from typing import Any

from kubernetes.utils import parse_quantity

from accelbench.api import labels
from accelbench.api.case import Case, ConfigMapKey
from accelbench.api.metadata import API_VERSION
from accelbench.api.profiles import Profile
from accelbench.api.run import BenchmarkRun, RunPolicy, UsedRunner, WorkloadReference
from accelbench.catalogue.script import SCRIPT_VARIABLE
from accelbench.cluster_api.errors import ApiError
from accelbench.cluster_api.kinds import CLAIM_TEMPLATE, RUN
from accelbench.plan.names import attempt_name, claim_template_name
from accelbench_operator.runs.pod_template import CONTAINER, Manifest, add_defaults, merge_pod_template
from accelbench_operator.runs.waits import Wait

WORK_DIRECTORY = "/var/lib/accelbench"
TERMINATION_LOG = "/dev/termination-log"
SCRIPT = "accelbench-script"
"""Name of the volume with the workload's script."""
SCRIPT_DIRECTORY = "/etc/accelbench-script"
SCRATCH = ("accelbench-work", "accelbench-tmp")
"""Volumes that the runner writes to."""
STORAGE = "ephemeral-storage"
MAXIMUM_LABEL = 63
"""Maximum number of characters of a label's value."""
CLAIM = "accelbench-device"
"""Name of a pod's claim on a device."""
NO_ISTIO = {"sidecar.istio.io/inject": "false"}
"""Label that keeps Istio's proxy out of the pod; for older releases, an annotation.

A runner needs no network, and a proxy would share its processors."""
NO_LINKERD = {"linkerd.io/inject": "disabled"}
DO_NOT_EVICT = {
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "karpenter.sh/do-not-disrupt": "true",
}
"""Annotations that keep autoscalers from removing the node. After an eviction, the measurement would start again from
the beginning."""
ANY_CASE: Manifest = {
    "labelSelector": {
        "matchLabels": {labels.MANAGED_BY: labels.MANAGER},
        "matchExpressions": [{"key": labels.CASE, "operator": "Exists"}],
    },
    "namespaceSelector": {},
    "topologyKey": "kubernetes.io/hostname",
}
"""Anti-affinity term that selects the pods of any case, of any run in any namespace. The scheduler also keeps the pods
of other cases away from a pod that has the term."""


def pod_deadline_seconds(runner_limit_seconds: int, policy: RunPolicy) -> int:
    """Return the `activeDeadlineSeconds` of a pod, which count from its acceptance by a kubelet.

    The deadline is for a pod that neither the runner nor the operator ends: it allows the wait for the
    container to start, and then the time limit of the runner.
    """
    # The policy's limit of the wait may be increased while the pod waits, so the default counts if it is longer.
    waits = (Wait.START.default_limit, Wait.START.limit.maximum_time(policy))
    start_limit = max(wait for wait in waits if wait is not None)
    return int(start_limit.total_seconds()) + runner_limit_seconds


def identity_labels(run: BenchmarkRun, case: str) -> dict[str, str]:
    """Return the labels of the objects of a case: its Jobs, their pods and its result."""
    # A label's value has at most `MAXIMUM_LABEL` characters, and begins and ends with a letter or a digit.
    return watched_labels(run) | {
        labels.RUN: run.metadata.name[:MAXIMUM_LABEL].strip("-."),
        labels.CASE: case,
        labels.SERIES: run.series[:MAXIMUM_LABEL].strip("-."),
    }


def watched_labels(run: BenchmarkRun) -> dict[str, str]:
    """Return the labels by which the operator's watch selects a run's objects."""
    return {
        labels.MANAGED_BY: labels.MANAGER,
        labels.RUN_UID: run.metadata.uid,
        labels.CLASS: run.spec.class_name,
    }


def attempted_case(case: Case, attempt: int) -> Case:
    """Return the case with the attempt's number in its origin."""
    return case.model_copy(update={"origin": case.origin.model_copy(update={"attempt": attempt})})


def build_job(run: BenchmarkRun, case: Case, attempt: int, runner: UsedRunner) -> Manifest:
    """Return the Job of an attempt at a case.

    The operator never changes a Job after its creation.
    """
    attempt_labels = identity_labels(run, case.name) | {labels.ATTEMPT: str(attempt)}
    run_labels = run.metadata.labels
    queue_labels = {key: run_labels[key] for key in labels.PASSED_ON if run_labels.get(key)}
    template = _runner_pod_template(attempted_case(case, attempt), runner, run.spec.run_policy, attempt_labels)
    if runner.profile.device_class:
        claim_device(template["spec"], run)
    template = add_defaults(merge_pod_template(template, run.spec.pod_template), runner.pod_template)
    (container,) = template["spec"]["containers"]  # merging adds no containers
    # The runner writes its image into the result. Only the merged template has the final image.
    container["env"] = [*container["env"], {"name": "ACCELBENCH_IMAGE", "value": container["image"]}]
    for volume in template["spec"]["volumes"]:
        if volume["name"] in SCRATCH:
            # A volume with a limit of its own is named in the kubelet's message when it is full, not only the pod.
            volume["emptyDir"] = {"sizeLimit": container["resources"]["limits"][STORAGE]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": attempt_name(run.metadata.name, run.metadata.uid, case.name, attempt),
            "namespace": run.metadata.namespace,
            "labels": attempt_labels | queue_labels,
            "ownerReferences": [owner_reference(run)],
        },
        "spec": {
            # Kueue admits a Job by unsuspending it, so only Kueue changes `suspend` from here on.
            "suspend": labels.QUEUE in queue_labels,
            "backoffLimit": 0,
            "completions": 1,
            "parallelism": 1,
            "podReplacementPolicy": "Failed",  # replace a deleted pod only once it has ended
            # A Job without retries fails anyway; the rule changes only the reason of its Failed condition.
            "podFailurePolicy": {
                "rules": [{"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
            },
            "template": template,
        },
    }


def owner_reference(run: BenchmarkRun) -> dict[str, Any]:
    """Return a reference that makes the run the owner of an object."""
    return {
        "apiVersion": API_VERSION,
        "kind": RUN.name,
        "name": run.metadata.name,
        "uid": run.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def memory_limit(run: BenchmarkRun, profile: Profile) -> int:
    """Return the memory limit of the runner's container in bytes, from the run's pod template or the profile."""
    # Only the memory is needed, so a template that has nothing else is merged with the run's.
    amount = {"memory": profile.memory}
    container = {"name": CONTAINER, "resources": {"requests": amount, "limits": amount}}
    template = merge_pod_template({"spec": {"containers": [container]}}, run.spec.pod_template)
    return int(parse_quantity(template["spec"]["containers"][0]["resources"]["limits"]["memory"]))


def _runner_pod_template(case: Case, runner: UsedRunner, policy: RunPolicy, pod_labels: Mapping[str, str]) -> Manifest:
    """Return the pod template of a case, before those of the run and of the administrator are merged into it."""
    profile = runner.profile
    script = script_of(case)
    pod: Manifest = {
        "restartPolicy": "Never",
        # The pod has the deadline, because a deadline of the Job would delete the pod with its log.
        "activeDeadlineSeconds": pod_deadline_seconds(case.measurement.runner_limit_seconds, policy),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "os": {"name": "linux"},
        "nodeSelector": profile.node_labels,
        "tolerations": [toleration.model_dump(by_alias=True, exclude_none=True) for toleration in profile.tolerations],
        "containers": [_container(case, profile, runner.image)],
        "volumes": [
            {"name": "accelbench-case", "downwardAPI": {"items": [_case_item()]}},
            *({"name": name, "emptyDir": {}} for name in SCRATCH),
            *([_script_volume(script)] if script else []),
        ],
    }
    if profile.takes_whole_node:
        pod["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [ANY_CASE]}}
    if profile.runtime_class_name:
        pod["runtimeClassName"] = profile.runtime_class_name
    return {
        "metadata": {
            "labels": {**pod_labels, **NO_ISTIO},
            "annotations": {
                labels.CASE_ANNOTATION: case.to_json(),
                "kubectl.kubernetes.io/default-container": CONTAINER,  # for kubectl logs, if a webhook injects another
                **NO_ISTIO,
                **NO_LINKERD,
                **DO_NOT_EVICT,
            },
        },
        "spec": pod,
    }


def _case_item() -> Manifest:
    """Return the volume item that mounts the case's annotation as a file."""
    file_name = posixpath.basename(labels.CASE_FILE)
    return {"path": file_name, "fieldRef": {"fieldPath": f"metadata.annotations['{labels.CASE_ANNOTATION}']"}}


def _container(case: Case, profile: Profile, image: str) -> Manifest:
    """Return the runner's container."""
    script = script_of(case)
    return {
        "name": CONTAINER,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python", "-m", "accelbench_runner"],
        "args": [labels.CASE_FILE],
        "env": _environment(profile, script),
        "resources": _resources(case, profile),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "terminationMessagePath": TERMINATION_LOG,
        "terminationMessagePolicy": "File",
        "volumeMounts": [
            {"name": "accelbench-case", "mountPath": posixpath.dirname(labels.CASE_FILE), "readOnly": True},
            {"name": "accelbench-work", "mountPath": WORK_DIRECTORY},
            {"name": "accelbench-tmp", "mountPath": "/tmp"},  # noqa: S108 - an emptyDir of the pod
            *([_script_mount(script)] if script else []),
        ],
    }


def script_of(source: Case | WorkloadReference) -> ConfigMapKey | None:
    """Return the ConfigMap key of the script of a case or of a run's workload; None if the workload is no script."""
    return source.script.config_map_key_ref if source.script else None


def _script_volume(script: ConfigMapKey) -> Manifest:
    """Return the volume with the workload's script from its ConfigMap."""
    return {
        "name": SCRIPT,
        # The kubelet starts the container only once this ConfigMap exists.
        "configMap": {"name": script.name, "items": [{"key": script.key, "path": script.key}]},
    }


def _script_mount(script: ConfigMapKey) -> Manifest:
    """Return the mount of the workload's script in the runner's container."""
    return {
        "name": SCRIPT,
        "mountPath": f"{SCRIPT_DIRECTORY}/{script.key}",
        # The kubelet never updates a `subPath`, so all launches load the same file.
        "subPath": script.key,
        "readOnly": True,
    }


def _environment(profile: Profile, script: ConfigMapKey | None) -> list[dict[str, str]]:
    """Return the environment variables of the runner's container; `script` is the script's ConfigMap key, if any."""
    values = dict(profile.env)
    if script:
        values[SCRIPT_VARIABLE] = f"{SCRIPT_DIRECTORY}/{script.key}"
    values |= {
        "ACCELBENCH_TERMINATION_LOG": TERMINATION_LOG,
        "ACCELBENCH_WORK_DIRECTORY": WORK_DIRECTORY,
        # Frameworks write caches into the home directory, and the image's is read-only.
        "HOME": WORK_DIRECTORY,
    }
    return [{"name": name, "value": value} for name, value in values.items()]


def _resources(case: Case, profile: Profile) -> dict[str, Any]:
    """Return the resource requests and limits of the runner's container."""
    amounts = {"cpu": str(profile.cpu), "memory": profile.memory, STORAGE: profile.ephemeral_storage}
    if profile.resource:
        # A pod takes all chips of its TPU slice, or else the devices of its case.
        amounts[profile.resource] = str(profile.slice_chips or case.accelerator.devices)
    # With equal requests and limits, the pod has the QoS class Guaranteed.
    return {"requests": dict(amounts), "limits": dict(amounts)}


class NotServedError(ApiError):
    """Report that the cluster does not serve ResourceClaimTemplates, which the profile needs."""

    def __init__(self, profile: Profile, answer: str) -> None:
        """Create the error; `answer` is the message of the API server."""
        super().__init__(
            404,
            f"profile {profile.name} claims a device of DeviceClass {profile.device_class}, but this cluster does not "
            f"serve {CLAIM_TEMPLATE.api_version}, as Kubernetes 1.34 and later do ({answer}); use a profile with a "
            "resource",
        )


def build_claim_template(run: BenchmarkRun, profile: Profile) -> Manifest:
    """Return the ResourceClaimTemplate of a run.

    Kubernetes creates a claim with each pod, and deletes it with the pod (ADR 33).
    """
    request = {"name": "device", "exactly": {"deviceClassName": profile.device_class}}
    return {
        "apiVersion": CLAIM_TEMPLATE.api_version,
        "kind": CLAIM_TEMPLATE.name,
        "metadata": {
            "name": claim_template_name(run.metadata.name, run.metadata.uid),
            "namespace": run.metadata.namespace,
            "labels": {labels.MANAGED_BY: labels.MANAGER, labels.RUN_UID: run.metadata.uid},
            "ownerReferences": [owner_reference(run)],
        },
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }


def claim_device(pod: Manifest, run: BenchmarkRun) -> None:
    """Add to a pod and its container a claim on a device, by the run's ResourceClaimTemplate."""
    name = claim_template_name(run.metadata.name, run.metadata.uid)
    pod["resourceClaims"] = [{"name": CLAIM, "resourceClaimTemplateName": name}]
    (container,) = pod["containers"]
    container["resources"]["claims"] = [{"name": CLAIM}]
