"""Remember runs between steps, so that not every step has to read its run from the API server.

A version of a run is confirmed if this operator has read or written it itself: it was the latest at that time. The
version in a watch event may be outdated. The operator may write a status on top of such a version, because the API
server refuses the write if the version is not the latest. Other actions need a confirmed version.

Users decide how many runs there are and how large each is, so the memory for runs and the memory for events are
limited. Above a limit, the least recently used entries are dropped, and read again when they are needed.
"""

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from pydantic import ValidationError
from pydantic_core import from_json, to_json

from accelbench.api import labels
from accelbench.api.run import BenchmarkRunStatus
from accelbench.plan.names import attempt_name
from accelbench_operator.engine.kinds import Manifest
from accelbench_operator.engine.queue import RetryError
from accelbench_operator.runs.accept import FinishedRun, Plan, Refused

REMEMBERED_VERSIONS = 32
"""Maximum number of confirmed versions to remember for each run; their events may still arrive."""
MAXIMUM_RUN_BYTES = 24 * 1024 * 1024
"""Memory for all remembered runs: some three thousand ordinary ones."""
MAXIMUM_EVENT_BYTES = 4 * 1024 * 1024
"""Memory for the events that no step has taken yet."""
RUN_BYTES, NAME_BYTES, ATTEMPT_BYTES = 6 * 1024, 128, 2 * 1024
"""Rough memory of a remembered run without its manifest, of a case's name, and of an attempt."""

NEEDED_METADATA = ("name", "namespace", "uid", "generation", "resourceVersion", "deletionTimestamp")

Value = TypeVar("Value")


class UnreadableStatusError(RetryError):
    """Report a status that this operator cannot read; the message has a remedy."""


@dataclass
class KnownRun:
    """Hold one run as a plan and a status."""

    version: str
    generation: int
    plan: Plan | Refused | FinishedRun
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

    @property
    def bytes(self) -> int:
        """Estimate how many bytes of memory this run takes."""
        size = RUN_BYTES + len(self.status.attempts) * ATTEMPT_BYTES
        size += sum(len(condition.message) for condition in self.status.conditions)
        if isinstance(self.plan, Plan):
            size += len(self.plan.manifest) + len(self.plan.names) * NAME_BYTES
        return size


class LruCache(Generic[Value]):
    """Hold values by UID up to a total size; above it, drop the least recently used values."""

    def __init__(self, maximum_bytes: int) -> None:
        self._maximum_bytes = maximum_bytes
        self._values: OrderedDict[str, tuple[Value, int]] = OrderedDict()
        self.bytes = 0
        """Size of all values."""

    def __len__(self) -> int:
        """Return the number of values."""
        return len(self._values)

    def put(self, uid: str, value: Value, size: int) -> list[str]:
        """Store a value of `size` bytes; above the maximum, drop the least recently used values. Return their UIDs."""
        self.pop(uid)
        self._values[uid] = value, size
        self.bytes += size
        dropped_uids = []
        while self.bytes > self._maximum_bytes:
            oldest_uid, (_, oldest_size) = self._values.popitem(last=False)
            self.bytes -= oldest_size
            dropped_uids.append(oldest_uid)
        return dropped_uids

    def get(self, uid: str) -> Value | None:
        """Return the value of `uid`, and mark it as the most recently used; None if there is none."""
        if uid not in self._values:
            return None
        self._values.move_to_end(uid)
        return self._values[uid][0]

    def pop(self, uid: str) -> Value | None:
        """Remove and return the value of `uid`; None if there is none."""
        value, size = self._values.pop(uid, (None, 0))
        self.bytes -= size
        return value

    def clear(self) -> None:
        """Remove all values."""
        self._values.clear()
        self.bytes = 0


class KnownRuns:
    """Hold runs, their latest watch events and their confirmed resource versions, by the run's UID."""

    def __init__(self) -> None:
        self._runs: LruCache[KnownRun] = LruCache(MAXIMUM_RUN_BYTES)
        self._events: LruCache[bytes] = LruCache(MAXIMUM_EVENT_BYTES)
        """The latest watch event of each run, as JSON, until a step of the run takes it."""
        self._versions: dict[str, list[str]] = {}
        """The latest resource versions of each run that this process has read or written itself, oldest first."""

    def on_event(self, uid: str, manifest: Manifest) -> bool:
        """Keep a watch event and return True, unless this process has read or written that version itself."""
        version = manifest["metadata"]["resourceVersion"]
        confirmed_versions = self._versions.get(uid, [])
        if version in confirmed_versions:
            # A watch reports versions in order, so no event of an older version will follow.
            del confirmed_versions[: confirmed_versions.index(version)]
            return False
        event = to_json(needed_fields(manifest))
        for dropped_uid in self._events.put(uid, event, len(event)):
            # Without its event, a remembered run would seem to be up to date; without both, the next step reads it.
            self._runs.pop(dropped_uid)
        return True

    def take_event(self, uid: str) -> Manifest | None:
        """Remove and return the run's latest watch event.

        Returns None if there is no event, or if this process has already read or written that version itself.
        """
        text = self._events.pop(uid)
        if text is None:
            return None
        event: Manifest = from_json(text)
        is_confirmed = event["metadata"]["resourceVersion"] in self._versions.get(uid, [])
        return None if is_confirmed else event

    def get(self, uid: str) -> KnownRun | None:
        """Return the remembered run; None if there is none."""
        return self._runs.get(uid)

    def keep(self, uid: str, run: KnownRun) -> None:
        """Remember a run, and also its resource version if that comes from a request instead of a watch."""
        self._runs.put(uid, run, run.bytes)
        if run.is_confirmed:
            versions = self._versions.setdefault(uid, [])
            if run.version not in versions:
                versions.append(run.version)
                del versions[:-REMEMBERED_VERSIONS]

    def drop(self, uid: str) -> None:
        """Drop a run, so that its next step reads it from the API server again."""
        self._runs.pop(uid)

    def forget(self, uid: str) -> None:
        """Drop everything about a run that is deleted or needs no further step."""
        self._runs.pop(uid)
        self._events.pop(uid)
        self._versions.pop(uid, None)

    def forget_all(self) -> None:
        """Drop all runs and versions when this replica becomes the leader: another replica may have changed them."""
        self._runs.clear()
        self._versions.clear()


def read_status(run: Manifest) -> BenchmarkRunStatus:
    """Return the run's status, without fields that this release does not define.

    Raise UnreadableStatusError if the status is invalid: with an empty one in its place, a finished run would start
    again.
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


def needed_fields(run: Manifest) -> Manifest:
    """Return a run with only the metadata that a step needs, because annotations and labels can take much memory."""
    metadata = run["metadata"]
    needed = {name: metadata[name] for name in NEEDED_METADATA if name in metadata}
    run_labels = metadata.get("labels") or {}
    needed["labels"] = {name: run_labels[name] for name in labels.PASSED_ON if name in run_labels}
    return {**run, "metadata": needed}


def has_finished(run: Manifest) -> bool:
    """Return True if the run has finished and its latest generation was observed."""
    status = run.get("status") or {}
    conditions = status.get("conditions")
    # The status is not validated here, so it may be damaged.
    is_finished = isinstance(conditions, list) and any(
        condition.get("type") == "Finished" and condition.get("status") == "True" for condition in conditions
    )
    return is_finished and status.get("observedGeneration") == run["metadata"]["generation"]


def is_idle(run: Manifest) -> bool:
    """Return True if the run has finished, its latest generation was observed, and no time to live will delete it."""
    policy = run["spec"].get("runPolicy") or {}
    return has_finished(run) and policy.get("ttlSecondsAfterFinished") is None
