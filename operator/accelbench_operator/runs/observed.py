"""Reduce Jobs, pods and results to the fields that decisions need.

A runner's pod is 4 KiB of JSON and 75 KiB as a model of the kubernetes client; a few hundred bytes of it are kept, so
that thousands of runs fit into a small container.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from accelbench.api import labels
from accelbench.api.numbers import MEASURED
from accelbench.api.result import Result
from accelbench.cluster_api.kinds import JOB, POD, RESULT
from accelbench.document import on_one_line
from accelbench.plan.names import result_name
from accelbench.verdict.redaction import redact_invalid, step_seconds
from accelbench_operator.engine.kinds import Key, Manifest, controller_of
from accelbench_operator.runs.pod_template import CONTAINER
from accelbench_operator.runs.summary import Summary, VariantSummary

TRACKED = "batch.kubernetes.io/job-tracking"
"""The finalizer that a Job's pod has until its end is counted, or until the Job is suspended."""
MAXIMUM_SOURCE = 128
MAXIMUM_CHECKS = 32
"""Limits of what is held of a result, which a program may have written: characters, and names."""


@dataclass(frozen=True, slots=True)
class ObservedJob:
    """Describe the Job of one attempt."""

    key: Key
    owner: str
    """UID of its run."""
    case: str
    created: datetime
    started: datetime | None
    """When the Job controller began with it; None while it is suspended, for example by Kueue."""
    suspended: bool
    """Its queue holds it, or did until a moment ago: the Job controller has not noted its release yet."""
    ended: bool
    """It is Complete or Failed, and so are its pods."""
    failure: str = ""
    """`Reason: message` of the Failed condition."""
    queue: str = ""
    """The LocalQueue that it is to wait in; empty for none."""
    held: datetime | None = None
    """Since when it is suspended; None until the Job controller has noted a renewed suspension."""


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
    """When a kubelet accepted it: its `activeDeadlineSeconds` runs from then on."""
    running: datetime | None
    """When the runner's container started."""
    deleted: datetime | None
    """When it should be gone: the time of its deletion plus the grace period."""
    ended: datetime | None
    """When the runner's container ended."""
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
    """`Reason: message` of why it does not run yet: `Unschedulable`, `ImagePullBackOff`."""
    disowned: bool = False
    """It is being deleted, and its Job no longer counts it: unless the Job ends, another pod replaces it."""

    @property
    def is_over(self) -> bool:
        """Return True if it has ended for good."""
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


def _start(text: str | None) -> datetime | None:
    """Return when a container started; None if it never did, for which runtimes give a time in 1970."""
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
    changed = parse_time(entries.get("Suspended", {}).get("lastTransitionTime"))
    suspend = bool((body.get("spec") or {}).get("suspend"))
    is_noted = "Suspended" in conditions
    return ObservedJob(
        key=Key.of(JOB.name, body),
        owner=owner,
        case=(metadata.get("labels") or {}).get(labels.CASE, ""),
        created=_created(metadata),
        started=parse_time(status.get("startTime")),
        suspended=suspend or is_noted,
        ended="Complete" in conditions or "Failed" in conditions,
        failure=_sentence(conditions.get("Failed")),
        queue=(metadata.get("labels") or {}).get(labels.QUEUE, ""),
        held=changed if is_noted else _created(metadata) if suspend and not changed else None,
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
        owner=_run_uid(metadata),
        case=(metadata.get("labels") or {}).get(labels.CASE, ""),
        job=controller_of(body).get("name", ""),
        created=_created(metadata),
        phase=status.get("phase", "Pending"),
        accepted=parse_time(status.get("startTime")),
        running=_start(running.get("startedAt") or ended.get("startedAt")),
        deleted=parse_time(metadata.get("deletionTimestamp")),
        ended=parse_time(ended.get("finishedAt")),
        exit_code=ended.get("exitCode"),
        reason=ended.get("reason", ""),
        message=ended.get("message", ""),
        disruption=_sentence(disruption) if disruption.get("status") == "True" else "",
        pod_reason=status.get("reason", ""),
        pod_message=status.get("message", ""),
        node=(body.get("spec") or {}).get("nodeName") or "",
        image=_image(body),
        waiting=_sentence(waiting),
        disowned="deletionTimestamp" in metadata and TRACKED not in (metadata.get("finalizers") or ()),
    )


def observe_result(body: Manifest) -> Summary | None:
    """Return the headline of a BenchmarkResult; None if it belongs to no run. Raise ValueError if it cannot be read.

    Its label names the run, because a result can outlive its owner. Its name has to match: names cannot be changed.
    """
    key, run_uid = Key.of(RESULT.name, body), _run_uid(body["metadata"])
    if not run_uid:
        return None
    result = Result.model_validate(body["result"], extra="ignore")
    if key.name != result_name(result.case.origin.run, run_uid, result.case.name):
        return None
    judged = body.get("expectations") or ()
    not_met = tuple(entry.get("message", "") for entry in judged if entry.get("outcome") != "met")
    node = (body.get("summary") or {}).get("node") or ""
    return summarize(result, key, run_uid, not_met, created=_created(body["metadata"]), node=node)


def summarize(
    result: Result,
    key: Key,
    run_uid: str,
    not_met: tuple[str, ...] = (),
    created: datetime | None = None,
    node: str = "",
) -> Summary:
    """Return the headline of a result that is stored under `key`, since `created`."""
    result = redact_invalid(result)
    case = result.case
    short = {variant.name for variant in result.failed_variants}
    return Summary(
        namespace=key.namespace,
        name=key.name,
        uid=key.uid,
        run=case.origin.run,
        run_uid=run_uid,
        series=case.origin.series,
        case=case.name,
        workload=case.workload,
        accelerator=case.accelerator.label,
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
                lower=_number(variant.spread.lower_seconds) if variant.spread else None,
                upper=_number(variant.spread.upper_seconds) if variant.spread else None,
                phase_seconds={phase.phase: float(phase.median_seconds) for phase in variant.phases},
                numbers={
                    field: value
                    for field, number in MEASURED.items()
                    if number.metric and (value := variant.numbers.value(field)) is not None
                },
                failure=variant.failure.reason if variant.failure and variant.name in short else None,
                not_compiled=variant.failure.reason if variant.failure and variant.name not in short else None,
            )
            for variant in result.variants
        ),
        comparisons=result.comparisons,
        observations=(
            *(observation.headline for observation in result.observations),
            *(compiled.headline for compiled in result.compiled),
        ),
        failed_checks=_failed_checks(result),
        checks_not_passed=_checks_not_passed(result),
        node=on_one_line(node),
        source=result.fingerprint.get("workloadSource", "")[:MAXIMUM_SOURCE],
        shortcoming="" if result.complete else next(iter(result.notes[-1:]), ""),
        not_met=not_met,
        margin=float(case.measurement.equivalence_margin),
        created_timestamp=created.timestamp() if created else 0.0,
    )


def _checks_not_passed(result: Result) -> tuple[tuple[str, str, int], ...]:
    checks = Counter((check.name, check.outcome) for check in result.certificate.checks if check.outcome != "passed")
    return tuple((*check, count) for check, count in sorted(checks.items())[:MAXIMUM_CHECKS])


def _failed_checks(result: Result) -> tuple[str, ...]:
    failed = [check.name for check in result.certificate.checks if check.outcome == "failed"]
    kept = list(dict.fromkeys(failed))[:MAXIMUM_CHECKS]
    return tuple(name for name in failed if name in kept)


def owned_by(body: Manifest, run_uid: str) -> bool:
    """Return True if that run controls the object: a name alone proves nothing."""
    return bool(controller_of(body).get("uid") == run_uid)


def _run_uid(metadata: Manifest) -> str:
    return str((metadata.get("labels") or {}).get(labels.RUN_UID, ""))


class EventSummary(NamedTuple):
    """Summarize an Event; of two about one object the greater counts: the newer, and within a second the warning."""

    at: datetime
    is_warning: bool
    message: str


def summarize_event(event: Manifest) -> EventSummary:
    """Return time, severity and message of an Event."""
    return EventSummary(_event_time(event), event.get("type") == "Warning", _sentence(event))


def _event_time(event: Manifest) -> datetime:
    return datetime.fromisoformat(
        event.get("lastTimestamp") or event.get("eventTime") or event["metadata"]["creationTimestamp"]
    )


def _container_state(status: Manifest) -> Manifest:
    return _runner(status.get("containerStatuses")).get("state") or {}


def _image(body: Manifest) -> str:
    reported = _runner((body.get("status") or {}).get("containerStatuses"))
    asked = _runner((body.get("spec") or {}).get("containers"))
    return reported.get("imageID") or reported.get("image") or asked.get("image") or ""


def _runner(containers: Iterable[Manifest] | None) -> Manifest:
    return next((container for container in containers or () if container.get("name") == CONTAINER), {})


def _created(metadata: Manifest) -> datetime:
    return datetime.fromisoformat(metadata["creationTimestamp"])


def _sentence(part: Manifest | None) -> str:
    if not part or not part.get("reason"):
        return ""
    message = part.get("message", "")
    return f"{part['reason']}: {message}" if message else part["reason"]


def _number(text: str | None) -> float | None:
    return None if text is None else float(text)
