"""Explain why a run is pending: what a case's Job or pod waits for, and what to do about it.

The tables of docs/operations/troubleshooting.md are generated from `Cause` and `Advice`.
"""

import re
from collections.abc import Iterator
from enum import Enum

from accelbench.api.case import ConfigMapKey
from accelbench.api.profiles import Profile
from accelbench_operator.runs.observed import ObservedJob, ObservedPod
from accelbench_operator.runs.waits import Wait

IMAGE_REASONS = {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"}
BETWEEN_PULLS = re.compile(r'^ImagePullBackOff: Back-off pulling image "[^"]*": (?=\S)')
"""The kubelet puts this before the reason of a failed pull between two tries, so the message would alternate."""
CONFIGURATION_REASONS = {"CreateContainerConfigError", "CreateContainerError", "RunContainerError"}
PREPARING_REASONS = {"ContainerCreating", "PodInitializing"}


class Cause(Enum):
    """Define the wait, the sentence with the cluster's message as {words}, and the remedy if no `Advice` applies."""

    BEING_CREATED = (Wait.CREATE_JOB, "Its Job is being created", "")
    JOB_REFUSED = (Wait.CREATE_JOB, "Its Job cannot be created: {words}", "Have that changed, or ask for less")
    NO_POD = (
        Wait.POD,
        "Job {job} has no pod yet",
        "If that lasts, a quota or an admission webhook refuses it; kubectl describe job {job} says which",
    )
    POD_REFUSED = (
        Wait.POD,
        "Job {job} has no pod yet: {words}",
        "kubectl describe job {job} says more",
    )
    GATED = (
        Wait.START,
        "Pod {pod} is held by a scheduling gate: {words}",
        "Ask the owner of the scheduling gate to remove it",
    )
    UNSCHEDULABLE = (
        Wait.START,
        "No node takes the pod: {words}",
        "kubectl describe pod and accelbench profiles {profile} say more",
    )
    IMAGE = (
        Wait.START,
        "The image cannot be pulled ({words})",
        (
            "Check profile {profile}'s image, by default the chart's images.runner, and "
            "spec.podTemplate.spec.imagePullSecrets"
        ),
    )
    CONTAINER = (Wait.START, "The container cannot be created ({words})", "Check what spec.podTemplate refers to")
    PREPARING = (
        Wait.START,
        "The node is preparing the pod",
        "Images with both frameworks are large; a first pull takes minutes",
    )
    PREPARING_EVENT = (
        Wait.START,
        "The node is preparing the pod: {words}",
        "Images with both frameworks are large",
    )
    OTHER = (Wait.START, "The pod waits: {words}", "kubectl describe pod {pod} says more")

    def __init__(self, wait: Wait, sentence: str, remedy: str) -> None:
        self.wait = wait
        self.sentence = sentence
        self.remedy = remedy


class Advice(Enum):
    """Define remedies by words in the cluster's message; they replace the remedy of the `Cause`."""

    QUOTA = ("exceeded quota", "Wait for others to end, have the quota raised, or ask for less")
    PRIORITY = ("no PriorityClass", "Create that PriorityClass, or correct spec.podTemplate.spec.priorityClassName")
    POLICY = ("denied", "Change what the policy names, in spec.podTemplate or in the profile")
    TERMINATING = ("is being terminated", "The namespace is being deleted, and the run with it")
    CONFIG_MAP = ("configmap", "Create it, and the pod continues by itself")
    SECRET = ("secret", "Create it, and the pod continues by itself")
    DEVICE_CLASS = (
        "claim",
        (
            "Profile {profile} claims a device of DeviceClass {device_class}: all are in use, or no node has one; "
            "kubectl get deviceclasses,resourceslices shows what there is"
        ),
    )
    DEVICES = (
        "Insufficient {resource}",
        "Profile {profile} asks for {asked}: wait until enough are free, add a node, or install its device plugin",
    )
    AMOUNTS = (
        "Insufficient",
        (
            "Profile {profile} asks for {cpu} cpu and {memory}: wait until other pods end, perhaps another case, "
            "free some, or ask for less"
        ),
    )
    TURN = (
        "anti-affinity",
        "Profile {profile} gives each case a node to itself, and this node has another case: this one waits its turn",
    )
    SELECTOR = (
        "node affinity/selector",
        "Profile {profile} selects nodes by {selector}; spec.podTemplate may add to that",
    )
    TAINT = (
        "untolerated taint",
        "Profile {profile} does not tolerate that taint: add a toleration to it or to spec.podTemplate",
    )
    OWN_SELECTOR = (
        "node affinity/selector",
        "Profile {profile} selects no nodes, but spec.podTemplate does: check its nodeSelector and affinity",
    )

    def __init__(self, words: str, remedy: str) -> None:
        self.words = words
        self.remedy = remedy


def explain_refused(words: str) -> str:
    """Explain why the API server refuses the Job; `words` is its message."""
    return _sentence(Cause.JOB_REFUSED, next(_advice_on_refusal(words), None), words=words)


def explain_pending(
    job: ObservedJob | None,
    pod: ObservedPod | None,
    profile: Profile,
    script: ConfigMapKey | None = None,
    words: str = "",
) -> str:
    """Explain why a case's container does not run yet.

    Args:
        job: The case's Job, if it exists.
        pod: The Job's pod, if it exists.
        profile: The profile whose resources the pod requests.
        script: The ConfigMap key with the workload's file, if it has one.
        words: The message of an Event about the Job or the pod, if these give no reason themselves.
    """
    if job is None:
        return _sentence(Cause.BEING_CREATED)
    if pod is None:
        cause = Cause.POD_REFUSED if words else Cause.NO_POD
        return _sentence(cause, next(_advice_on_refusal(words), None), job=job.key.name, words=words)
    return _explain_pod(pod, profile, script, words)


def gives_no_reason(pod: ObservedPod) -> bool:
    """Return True if the status of a pod does not explain why it does not run, so that Events have to be read."""
    return not pod.waiting or pod.waiting.partition(": ")[0] in PREPARING_REASONS


def _explain_pod(pod: ObservedPod, profile: Profile, script: ConfigMapKey | None, words: str) -> str:
    if gives_no_reason(pod):
        return _explain_preparing(script, words)
    reason, _, message = pod.waiting.partition(": ")
    if reason == "Unschedulable":
        return _sentence(
            Cause.UNSCHEDULABLE, next(_advice_on_scheduling(message, profile), None), profile, words=message
        )
    if reason == "SchedulingGated":
        return _sentence(Cause.GATED, pod=pod.key.name, words=message)
    if reason in IMAGE_REASONS:
        return _sentence(Cause.IMAGE, None, profile, words=BETWEEN_PULLS.sub("", pod.waiting))
    if reason in CONFIGURATION_REASONS:
        return _sentence(Cause.CONTAINER, next(_advice_on_missing_object(message), None), words=pod.waiting)
    return _sentence(Cause.OTHER, pod=pod.key.name, words=pod.waiting)


def _explain_preparing(script: ConfigMapKey | None, words: str) -> str:
    cause = Cause.PREPARING_EVENT if words else Cause.PREPARING
    sentence = _sentence(cause, next(_advice_on_missing_object(words), None), words=words)
    if script is None:
        return sentence
    return f"{sentence} If that lasts, check that ConfigMap {script.name} exists and has the key {script.key}."


def _sentence(cause: Cause, advice: Advice | None = None, profile: Profile | None = None, **facts: str) -> str:
    """Return the cause's sentence and the remedy, with their placeholders replaced by `profile` and `facts`."""
    if "words" in facts:
        facts["words"] = facts["words"].rstrip(". ")
    if profile:
        facts |= _facts(profile)
    parts = (cause.sentence, advice.remedy if advice else cause.remedy)
    return " ".join(f"{part.format(**facts)}." for part in parts if part)


def _facts(profile: Profile) -> dict[str, str]:
    """Return the placeholders that a profile replaces."""
    chips = f"{profile.slice_chips} " if profile.slice_chips else ""
    return {
        "profile": profile.name,
        "resource": str(profile.resource),
        "device_class": str(profile.device_class),
        "asked": f"{chips}{profile.resource}",
        "cpu": str(profile.cpu),
        "memory": profile.memory,
        "selector": ", ".join(f"{key}={value}" for key, value in profile.node_selector.items()),
    }


def _advice_on_refusal(words: str) -> Iterator[Advice]:
    """Return the advice that applies to a refusal by the API server, the most specific first."""
    refusals = (Advice.QUOTA, Advice.PRIORITY, Advice.TERMINATING, Advice.POLICY)
    return (advice for advice in refusals if advice.words in words)


def _advice_on_missing_object(words: str) -> Iterator[Advice]:
    """Return the advice on a ConfigMap or Secret that a container needs and the kubelet does not find."""
    return (advice for advice in (Advice.CONFIG_MAP, Advice.SECRET) if advice.words in words and "not found" in words)


def _advice_on_scheduling(words: str, profile: Profile) -> Iterator[Advice]:
    """Yield the advice that applies to the scheduler's message, the most specific first."""
    lacking_resources = re.findall(r"Insufficient ([a-z0-9./-]*[a-z0-9])", words)
    if profile.device_class and ("claim" in words or "device" in words):
        yield Advice.DEVICE_CLASS
    if profile.resource and profile.resource in lacking_resources:
        yield Advice.DEVICES
    if lacking_resources:
        yield Advice.AMOUNTS
    if Advice.TURN.words in words:
        yield Advice.TURN
    selector_mismatch = "node affinity" in words or "node selector" in words or "nodeSelector" in words
    if selector_mismatch and profile.node_selector:
        yield Advice.SELECTOR
    if Advice.TAINT.words in words:
        yield Advice.TAINT
    if selector_mismatch:
        yield Advice.OWN_SELECTOR
