"""Remember runs between steps, so that not every step has to read its run from the API server.

A version that this operator has read or written itself is confirmed: it was the latest at that time. The version of a
watch event may be outdated. A status may be written on top of it, because the API server refuses a version that is not
the latest. Other actions need a confirmed version.
"""

from dataclasses import dataclass
from datetime import datetime

from pydantic import ValidationError

from accelbench.api.run import BenchmarkRunStatus
from accelbench.plan.names import attempt_name
from accelbench_operator.engine.kinds import Manifest
from accelbench_operator.engine.queue import RetryError
from accelbench_operator.runs.accept import Plan, Refused

REMEMBERED_VERSIONS = 32
"""Maximum number of confirmed versions to remember for each run; their events may still arrive."""


class UnreadableStatusError(RetryError):
    """Report a status that this operator cannot read; the message has a remedy."""


@dataclass
class KnownRun:
    """Hold one run as a plan and a status."""

    version: str
    generation: int
    plan: Plan | Refused
    written_status: BenchmarkRunStatus
    """The status that the API server has."""
    status: BenchmarkRunStatus
    """The status as decided. It may have progress that is not written yet."""
    foreign_fields: Manifest
    """Fields of the status that this release does not define; a newer release may."""
    is_confirmed: bool
    """True if this operator has read or written this version; False if only a watch has reported it."""
    unwritten_since: datetime | None = None
    """Time since which `status` has progress that is not written; None if all is written."""


class KnownRuns:
    """Hold runs, their latest events and their confirmed versions, by UID."""

    def __init__(self) -> None:
        self._runs: dict[str, KnownRun] = {}
        self._events: dict[str, Manifest] = {}
        """The latest event of each run that no step has taken yet."""
        self._versions: dict[str, list[str]] = {}
        """The latest confirmed resource versions of each run, oldest first."""

    def on_event(self, uid: str, manifest: Manifest) -> bool:
        """Keep the event if its version is new; return True if it was kept."""
        version = manifest["metadata"]["resourceVersion"]
        confirmed_versions = self._versions.get(uid, [])
        if version in confirmed_versions:
            # A watch reports versions in order, so no event of an older version will follow.
            del confirmed_versions[: confirmed_versions.index(version)]
            return False
        self._events[uid] = manifest
        return True

    def take_event(self, uid: str) -> Manifest | None:
        """Remove and return the run's latest event, if its version is still new."""
        event = self._events.pop(uid, None)
        if event is None or event["metadata"]["resourceVersion"] in self._versions.get(uid, []):
            return None
        return event

    def get(self, uid: str) -> KnownRun | None:
        """Return the remembered run, if there is one."""
        return self._runs.get(uid)

    def keep(self, uid: str, run: KnownRun) -> None:
        """Remember a run, and its version if that is confirmed."""
        self._runs[uid] = run
        if run.is_confirmed:
            versions = self._versions.setdefault(uid, [])
            if run.version not in versions:
                versions.append(run.version)
                del versions[:-REMEMBERED_VERSIONS]

    def drop(self, uid: str) -> None:
        """Drop a run, so that the next step reads it again."""
        self._runs.pop(uid, None)

    def forget(self, uid: str) -> None:
        """Drop everything about a run that is deleted or idle."""
        self._runs.pop(uid, None)
        self._events.pop(uid, None)
        self._versions.pop(uid, None)

    def forget_all(self) -> None:
        """Drop all runs and versions when this replica starts to lead: another may have changed the runs."""
        self._runs.clear()
        self._versions.clear()


def read_status(run: Manifest) -> BenchmarkRunStatus:
    """Return the run's status, without fields that this release does not define.

    Raise UnreadableStatusError if the status is invalid, so that no finished run starts again.
    """
    try:
        status = BenchmarkRunStatus.model_validate(run.get("status") or {}, extra="ignore")
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        field_path = ".".join(str(step) for step in problem["loc"])
        raise UnreadableStatusError(
            f"status.{field_path}: {problem['msg']}; this operator leaves the run alone: install the release that "
            "wrote it, or delete the run and apply it again"
        ) from error
    name, uid = run["metadata"]["name"], run["metadata"]["uid"]
    for attempt in status.attempts:
        if attempt.job and attempt.job != attempt_name(name, uid, attempt.case, attempt.number):
            raise UnreadableStatusError(
                f"status.attempts: {attempt.job} is not the Job of attempt {attempt.number} at {attempt.case}, so "
                "somebody has changed it; this operator leaves the run alone: delete the run and apply it again"
            )
    return status


def foreign_fields(run: Manifest) -> Manifest:
    """Return the fields of the run's status that this release does not define."""
    defined_names = {field.alias for field in BenchmarkRunStatus.model_fields.values()}
    return {name: value for name, value in (run.get("status") or {}).items() if name not in defined_names}


def is_idle(run: Manifest) -> bool:
    """Return True if the run's status shows that nothing is left to do."""
    status = run.get("status") or {}
    conditions = status.get("conditions")
    is_finished = isinstance(conditions, list) and any(
        condition.get("type") == "Finished" and condition.get("status") == "True" for condition in conditions
    )
    is_observed = status.get("observedGeneration") == run["metadata"]["generation"]
    policy = run["spec"].get("runPolicy") or {}
    has_ttl = policy.get("ttlSecondsAfterFinished") is not None
    return is_finished and is_observed and not has_ttl
