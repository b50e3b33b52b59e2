"""Reduce Jobs and pods to the fields that decisions need.

A runner's pod has 4 KiB of JSON, and 75 KiB as a model of the kubernetes client. A few hundred bytes of it are stored,
so that thousands of runs fit into a small container. Users can make the texts of a pod long, so each stored text has a
maximum length.
"""

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from accelbench.api import labels
from accelbench.cluster_api.kinds import JOB, POD, RUN
from accelbench.document import shorten
from accelbench_operator.engine.kinds import Key, Manifest, controller_of, controller_uid
from accelbench_operator.runs.pod_template import CONTAINER
from accelbench_operator.runs.same_case import digest_document, document_of

MAXIMUM_TEXT = 1024
"""Maximum number of characters of a stored text, such as the message of a condition."""
MAXIMUM_CONTAINERS = 8
"""Maximum number of other containers of a pod that are stored."""
MAXIMUM_END = 128
"""Maximum number of characters about another container that failed."""
MAXIMUM_TERMINATION_MESSAGE = 4096
"""Maximum number of characters of a termination message, as kubelets limit it."""
PREPARING_REASONS = {"ContainerCreating", "PodInitializing"}
"""Reasons of a container that waits although nothing is wrong."""
TRACKED = "batch.kubernetes.io/job-tracking"
"""Finalizer of a Job's pod. The Job controller removes it once it has counted the pod's end, or suspended the Job."""


@dataclass(frozen=True, slots=True)
class ObservedJob:
    """Describe the Job of one attempt."""

    key: Key
    owner: str
    """UID of its run."""
    case: str
    created_at: datetime
    started_at: datetime | None
    """Time at which the Job controller started the Job; None while the Job is suspended, for example by Kueue."""
    is_suspended: bool
    """True if the spec suspends the Job, or if the Job controller has not reported yet that it is resumed."""
    has_ended: bool
    """True if the Job is Complete or Failed; then all its pods have ended."""
    ended_at: datetime | None = None
    """Time at which the Job controller reported the Job's end; None before."""
    failure: str = ""
    """`Reason: message` of the Failed condition."""
    queue: str = ""
    """Name of its LocalQueue; empty without one."""
    suspended_since: datetime | None = None
    """Time since which the Job is suspended. None if it is not suspended, or if the Job controller has not reported a
    new suspension yet."""
    time_to_live: int | None = None
    """Its `ttlSecondsAfterFinished`, which only an admission webhook or policy sets."""
    document: str = ""
    """Digest of the case document in its pod template, which users can change while the Job is suspended."""


@dataclass(frozen=True, slots=True)
class ObservedPod:
    """Describe a pod of one attempt."""

    key: Key
    owner: str
    """UID of its run, from its label."""
    case: str
    job: str
    """Name of the Job that controls it; empty if no Job does."""
    created_at: datetime
    phase: str
    accepted_at: datetime | None
    """Time at which a kubelet accepted the pod, from which its `activeDeadlineSeconds` count."""
    started_at: datetime | None
    """Time at which the runner's container started; None before."""
    deletion_time: datetime | None
    """Time of the deletion plus the grace period, when the pod should be gone; None if it is not being deleted."""
    ended_at: datetime | None
    """Time at which the runner's container ended; None before."""
    exit_code: int | None = None
    reason: str = ""
    """Reason of the container's end: `OOMKilled`, `Error`, `StartError`."""
    message: str = ""
    """The termination message: the runner's headline."""
    disruption: str = ""
    """`Reason: message` if the pod was evicted, preempted or its node lost; empty otherwise."""
    pod_reason: str = ""
    """Reason of the pod itself: `DeadlineExceeded`, `Evicted`, `OutOfcpu`."""
    pod_message: str = ""
    """The kubelet's message on `pod_reason`."""
    node: str = ""
    image: str = ""
    """Image of the runner's container: by digest once the kubelet reports it, else as in the spec."""
    waiting: str = ""
    """`Reason: message` while it does not run yet, for example `Unschedulable` or `ImagePullBackOff`."""
    init_state: str = ""
    """Name and state of the init container that the runner's container waits for; empty if none explains the wait.
    Admission webhooks add init containers."""
    job_uid: str = ""
    """UID of the Job that controls it. Another Job may have had the same name."""
    scheduled_at: datetime | None = None
    """Time at which the scheduler found a node for it, by the scheduler's clock; None before."""
    still_running: tuple[str, ...] = ()
    """Other containers that have not ended. Admission webhooks add them, and the pod lasts as long as they do."""
    failed_containers: tuple[str, ...] = ()
    """Name and end of each other container that failed; the runner may have succeeded nevertheless."""
    is_untracked: bool = False
    """True if the pod is being deleted and its Job does not track it any more: unless the Job ends, another pod
    replaces this one."""
    document: str = ""
    """Digest of its case document."""

    @property
    def is_over(self) -> bool:
        """Return True if the pod has succeeded or failed; both are final."""
        return self.phase in {"Succeeded", "Failed"}

    @property
    def is_runner_over(self) -> bool:
        """Return True if the runner's container has ended for good, even if other containers of the pod still run."""
        # Without other containers, the kubelet ends the pod within seconds, and then the phase shows how.
        return self.is_over or (self.exit_code is not None and bool(self.still_running))


def reporting_pod(pods: Iterable[ObservedPod]) -> ObservedPod | None:
    """Return the pod that decides how a Job ended: one that succeeded, else the newest; None if there is none.

    A Job can have two pods, because the Job controller repeats a request that got no answer.
    """
    # Times are whole seconds, so the name decides between equal times.
    return max(pods, key=lambda pod: (pod.phase == "Succeeded", pod.created_at, pod.key.name), default=None)


def explain_still_running(pod: ObservedPod) -> str:
    """Return `container NAME still runs` for the containers that outlive the runner's."""
    names = ", ".join(pod.still_running)
    return f"container {names} still runs" if len(pod.still_running) == 1 else f"containers {names} still run"


def parse_time(text: str | None) -> datetime | None:
    """Return the time of a Kubernetes timestamp; None if there is none."""
    return datetime.fromisoformat(text) if text else None


def _parse_start(text: str | None) -> datetime | None:
    """Return when a container started; None if it never did."""
    start = parse_time(text)
    # Some runtimes report the beginning of 1970 for a container that never started.
    return start if start and start.timestamp() > 0 else None


def observe_job(body: Manifest) -> ObservedJob | None:
    """Reduce a Job to the fields that decisions need; return None if no run controls it."""
    # Labels alone do not make an object the Job of a run.
    owner = controller_uid(body, RUN)
    if not owner:
        return None
    metadata, status = body["metadata"], body.get("status") or {}
    conditions = {condition["type"]: condition for condition in status.get("conditions") or ()}
    true_conditions = {name: entry for name, entry in conditions.items() if entry.get("status") == "True"}
    spec_suspends = bool((body.get("spec") or {}).get("suspend"))
    end = true_conditions.get("Complete") or true_conditions.get("Failed") or {}
    return ObservedJob(
        key=Key.of(JOB.name, body),
        owner=owner,
        case=(metadata.get("labels") or {}).get(labels.CASE, ""),
        created_at=created_at(metadata),
        started_at=parse_time(status.get("startTime")),
        is_suspended=spec_suspends or "Suspended" in true_conditions,
        has_ended=bool(end),
        ended_at=parse_time(end.get("lastTransitionTime")),
        failure=describe(true_conditions.get("Failed")),
        queue=(metadata.get("labels") or {}).get(labels.QUEUE, ""),
        suspended_since=_suspended_since(metadata, conditions.get("Suspended", {}), spec_suspends=spec_suspends),
        time_to_live=(body.get("spec") or {}).get("ttlSecondsAfterFinished"),
        document=digest_document(document_of((body.get("spec") or {}).get("template") or {})),
    )


def _suspended_since(metadata: Manifest, condition: Manifest, *, spec_suspends: bool) -> datetime | None:
    """Return when a Job was suspended; None if it is not, or if its `Suspended` condition is outdated."""
    changed_at = parse_time(condition.get("lastTransitionTime"))
    if condition.get("status") == "True":
        return changed_at
    # A Job that was created suspended has no condition `Suspended` at first.
    was_created_suspended = spec_suspends and not changed_at
    return created_at(metadata) if was_created_suspended else None


def observe_pod(body: Manifest) -> ObservedPod:
    """Reduce a pod to the fields that decisions need."""
    metadata, status = body["metadata"], body.get("status") or {}
    conditions = {entry["type"]: entry for entry in status.get("conditions") or ()}
    state = _container_state(status)
    terminated = state.get("terminated") or {}
    running = state.get("running") or {}
    waiting = state.get("waiting") or {}
    disruption = conditions.get("DisruptionTarget") or {}
    scheduling = conditions.get("PodScheduled") or {}
    job_uid = controller_uid(body, JOB)
    is_being_deleted = "deletionTimestamp" in metadata
    is_tracked = TRACKED in (metadata.get("finalizers") or ())
    if scheduling.get("status") == "False":
        # The scheduler's message explains the wait.
        waiting = scheduling
    return ObservedPod(
        key=Key.of(POD.name, body),
        # The label names the run even after the pod's Job was deleted.
        owner=run_uid_of(metadata),
        case=(metadata.get("labels") or {}).get(labels.CASE, ""),
        job=controller_of(body)["name"] if job_uid else "",
        job_uid=job_uid,
        created_at=created_at(metadata),
        phase=status.get("phase", "Pending"),
        accepted_at=parse_time(status.get("startTime")),
        started_at=_parse_start(running.get("startedAt") or terminated.get("startedAt")),
        deletion_time=parse_time(metadata.get("deletionTimestamp")),
        ended_at=parse_time(terminated.get("finishedAt")),
        exit_code=terminated.get("exitCode"),
        reason=_text(terminated.get("reason")),
        message=_text(terminated.get("message"), MAXIMUM_TERMINATION_MESSAGE),
        disruption=describe(disruption) if disruption.get("status") == "True" else "",
        pod_reason=_text(status.get("reason")),
        pod_message=_text(status.get("message")),
        node=(body.get("spec") or {}).get("nodeName") or "",
        image=_image(body),
        waiting=describe(waiting),
        init_state=_init_state(body),
        scheduled_at=parse_time(scheduling.get("lastTransitionTime")) if scheduling.get("status") == "True" else None,
        still_running=_still_running(status),
        failed_containers=_failed_containers(status),
        # A pod that is being deleted and that its Job does not track is replaced by another, unless the Job has ended.
        is_untracked=is_being_deleted and not is_tracked,
        document=digest_document(document_of(body)),
    )


def run_uid_of(metadata: Manifest) -> str:
    """Return the run's UID from an object's label."""
    return str((metadata.get("labels") or {}).get(labels.RUN_UID, ""))


def _container_state(status: Manifest) -> Manifest:
    """Return the state of the runner's container."""
    return _runner_container(status.get("containerStatuses")).get("state") or {}


def _still_running(status: Manifest) -> tuple[str, ...]:
    """Return the names of containers other than the runner's that have not ended, at most `MAXIMUM_CONTAINERS`."""
    names = (
        container["name"]
        for container in status.get("containerStatuses") or ()
        if container["name"] != CONTAINER and "terminated" not in (container.get("state") or {})
    )
    return tuple(itertools.islice(names, MAXIMUM_CONTAINERS))


def _failed_containers(status: Manifest) -> tuple[str, ...]:
    """Describe how containers other than the runner's failed, each with its name; at most `MAXIMUM_CONTAINERS`."""
    ends = (
        _describe_end(container["name"], (container.get("state") or {}).get("terminated") or {})
        for container in status.get("containerStatuses") or ()
        if container["name"] != CONTAINER
    )
    return tuple(itertools.islice(filter(None, ends), MAXIMUM_CONTAINERS))


def _describe_end(name: str, terminated: Manifest) -> str:
    """Return the name and the end of a container that failed; empty if it did not fail."""
    exit_code = terminated.get("exitCode")
    return _text(f"{name} failed with exit code {exit_code} ({describe(terminated)})", MAXIMUM_END) if exit_code else ""


def _init_state(body: Manifest) -> str:
    """Return the name and the state of the first init container that has not succeeded; empty if there is none.

    It is also empty while the node prepares that container.
    """
    specified = (body.get("spec") or {}).get("initContainers") or ()
    # A sidecar need not end: the next init container starts once the sidecar runs.
    sidecars = {container["name"] for container in specified if container.get("restartPolicy") == "Always"}
    for container in (body.get("status") or {}).get("initContainerStatuses") or ():
        name, state = container["name"], container.get("state") or {}
        terminated, waiting = state.get("terminated") or {}, state.get("waiting") or {}
        if terminated.get("exitCode"):
            return _text(f"{name} failed with exit code {terminated['exitCode']} ({describe(terminated)})")
        if waiting:
            is_preparing = waiting.get("reason") in PREPARING_REASONS
            return "" if is_preparing else _text(f"{name} waits ({describe(waiting)})")
        if "running" in state and name not in sidecars:
            return _text(f"{name} still runs")
    return ""


def _image(body: Manifest) -> str:
    """Return the image of the runner's container: as the kubelet reports it, else as in the spec."""
    reported = _runner_container((body.get("status") or {}).get("containerStatuses"))
    requested = _runner_container((body.get("spec") or {}).get("containers"))
    return _text(reported.get("imageID") or reported.get("image") or requested.get("image"))


def _runner_container(containers: Iterable[Manifest] | None) -> Manifest:
    """Return the runner's entry in a list of containers or of their statuses."""
    return next((container for container in containers or () if container.get("name") == CONTAINER), {})


def created_at(metadata: Manifest) -> datetime:
    """Return when the object with that metadata was created."""
    return datetime.fromisoformat(metadata["creationTimestamp"])


def describe(entry: Manifest | None) -> str:
    """Return `Reason: message` of a condition, a container's state or an Event; empty if it has no reason."""
    if not entry or not entry.get("reason"):
        return ""
    message = entry.get("message", "")
    return _text(f"{entry['reason']}: {message}" if message else entry["reason"])


def _text(text: str | None, maximum: int = MAXIMUM_TEXT) -> str:
    """Return a text of an object in the cluster, shortened to at most `maximum` characters; empty for None."""
    return shorten(text or "", maximum)
