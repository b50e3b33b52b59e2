"""Remember runs between steps, so that a run is not read from the API server at every step of its life.

The answer to a read or a write of this operator was the latest version at that time: it is confirmed. An event of a
watch may be older. A status is written on top of either, because the API server refuses it if the resource version is
not the latest; nothing else is done on the strength of an event.
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
"""Maximum number of own versions to remember for each run; their events may still come."""


class UnreadableStatusError(RetryError):
    """Report a status that this operator cannot read; the message has a remedy."""


@dataclass
class KnownRun:
    """Hold one run as a plan and a status."""

    version: str
    generation: int
    plan: Plan | Refused
    written: BenchmarkRunStatus
    """The status that the API server has."""
    status: BenchmarkRunStatus
    """The status as decided; progress that can wait is not written yet."""
    foreign: Manifest
    """Status fields that this operator does not know, for example those of a newer release."""
    confirmed: bool
    """True if this operator has read or written this version; False if only a watch has reported it."""
    unwritten_since: datetime | None = None
    """Time since which `status` has progress that is not written; None without any."""


class KnownRuns:
    """Hold runs by UID, and the versions that this operator read or wrote itself."""

    def __init__(self) -> None:
        self._runs: dict[str, KnownRun] = {}
        self._events: dict[str, Manifest] = {}
        self._versions: dict[str, list[str]] = {}

    def on_event(self, uid: str, manifest: Manifest) -> bool:
        """Note an event of the watch; return False if this operator knows that version already."""
        version = manifest["metadata"]["resourceVersion"]
        versions = self._versions.get(uid, [])
        if version in versions:
            # A watch reports versions in order, so no older one will follow.
            del versions[: versions.index(version)]
            return False
        self._events[uid] = manifest
        return True

    def take_event(self, uid: str) -> Manifest | None:
        """Return the latest event since the last call; None without any, or if its version is known by now."""
        event = self._events.pop(uid, None)
        if event is None or event["metadata"]["resourceVersion"] in self._versions.get(uid, []):
            return None
        return event

    def get(self, uid: str) -> KnownRun | None:
        """Return a run; None if it has to be read from the API server or an event."""
        return self._runs.get(uid)

    def keep(self, uid: str, run: KnownRun) -> None:
        """Hold a run, and its version if it is confirmed."""
        self._runs[uid] = run
        if run.confirmed:
            versions = self._versions.setdefault(uid, [])
            if run.version not in versions:
                versions.append(run.version)
                del versions[:-REMEMBERED_VERSIONS]

    def drop(self, uid: str) -> None:
        """Drop the run, so that the next step reads it again; its own versions stay."""
        self._runs.pop(uid, None)

    def forget(self, uid: str) -> None:
        """Drop all that is known of a run that is deleted or idle."""
        for entries in (self._runs, self._events, self._versions):
            entries.pop(uid, None)

    def forget_all(self) -> None:
        """Drop runs and versions, because another replica may have written since; events stay."""
        for entries in (self._runs, self._versions):
            entries.clear()


def read_status(run: Manifest) -> BenchmarkRunStatus:
    """Return the recorded status without fields that a newer operator may have added; raise UnreadableStatusError.

    A status that cannot be read does not count as empty: a finished run would begin again.
    """
    try:
        status = BenchmarkRunStatus.model_validate(run.get("status") or {}, extra="ignore")
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in problem["loc"])
        raise UnreadableStatusError(
            f"status.{where}: {problem['msg']}; this operator leaves the run alone: install the release that "
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
    """Return the status fields that are not this operator's; they are written back unchanged."""
    own = {field.alias for field in BenchmarkRunStatus.model_fields.values()}
    return {name: value for name, value in (run.get("status") or {}).items() if name not in own}


def is_idle(run: Manifest) -> bool:
    """Return True if the run has finished, its generation was seen, and it has no time to live."""
    status = run.get("status") or {}
    conditions = status.get("conditions")
    is_finished = isinstance(conditions, list) and any(
        condition.get("type") == "Finished" and condition.get("status") == "True" for condition in conditions
    )
    is_observed = status.get("observedGeneration") == run["metadata"]["generation"]
    return is_finished and is_observed and (run["spec"].get("runPolicy") or {}).get("ttlSecondsAfterFinished") is None
