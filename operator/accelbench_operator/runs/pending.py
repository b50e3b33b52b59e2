"""Explain why a case's container does not run yet, and the remedy.

The tables of docs/operations/troubleshooting.md are generated from `Cause` and `Advice`.
"""

import re
from collections.abc import Iterator
from enum import Enum

from accelbench.api.case import ConfigMapKey
from accelbench.api.profiles import Profile
from accelbench_operator.runs.observed import PREPARING_REASONS, ObservedJob, ObservedPod
from accelbench_operator.runs.waits import Wait

IMAGE_REASONS = {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"}
BETWEEN_PULLS = re.compile(r'ImagePullBackOff: Back-off pulling image "[^"]*": (?=\S)')
"""Beginning of the kubelet's message between two pulls. What follows it is the message of a failed pull."""
CONFIGURATION_REASONS = {"CreateContainerConfigError", "CreateContainerError", "RunContainerError"}


class Cause(Enum):
    """Define why a container does not run: the wait, a sentence, and the remedy if no `Advice` applies.

    In a sentence, {cluster_message} stands for the cluster's message.
    """

    BEING_CREATED = (Wait.CREATE_JOB, "Its Job is being created", "")
    JOB_REFUSED = (
        Wait.CREATE_JOB,
        "Its Job cannot be created: {cluster_message}",
        "Have that changed, or ask for less",
    )
    NO_POD = (
        Wait.POD,
        "Job {job} has no pod yet",
        "If that lasts, a quota or an admission webhook refuses it; kubectl describe job {job} says which",
    )
    POD_REFUSED = (
        Wait.POD,
        "Job {job} has no pod yet: {cluster_message}",
        "kubectl describe job {job} says more",
    )
    GATED = (
        Wait.START,
        "Pod {pod} is held by a scheduling gate: {cluster_message}",
        "Ask the owner of the scheduling gate to remove it",
    )
    UNSCHEDULABLE = (
        Wait.START,
        "No node takes the pod: {cluster_message}",
        "kubectl describe pod and accelbench profiles {profile} say more",
    )
    IMAGE = (
        Wait.START,
        "The image cannot be pulled ({cluster_message})",
        (
            "Check profile {profile}'s image, by default the chart's images.runner, and "
            "spec.podTemplate.spec.imagePullSecrets"
        ),
    )
    CONTAINER = (
        Wait.START,
        "The container cannot be created ({cluster_message})",
        "Check what spec.podTemplate refers to",
    )
    INIT_CONTAINER = (
        Wait.START,
        "Init container {cluster_message}",
        (
            "An admission webhook has added it: ask whoever runs that webhook how it leaves a pod out; "
            "spec.podTemplate.metadata takes labels and annotations"
        ),
    )
    PREPARING = (
        Wait.START,
        "The node is preparing the pod",
        "Images with both frameworks are large; a first pull takes minutes",
    )
    PREPARING_EVENT = (
        Wait.START,
        "The node is preparing the pod: {cluster_message}",
        "Images with both frameworks are large",
    )
    OTHER = (Wait.START, "The pod waits: {cluster_message}", "kubectl describe pod {pod} says more")

    def __init__(self, wait: Wait, sentence: str, remedy: str) -> None:
        self.wait = wait
        self.sentence = sentence
        self.remedy = remedy


class Advice(Enum):
    """Define remedies for messages of the cluster that contain a text; they replace the remedy of the `Cause`."""

    QUOTA = ("exceeded quota", "Wait for others to end, have the quota raised, or ask for less")
    LIMIT_RANGE = (
        " usage per ",
        (
            "A LimitRange of the namespace forbids that: ask for another amount in spec.podTemplate or in the profile, "
            "or have the LimitRange changed"
        ),
    )
    PRIORITY = ("no PriorityClass", "Create that PriorityClass, or correct spec.podTemplate.spec.priorityClassName")
    WEBHOOK = (
        "failed calling webhook",
        "That admission webhook does not answer: once its owner has repaired it, the case continues by itself",
    )
    NAMESPACE = (
        "so it may have no runs",
        "Nothing in the run changes that: once the namespace has the label, the case continues by itself",
    )
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
            "Profile {profile} asks for {cpu} cpu, {memory} and {storage} of disk: wait until other pods end, perhaps "
            "another case, free some, or ask for less"
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

    def __init__(self, contained_text: str, remedy: str) -> None:
        self.contained_text = contained_text
        self.remedy = remedy


_ADVICE_ON_REFUSALS = (
    Advice.QUOTA,
    Advice.LIMIT_RANGE,
    Advice.PRIORITY,
    Advice.TERMINATING,
    Advice.WEBHOOK,
    Advice.NAMESPACE,
    Advice.POLICY,
)
"""Advice on refusals by the API server, the most specific first."""


def explain_refused(message: str) -> str:
    """Explain why the API server refuses the Job."""
    return _sentence(Cause.JOB_REFUSED, advice=_advice_on_refusal(message), cluster_message=message)


def explain_pending(
    job: ObservedJob | None,
    pod: ObservedPod | None,
    profile: Profile,
    script: ConfigMapKey | None = None,
    event_message: str = "",
) -> str:
    """Explain why a case's container does not run yet.

    `job` and `pod` are None as long as they do not exist. `script` is the ConfigMap key that the pod mounts, if any.
    `event_message` is from an Event about the Job or the pod; empty if none was read.
    """
    if job is None:
        return _sentence(Cause.BEING_CREATED)
    if pod is None:
        cause = Cause.POD_REFUSED if event_message else Cause.NO_POD
        return _sentence(
            cause, advice=_advice_on_refusal(event_message), job=job.key.name, cluster_message=event_message
        )
    if pod.init_state:
        return _sentence(Cause.INIT_CONTAINER, cluster_message=_without_back_off(pod.init_state))
    return _explain_pod(pod, profile, script, event_message)


def gives_reason(pod: ObservedPod) -> bool:
    """Return True if the pod's status explains why the pod waits, more than that its containers are prepared."""
    reason, _, _ = pod.waiting.partition(": ")
    has_specific_reason = bool(reason) and reason not in PREPARING_REASONS
    return bool(pod.init_state) or has_specific_reason


def _explain_pod(pod: ObservedPod, profile: Profile, script: ConfigMapKey | None, event_message: str) -> str:
    """Explain why the container of a pod does not run yet."""
    if not gives_reason(pod):
        return _explain_preparing(script, event_message)
    reason, _, message = pod.waiting.partition(": ")
    if reason == "Unschedulable":
        advice = next(_advice_on_scheduling(message, profile), None)
        return _sentence(Cause.UNSCHEDULABLE, advice=advice, profile=profile, cluster_message=message)
    if reason == "SchedulingGated":
        return _sentence(Cause.GATED, pod=pod.key.name, cluster_message=message)
    if reason in IMAGE_REASONS:
        return _sentence(Cause.IMAGE, profile=profile, cluster_message=_without_back_off(pod.waiting))
    if reason in CONFIGURATION_REASONS:
        return _sentence(Cause.CONTAINER, advice=_advice_on_missing_object(message), cluster_message=pod.waiting)
    return _sentence(Cause.OTHER, pod=pod.key.name, cluster_message=pod.waiting)


def _without_back_off(message: str) -> str:
    """Remove the kubelet's words about the pause between two pulls, so that an explanation stays the same."""
    return BETWEEN_PULLS.sub("", message)


def _explain_preparing(script: ConfigMapKey | None, event_message: str) -> str:
    """Explain that the node is preparing the pod: it pulls images and mounts volumes."""
    cause = Cause.PREPARING_EVENT if event_message else Cause.PREPARING
    sentence = _sentence(cause, advice=_advice_on_missing_object(event_message), cluster_message=event_message)
    if script is None:
        return sentence
    return f"{sentence} If that lasts, check that ConfigMap {script.name} exists and has the key {script.key}."


def _sentence(cause: Cause, *, advice: Advice | None = None, profile: Profile | None = None, **facts: str) -> str:
    """Return the cause's sentence and a remedy.

    `advice` replaces the remedy of the cause. `profile` and `facts` give the values of the placeholders in the sentence
    and in the remedy.
    """
    if "cluster_message" in facts:
        facts["cluster_message"] = facts["cluster_message"].rstrip(". ")
    if profile:
        facts |= _profile_facts(profile)
    remedy = advice.remedy if advice else cause.remedy
    sentences = [f"{template.format(**facts)}." for template in (cause.sentence, remedy) if template]
    return " ".join(sentences)


def _profile_facts(profile: Profile) -> dict[str, str]:
    """Return the profile's values for the placeholders in the texts of `Cause` and `Advice`."""
    chips = f"{profile.slice_chips} " if profile.slice_chips else ""
    return {
        "profile": profile.name,
        "resource": str(profile.resource),
        "device_class": str(profile.device_class),
        "asked": f"{chips}{profile.resource}",
        "cpu": str(profile.cpu),
        "memory": profile.memory,
        "storage": profile.ephemeral_storage,
        "selector": ", ".join(f"{key}={value}" for key, value in profile.selected_labels.items()),
    }


def _advice_on_refusal(message: str) -> Advice | None:
    """Return the most specific advice on a refusal by the API server; None if there is none."""
    for advice in _ADVICE_ON_REFUSALS:
        if advice.contained_text in message:
            return advice
    return None


def _advice_on_missing_object(message: str) -> Advice | None:
    """Return the advice on a missing ConfigMap or Secret; None if the message is about neither."""
    for advice in (Advice.CONFIG_MAP, Advice.SECRET):
        if advice.contained_text in message and "not found" in message:
            return advice
    return None


def _advice_on_scheduling(message: str, profile: Profile) -> Iterator[Advice]:
    """Yield the advice on the scheduler's message, the most specific first."""
    # The name of a resource ends with a letter or a digit, so a full stop after it is not part of the name.
    lacking_resources = re.findall(r"Insufficient ([a-z0-9./-]*[a-z0-9])", message)
    if profile.device_class and ("claim" in message or "device" in message):
        yield Advice.DEVICE_CLASS
    if profile.resource and profile.resource in lacking_resources:
        yield Advice.DEVICES
    if lacking_resources:
        yield Advice.AMOUNTS
    if Advice.TURN.contained_text in message:
        yield Advice.TURN
    has_selector_mismatch = "node affinity" in message or "node selector" in message or "nodeSelector" in message
    if has_selector_mismatch and profile.selected_labels:
        yield Advice.SELECTOR
    if Advice.TAINT.contained_text in message:
        yield Advice.TAINT
    if has_selector_mismatch:
        # The caller uses the first advice. So here the profile selects no nodes, and the run's pod template must do so.
        yield Advice.OWN_SELECTOR
