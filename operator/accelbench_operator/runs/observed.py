"""Reduce Jobs and pods to the fields that decisions need.

A runner's pod is 4 KiB of JSON and 75 KiB as a model of the kubernetes client; a few hundred bytes of it are kept, so
that thousands of runs fit into a small container.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from accelbench.api import labels
from accelbench.cluster_api.kinds import JOB, POD
from accelbench_operator.engine.kinds import Key, Manifest, controller_of
from accelbench_operator.runs.pod_template import CONTAINER

TRACKED = "batch.kubernetes.io/job-tracking"
"""Finalizer of a Job's pod until its end is counted, or until the Job is suspended."""


@dataclass(frozen=True, slots=True)
class ObservedJob:
    """Describe the Job of one attempt."""

    key: Key
    owner: str
    """UID of its run."""
    case: str
    created: datetime
    started: datetime | None
    """Time at which the Job controller began with it; None while it is suspended, for example by Kueue."""
    suspended: bool
    """True while its spec suspends it, and until the Job controller has noted that it is resumed."""
    ended: bool
    """True if it is Complete or Failed, and so are its pods."""
    failure: str = ""
    """`Reason: message` of the Failed condition."""
    queue: str = ""
    """Name of its LocalQueue; empty without one."""
    suspended_since: datetime | None = None
    """Time since which it is suspended; None if it is not, or the Job controller has not noted a renewed suspension."""


@dataclass(frozen=True, slots=True)
class ObservedPod:
    """Describe a pod of one attempt."""

    key: Key
    owner: str
    """UID of its run."""
    case: str
    job: str
    created: datetime
    phase: str
    accepted: datetime | None
    """Time at which a kubelet accepted it, from which its `activeDeadlineSeconds` count."""
    running: datetime | None
    """Start of the runner's container; None before."""
    deleted: datetime | None
    """Time at which a deleted pod should be gone: that of the deletion plus the grace period."""
    ended: datetime | None
    """End of the runner's container; None before."""
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
    """The kubelet's message for it."""
    node: str = ""
    image: str = ""
    """Image of the runner's container: by digest once the kubelet reports it, else as in the spec."""
    waiting: str = ""
    """`Reason: message` while it does not run yet, for example `Unschedulable` or `ImagePullBackOff`."""
    disowned: bool = False
    """True if it is being deleted and its Job no longer tracks it: unless the Job ends, another pod replaces it."""

    @property
    def is_over(self) -> bool:
        """Return True if it has succeeded or failed, both of which are final."""
        return self.phase in {"Succeeded", "Failed"}


def reporting_pod(pods: Iterable[ObservedPod]) -> ObservedPod | None:
    """Return the pod of a Job whose end counts: one that succeeded, else the newest; None without any.

    A Job controller that gets no answer about its first pod creates a second, and deletes one of them once it knows of
    both. Times are whole seconds, so names decide among equals.
    """
    return max(pods, key=lambda pod: (pod.phase == "Succeeded", pod.created, pod.key.name), default=None)


def parse_time(text: str | None) -> datetime | None:
    """Return a Kubernetes time; None if there is none."""
    return datetime.fromisoformat(text) if text else None


def _parse_start(text: str | None) -> datetime | None:
    """Return when a container started; None if it never did, which runtimes report as a time in 1970."""
    moment = parse_time(text)
    return moment if moment and moment.timestamp() > 0 else None


def observe_job(body: Manifest) -> ObservedJob | None:
    """Return what decisions need of a Job; None for one that no object controls, whatever its labels are."""
    owner = controller_of(body).get("uid", "")
    if not owner:
        return None
    metadata, status = body["metadata"], body.get("status") or {}
    entries = {entry["type"]: entry for entry in status.get("conditions") or ()}
    conditions = {kind: entry for kind, entry in entries.items() if entry.get("status") == "True"}
    suspension_changed = parse_time(entries.get("Suspended", {}).get("lastTransitionTime"))
    suspend = bool((body.get("spec") or {}).get("suspend"))
    is_suspended = "Suspended" in conditions
    return ObservedJob(
        key=Key.of(JOB.name, body),
        owner=owner,
        case=(metadata.get("labels") or {}).get(labels.CASE, ""),
        created=created_at(metadata),
        started=parse_time(status.get("startTime")),
        suspended=suspend or is_suspended,
        ended="Complete" in conditions or "Failed" in conditions,
        failure=describe(conditions.get("Failed")),
        queue=(metadata.get("labels") or {}).get(labels.QUEUE, ""),
        suspended_since=suspension_changed
        if is_suspended
        else created_at(metadata)
        if suspend and not suspension_changed
        else None,
    )


def observe_pod(body: Manifest) -> ObservedPod:
    """Return what decisions need of a pod."""
    metadata, status = body["metadata"], body.get("status") or {}
    conditions = {entry["type"]: entry for entry in status.get("conditions") or ()}
    state = _container_state(status)
    ended, running, waiting = (state.get(name) or {} for name in ("terminated", "running", "waiting"))
    disruption = conditions.get("DisruptionTarget") or {}
    unscheduled = conditions.get("PodScheduled") or {}
    if unscheduled.get("status") == "False":
        waiting = unscheduled
    return ObservedPod(
        key=Key.of(POD.name, body),
        # A pod can outlive the Job that controls it, so its label names the run.
        owner=run_uid_of(metadata),
        case=(metadata.get("labels") or {}).get(labels.CASE, ""),
        job=controller_of(body).get("name", ""),
        created=created_at(metadata),
        phase=status.get("phase", "Pending"),
        accepted=parse_time(status.get("startTime")),
        running=_parse_start(running.get("startedAt") or ended.get("startedAt")),
        deleted=parse_time(metadata.get("deletionTimestamp")),
        ended=parse_time(ended.get("finishedAt")),
        exit_code=ended.get("exitCode"),
        reason=ended.get("reason", ""),
        message=ended.get("message", ""),
        disruption=describe(disruption) if disruption.get("status") == "True" else "",
        pod_reason=status.get("reason", ""),
        pod_message=status.get("message", ""),
        node=(body.get("spec") or {}).get("nodeName") or "",
        image=_image(body),
        waiting=describe(waiting),
        disowned="deletionTimestamp" in metadata and TRACKED not in (metadata.get("finalizers") or ()),
    )


def owned_by(body: Manifest, run_uid: str) -> bool:
    """Return True if that run controls the object; another owner's object can have the same name."""
    return bool(controller_of(body).get("uid") == run_uid)


def run_uid_of(metadata: Manifest) -> str:
    """Return the UID of the run that the label names; empty without a label."""
    return str((metadata.get("labels") or {}).get(labels.RUN_UID, ""))


def _container_state(status: Manifest) -> Manifest:
    return _runner_container(status.get("containerStatuses")).get("state") or {}


def _image(body: Manifest) -> str:
    """Return the image that the kubelet reports, by digest if it can, else that of the spec."""
    reported = _runner_container((body.get("status") or {}).get("containerStatuses"))
    requested = _runner_container((body.get("spec") or {}).get("containers"))
    return reported.get("imageID") or reported.get("image") or requested.get("image") or ""


def _runner_container(containers: Iterable[Manifest] | None) -> Manifest:
    """Return the runner's entry of a list of containers or of their statuses; empty without one."""
    return next((container for container in containers or () if container.get("name") == CONTAINER), {})


def created_at(metadata: Manifest) -> datetime:
    """Return when an object was created."""
    return datetime.fromisoformat(metadata["creationTimestamp"])


def describe(part: Manifest | None) -> str:
    """Return `Reason: message` of a condition, a container's state or an Event; empty without a reason."""
    if not part or not part.get("reason"):
        return ""
    message = part.get("message", "")
    return f"{part['reason']}: {message}" if message else part["reason"]
