"""Why is my run pending: what a case's Job or pod waits for, and what to do about it."""

import re
from collections.abc import Iterator

from accelbench.api.case import ConfigMapKey
from accelbench.api.profiles import Profile
from accelbench_operator.observed import ObservedJob, ObservedPod

IMAGE_REASONS = {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"}
CONFIGURATION_REASONS = {"CreateContainerConfigError", "CreateContainerError", "RunContainerError"}
PREPARING_REASONS = {"ContainerCreating", "PodInitializing"}


def explain_pending(
    job: ObservedJob | None, pod: ObservedPod | None, profile: Profile, script: ConfigMapKey | None = None
) -> str:
    """One sentence for a case whose container does not run yet; `script` is where its workload comes from one."""
    if job is None:
        return "Its Job is being created."
    if job.suspended:
        return f"Job {job.key.name} waits in its queue: see its Workload (kubectl get workloads)."
    if pod is None:
        return (
            f"Job {job.key.name} has no pod yet: where that lasts, a quota or an admission webhook refuses it; "
            f"kubectl describe job {job.key.name} says which."
        )
    return _explain_pod(pod, profile, script)


def _explain_pod(pod: ObservedPod, profile: Profile, script: ConfigMapKey | None) -> str:
    reason, _, message = pod.waiting.partition(": ")
    if reason == "Unschedulable":
        return f"No node takes the pod: {message.rstrip('.')}. {_scheduling_remedy(message, profile)}"
    if reason == "SchedulingGated":
        return f"Pod {pod.key.name} is held by a scheduling gate: {message}."
    if reason in IMAGE_REASONS:
        return f"The image cannot be pulled ({reason}: {message}). See the image's name and spec.imagePullSecrets."
    if reason in CONFIGURATION_REASONS:
        return f"The container cannot be made ({reason}: {message}). See what spec.podTemplate refers to."
    if reason in PREPARING_REASONS or not reason:
        return _preparing(script)
    return f"The pod waits: {pod.waiting}."


def _preparing(script: ConfigMapKey | None) -> str:
    """The kubelet tells why a volume cannot be mounted in events alone."""
    preparing = "The node prepares the pod: images of both frameworks are large, a first pull takes minutes."
    if script is None:
        return preparing
    return f"{preparing} Where that lasts, see whether ConfigMap {script.name} is there and has the key {script.key}."


def _scheduling_remedy(message: str, profile: Profile) -> str:
    return next(_remedies(message, profile), f"kubectl describe pod and accelbench profiles {profile.name} say more.")


def _remedies(message: str, profile: Profile) -> Iterator[str]:
    """What fits the scheduler's words, the most telling first."""
    lacking = re.findall(r"Insufficient ([a-z0-9./-]*[a-z0-9])", message)
    if profile.device_class and ("claim" in message or "device" in message):
        yield (
            f"Profile {profile.name} claims a device of DeviceClass {profile.device_class}: all are in use, or no node "
            "that fits has one; kubectl get deviceclasses,resourceslices shows what there is."
        )
    if profile.resource and profile.resource in lacking:
        asked = f"{profile.slice_chips} {profile.resource}" if profile.slice_chips else profile.resource
        yield (
            f"Profile {profile.name} asks for {asked}: all of it is in use, or no node offers it; "
            "wait, add a node, or install its device plugin."
        )
    if lacking:
        yield f"Profile {profile.name} asks for {profile.cpu} cpu and {profile.memory}: free some, or ask for less."
    if "anti-affinity" in message:
        yield (
            f"Profile {profile.name} gives a case its node to itself, and another is measured there: this one waits "
            "its turn."
        )
    unselected = "node affinity" in message or "node selector" in message or "nodeSelector" in message
    if unselected and profile.node_selector:
        selector = ", ".join(f"{key}={value}" for key, value in profile.node_selector.items())
        yield f"Profile {profile.name} selects nodes by {selector}, spec.podTemplate may add to that."
    if "untolerated taint" in message:
        yield f"Profile {profile.name} does not tolerate that taint: add a toleration to it or to spec.podTemplate."
    if unselected:
        yield f"Profile {profile.name} selects no nodes, spec.podTemplate does: see its nodeSelector and affinity."
