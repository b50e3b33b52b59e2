"""A device by dynamic resource allocation: what a run's pods claim it with.

The run owns one ResourceClaimTemplate, of which Kubernetes makes a claim for each pod and deletes it with the pod: a
device is never held for longer than a pod is there, and nothing is left once the run is deleted (ADR 33).
"""

from accelbench.api import labels
from accelbench.api.profiles import Profile
from accelbench.api.run import BenchmarkRun
from accelbench.cluster_api.errors import ApiError
from accelbench.plan.names import claim_template_name
from accelbench_operator.runs.owner import owner_reference
from accelbench_operator.runs.pod_template import Manifest

API = "resource.k8s.io/v1"
CLAIM = "accelbench-device"


class NotServedError(ApiError):
    """The cluster has no dynamic resource allocation."""

    def __init__(self, profile: Profile, answer: str) -> None:
        """`answer` is what the API server said."""
        super().__init__(
            404,
            f"profile {profile.name} claims a device of DeviceClass {profile.device_class}, but this cluster does not "
            f"serve {API}, as Kubernetes 1.34 and later do ({answer}); use a profile with a resource",
        )


def build_claim_template(run: BenchmarkRun, profile: Profile) -> Manifest:
    """What claims one device of the profile's DeviceClass for each pod of the run."""
    request = {"name": "device", "exactly": {"deviceClassName": profile.device_class}}
    return {
        "apiVersion": API,
        "kind": "ResourceClaimTemplate",
        "metadata": {
            "name": claim_template_name(run.metadata.name, run.metadata.uid),
            "namespace": run.metadata.namespace,
            "labels": {labels.MANAGED_BY: labels.MANAGER, labels.RUN_UID: run.metadata.uid},
            "ownerReferences": [owner_reference(run)],
        },
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }


def claim_device(pod: Manifest, run: BenchmarkRun) -> None:
    """Have the pod claim a device with the run's template, and its container use it."""
    name = claim_template_name(run.metadata.name, run.metadata.uid)
    pod["resourceClaims"] = [{"name": CLAIM, "resourceClaimTemplateName": name}]
    (container,) = pod["containers"]
    container["resources"]["claims"] = [{"name": CLAIM}]
