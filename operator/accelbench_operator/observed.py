"""What the operator keeps of Jobs, pods and results: the few fields that decide, not the objects.

A runner's pod is 4 KiB of JSON and 75 KiB as a model of the kubernetes client; what is kept here is a few hundred
bytes, so that thousands of runs fit into a small container.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from accelbench.api import labels
from accelbench.api.numbers import MEASURED
from accelbench.api.result import Result
from accelbench.plan.names import result_name
from accelbench.verdict.shown import shown, step_seconds
from accelbench_operator.pod_template import CONTAINER
from accelbench_operator.snapshot import ComparisonSummary, Summary, VariantSummary

Manifest = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ObjectKey:
    """Where an object is, which one it is, and whose."""

    namespace: str
    name: str
    uid: str
    run_uid: str


@dataclass(frozen=True, slots=True)
class ObservedJob:
    """A Job of one attempt."""

    key: ObjectKey
    case: str
    created: datetime
    started: datetime | None
    """When the Job controller took it up; None while it is suspended, by Kueue say."""
    suspended: bool
    ended: bool
    """Complete or Failed, its pods with it."""
    failure: str = ""
    """`Reason: message` of the Failed condition."""


@dataclass(frozen=True, slots=True)
class ObservedPod:
    """A pod of one attempt."""

    key: ObjectKey
    case: str
    job: str
    created: datetime
    phase: str
    accepted: datetime | None
    """When a kubelet took it: its `activeDeadlineSeconds` runs from here."""
    running: datetime | None
    """When the runner's container started."""
    deleted: datetime | None
    """When it should be gone: the deletion's time plus grace."""
    ended: datetime | None
    """When the runner's container ended."""
    exit_code: int | None = None
    reason: str = ""
    """Of the container's end: `OOMKilled`, `Error`, `StartError`."""
    message: str = ""
    """The termination message: the runner's headline."""
    disruption: str = ""
    """`Reason: message` where the pod was evicted, preempted or lost; empty otherwise."""
    pod_reason: str = ""
    """The pod's own reason: `DeadlineExceeded`, `Evicted`, `OutOfcpu`."""
    node: str = ""
    image: str = ""
    """What the runner's container runs: by digest once the kubelet has said so, else as it was asked for."""
    waiting: str = ""
    """`Reason: message` of what holds it up before it runs: `Unschedulable`, `ImagePullBackOff`."""

    @property
    def is_over(self) -> bool:
        """Nothing of it will run again."""
        return self.phase in {"Succeeded", "Failed"}


def age(pod: ObservedPod) -> tuple[datetime, str]:
    """By which the newest of several pods is found; times are whole seconds, so names decide among equals."""
    return pod.created, pod.key.name


def parse_time(text: str | None) -> datetime | None:
    """A Kubernetes time; None for none."""
    return datetime.fromisoformat(text) if text else None


def observe_job(body: Manifest) -> ObservedJob | None:
    """What counts of a Job's manifest; None for one that no run controls, whatever its labels say."""
    if not owned_by(body, object_key(body).run_uid):
        return None
    metadata, status = body["metadata"], body.get("status") or {}
    conditions = {entry["type"]: entry for entry in status.get("conditions") or () if entry.get("status") == "True"}
    return ObservedJob(
        key=object_key(body),
        case=(metadata.get("labels") or {}).get(labels.CASE, ""),
        created=_created(metadata),
        started=parse_time(status.get("startTime")),
        suspended=bool((body.get("spec") or {}).get("suspend")),
        ended="Complete" in conditions or "Failed" in conditions,
        failure=_sentence(conditions.get("Failed")),
    )


def observe_pod(body: Manifest) -> ObservedPod:
    """What counts of a pod's manifest."""
    metadata, status = body["metadata"], body.get("status") or {}
    conditions = {entry["type"]: entry for entry in status.get("conditions") or ()}
    state = _container_state(status)
    ended, running, waiting = (state.get(name) or {} for name in ("terminated", "running", "waiting"))
    disruption = conditions.get("DisruptionTarget") or {}
    unscheduled = conditions.get("PodScheduled") or {}
    if unscheduled.get("status") == "False":
        waiting = unscheduled
    return ObservedPod(
        key=object_key(body),
        case=(metadata.get("labels") or {}).get(labels.CASE, ""),
        job=_controller(metadata),
        created=_created(metadata),
        phase=status.get("phase", "Pending"),
        accepted=parse_time(status.get("startTime")),
        running=parse_time(running.get("startedAt") or ended.get("startedAt")),
        deleted=parse_time(metadata.get("deletionTimestamp")),
        ended=parse_time(ended.get("finishedAt")),
        exit_code=ended.get("exitCode"),
        reason=ended.get("reason", ""),
        message=ended.get("message", ""),
        disruption=_sentence(disruption) if disruption.get("status") == "True" else "",
        pod_reason=status.get("reason", ""),
        node=(body.get("spec") or {}).get("nodeName") or "",
        image=_image(body),
        waiting=_sentence(waiting),
    )


def observe_result(body: Manifest) -> Summary | None:
    """The headline of a BenchmarkResult; None for one of no run; raises ValueError for what is none.

    Its label says whose it is, for it can outlive its owner, and its name has to agree: that cannot be changed.
    """
    key = object_key(body)
    if not key.run_uid:
        return None
    result = Result.model_validate(body["result"], extra="ignore")
    if key.name != result_name(result.case.origin.run, key.run_uid, result.case.name):
        return None
    judged = body.get("expectations") or ()
    not_met = tuple(each.get("message", "") for each in judged if each.get("outcome") != "met")
    return summarize(result, key, not_met, created=_created(body["metadata"]))


def summarize(
    result: Result, key: ObjectKey, not_met: tuple[str, ...] = (), created: datetime | None = None
) -> Summary:
    """The headline of a result that is stored under `key`, since `created`."""
    result = shown(result)
    case = result.case
    failed = {variant.name for variant in result.variants if variant.failure}
    return Summary(
        namespace=key.namespace,
        name=key.name,
        uid=key.uid,
        run=case.origin.run,
        run_uid=key.run_uid,
        series=case.origin.series,
        case=case.name,
        workload=case.workload,
        accelerator=case.accelerator.profile,
        unit=result.unit,
        currency=case.accelerator.currency,
        finished_timestamp=datetime.fromisoformat(result.finished).timestamp(),
        complete=result.complete,
        valid=result.valid,
        rounds=result.rounds,
        quarantined=len(result.quarantined),
        noisy=bool(result.noisy),
        variants=tuple(
            VariantSummary(
                name=variant.name,
                framework=variant.use.partition("/")[0],
                seconds=step_seconds(variant),
                phase_seconds={phase.phase: float(phase.median_seconds) for phase in variant.phases},
                numbers={
                    field: value
                    for field, number in MEASURED.items()
                    if number.metric and (value := variant.numbers.value(field)) is not None
                },
                failure=variant.failure.reason if variant.failure else None,
            )
            for variant in result.variants
        ),
        comparisons=tuple(
            ComparisonSummary(
                variant=comparison.variant,
                baseline=comparison.baseline,
                rounds=comparison.rounds,
                verdict=comparison.verdict,
                speedup=_number(comparison.speedup),
                lower=_number(comparison.lower),
                upper=_number(comparison.upper),
                invalid=comparison.invalid,
                noisy=comparison.noisy,
                failed=not failed.isdisjoint({comparison.variant, comparison.baseline}),
            )
            for comparison in result.comparisons
        ),
        observations=tuple(each.headline for each in result.observations),
        failed_checks=tuple(check.name for check in result.certificate.checks if check.outcome == "failed"),
        source=result.fingerprint.get("workloadSource", ""),
        not_met=not_met,
        created_timestamp=created.timestamp() if created else 0.0,
    )


def object_key(body: Manifest) -> ObjectKey:
    """Namespace, name and UID of a manifest, and the run that its label names."""
    metadata = body["metadata"]
    return ObjectKey(
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        uid=metadata.get("uid", ""),
        run_uid=(metadata.get("labels") or {}).get(labels.RUN_UID, ""),
    )


def owned_by(body: Manifest, run_uid: str) -> bool:
    """Whether that run controls the object: a name alone proves nothing."""
    owners = body["metadata"].get("ownerReferences") or ()
    return any(owner.get("uid") == run_uid and owner.get("controller") for owner in owners)


def _container_state(status: Manifest) -> Manifest:
    return _runner(status.get("containerStatuses")).get("state") or {}


def _image(body: Manifest) -> str:
    reported = _runner((body.get("status") or {}).get("containerStatuses"))
    asked = _runner((body.get("spec") or {}).get("containers"))
    return reported.get("imageID") or reported.get("image") or asked.get("image") or ""


def _runner(containers: Iterable[Manifest] | None) -> Manifest:
    return next((container for container in containers or () if container.get("name") == CONTAINER), {})


def _controller(metadata: Manifest) -> str:
    owners = metadata.get("ownerReferences") or ()
    return next((owner["name"] for owner in owners if owner.get("controller")), "")


def _created(metadata: Manifest) -> datetime:
    return datetime.fromisoformat(metadata["creationTimestamp"])


def _sentence(part: Manifest | None) -> str:
    if not part or not part.get("reason"):
        return ""
    message = part.get("message", "")
    return f"{part['reason']}: {message}" if message else part["reason"]


def _number(text: str | None) -> float | None:
    return None if text is None else float(text)
