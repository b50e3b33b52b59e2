"""A case and its profile as a Job: pure, so that what runs in the cluster can be read off a test.

One attempt at one case is one Job with one pod, which nobody retries but the operator.
"""

from collections.abc import Mapping
from typing import Any

from kubernetes.utils import parse_quantity

from accelbench.api import labels
from accelbench.api.case import Case, ConfigMapKey
from accelbench.api.profiles import Profile
from accelbench.api.run import BenchmarkRun, UsedRunner, WorkloadReference
from accelbench.catalogue.script import VARIABLE
from accelbench.plan.names import attempt_name
from accelbench_operator.runs.claim import claim_device
from accelbench_operator.runs.owner import owner_reference
from accelbench_operator.runs.pod_template import CONTAINER, Manifest, add_defaults, merge_pod_template

START_MARGIN_SECONDS = 3600
"""Added to a case's time limit for the pod's own deadline, whose clock starts before the image is pulled: both
frameworks with CUDA are 10 GB, and there are registries that take half an hour for that."""

WORK_DIRECTORY = "/var/lib/accelbench"
TERMINATION_LOG = "/dev/termination-log"
SCRIPT = "accelbench-script"
SCRIPT_DIRECTORY = "/etc/accelbench-script"
MAXIMUM_LABEL = 63
ANY_CASE: Manifest = {
    "labelSelector": {
        "matchLabels": {labels.MANAGED_BY: labels.MANAGER},
        "matchExpressions": [{"key": labels.CASE, "operator": "Exists"}],
    },
    "namespaceSelector": {},
    "topologyKey": "kubernetes.io/hostname",
}
"""A node with a pod of any case, of any run in any namespace. A scheduler holds to it both ways: a pod that has this
term is not joined by one that has not."""


def pod_deadline_seconds(time_limit_seconds: int) -> int:
    """Seconds after which the kubelet ends the pod: a backstop, as the supervisor keeps the time limit itself."""
    return time_limit_seconds + START_MARGIN_SECONDS


def identity_labels(run: BenchmarkRun, case: str) -> dict[str, str]:
    """The labels that tie an object to its run and case; the operator selects by them."""
    return {
        labels.MANAGED_BY: labels.MANAGER,
        labels.RUN: run.metadata.name[:MAXIMUM_LABEL].strip("-."),
        labels.RUN_UID: run.metadata.uid,
        labels.CASE: case,
        labels.SERIES: run.series[:MAXIMUM_LABEL].strip("-."),
        labels.CLASS: run.spec.class_name,
    }


def build_job(run: BenchmarkRun, case: Case, attempt: int, runner: UsedRunner) -> Manifest:
    """The Job of `attempt` at `case`, complete: it is created as it stands here and never changed."""
    marks = identity_labels(run, case.name) | {labels.ATTEMPT: str(attempt)}
    queue = {
        key: run.metadata.labels[key] for key in (labels.QUEUE, labels.QUEUE_PRIORITY) if run.metadata.labels.get(key)
    }
    document = case.model_copy(update={"origin": case.origin.model_copy(update={"attempt": attempt})})
    ours = _template(document, runner, marks)
    if runner.profile.device_class:
        claim_device(ours["spec"], run)
    template = add_defaults(merge_pod_template(ours, run.spec.pod_template), runner.pod_template)
    (container,) = template["spec"]["containers"]
    # The result records it; only here is it known which of the two images it is.
    container["env"] = [*container["env"], {"name": "ACCELBENCH_IMAGE", "value": container["image"]}]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": attempt_name(run.metadata.name, run.metadata.uid, case.name, attempt),
            "namespace": run.metadata.namespace,
            "labels": marks | queue,
            "ownerReferences": [owner_reference(run)],
        },
        "spec": {
            # Kueue admits a Job by unsuspending it, so from here on `suspend` is its alone.
            "suspend": labels.QUEUE in queue,
            "backoffLimit": 0,
            "completions": 1,
            "parallelism": 1,
            "podReplacementPolicy": "Failed",
            # With no retries this changes nothing but the reason that the failed Job shows.
            "podFailurePolicy": {
                "rules": [{"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
            },
            "template": template,
        },
    }


def memory_limit(run: BenchmarkRun, profile: Profile) -> int:
    """Bytes that the runner's container may use: the profile's, or what the run's pod template asks for."""
    amount = {"memory": profile.memory}
    container = {"name": CONTAINER, "resources": {"requests": amount, "limits": amount}}
    template = merge_pod_template({"spec": {"containers": [container]}}, run.spec.pod_template)
    return int(parse_quantity(template["spec"]["containers"][0]["resources"]["limits"]["memory"]))


def _template(case: Case, runner: UsedRunner, marks: Mapping[str, str]) -> Manifest:
    profile = runner.profile
    pod: Manifest = {
        "restartPolicy": "Never",
        # On the pod, not on the Job: the Job's own deadline would delete the pod, and its log with it.
        "activeDeadlineSeconds": pod_deadline_seconds(case.measurement.time_limit_seconds),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "nodeSelector": profile.node_selector,
        "tolerations": [toleration.model_dump(by_alias=True, exclude_none=True) for toleration in profile.tolerations],
        "containers": [_container(case, profile, runner.image)],
        "volumes": [
            {"name": "accelbench-case", "downwardAPI": {"items": [_case_item()]}},
            {"name": "accelbench-work", "emptyDir": {}},
            {"name": "accelbench-tmp", "emptyDir": {}},
            *([_script_volume(script)] if (script := script_of(case)) else []),
        ],
    }
    if profile.takes_whole_node:
        pod["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [ANY_CASE]}}
    if profile.runtime_class_name:
        pod["runtimeClassName"] = profile.runtime_class_name
    return {
        "metadata": {
            "labels": dict(marks),
            "annotations": {
                labels.CASE_ANNOTATION: case.to_json(),
                # A measurement cannot be moved: evicted, it starts again from nothing.
                "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
            },
        },
        "spec": pod,
    }


def _case_item() -> Manifest:
    path = labels.CASE_FILE.rpartition("/")[2]
    return {"path": path, "fieldRef": {"fieldPath": f"metadata.annotations['{labels.CASE_ANNOTATION}']"}}


def _container(case: Case, profile: Profile, image: str) -> Manifest:
    return {
        "name": CONTAINER,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python", "-m", "accelbench_runner"],
        "args": [labels.CASE_FILE],
        "env": _environment(profile, script_of(case)),
        "resources": _resources(case, profile),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "terminationMessagePath": TERMINATION_LOG,
        "terminationMessagePolicy": "File",
        "volumeMounts": [
            {"name": "accelbench-case", "mountPath": labels.CASE_FILE.rpartition("/")[0], "readOnly": True},
            {"name": "accelbench-work", "mountPath": WORK_DIRECTORY},
            {"name": "accelbench-tmp", "mountPath": "/tmp"},  # noqa: S108 - a volume of the pod's own
            *([_script_mount(script)] if (script := script_of(case)) else []),
        ],
    }


def script_of(asked: Case | WorkloadReference) -> ConfigMapKey | None:
    """Where the workload's file is; None: the image has it."""
    return asked.script.config_map_key_ref if asked.script else None


def _script_volume(script: ConfigMapKey) -> Manifest:
    """The kubelet waits for a ConfigMap that is not there yet, as users of kubectl apply expect."""
    return {
        "name": SCRIPT,
        "configMap": {"name": script.name, "items": [{"key": script.key, "path": script.key}]},
    }


def _script_mount(script: ConfigMapKey) -> Manifest:
    """By `subPath`, which the kubelet never updates: all launches of a case load the same file."""
    return {
        "name": SCRIPT,
        "mountPath": f"{SCRIPT_DIRECTORY}/{script.key}",
        "subPath": script.key,
        "readOnly": True,
    }


def _environment(profile: Profile, script: ConfigMapKey | None) -> list[dict[str, str]]:
    values = profile.env | ({VARIABLE: f"{SCRIPT_DIRECTORY}/{script.key}"} if script else {})
    values |= {
        "ACCELBENCH_TERMINATION_LOG": TERMINATION_LOG,
        "ACCELBENCH_WORK_DIRECTORY": WORK_DIRECTORY,
        # Frameworks write caches under it, and the image's own is read-only.
        "HOME": WORK_DIRECTORY,
    }
    return [{"name": name, "value": value} for name, value in values.items()]


def _resources(case: Case, profile: Profile) -> dict[str, Any]:
    amounts = {"cpu": str(profile.cpu), "memory": profile.memory}
    if profile.resource:
        amounts[profile.resource] = str(profile.slice_chips or case.accelerator.devices)
    return {"requests": dict(amounts), "limits": dict(amounts)}
