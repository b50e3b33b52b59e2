"""Runs as this operator knows them, so that a run is not asked for at every step of its life.

What the API server answered to a read or a write of ours is certain: that version was the latest then. What a watch
tells may be older than that, so it is only believed. A status is written on top of either, as a resource version tells
whether it was the latest; nothing else is done on the strength of what is only believed.
"""

from dataclasses import dataclass
from datetime import datetime

from pydantic import ValidationError

from accelbench.api.run import BenchmarkRunStatus
from accelbench.plan.names import attempt_name
from accelbench_operator.engine.kinds import Manifest
from accelbench_operator.engine.queue import RetryError
from accelbench_operator.runs.accept import Plan, Refused

REMEMBERED = 32
"""Versions of a run whose news may still be on its way."""


class UnreadableStatusError(RetryError):
    """A run's status is none that this operator knows; the message says what to do."""


@dataclass
class KnownRun:
    """One run: what is wanted, as a plan, and what its status is."""

    version: str
    generation: int
    plan: Plan | Refused
    written: BenchmarkRunStatus
    """Its status as the API server has it."""
    status: BenchmarkRunStatus
    """Its status as it is to be: it may tell more than was written, where that can wait."""
    foreign: Manifest
    """What others, or a newer operator, have put into its status."""
    certain: bool
    """Whether this version was read or written here."""
    untold_since: datetime | None = None
    """Since when the status tells more than was written."""


class KnownRuns:
    """What is known by UID, and which versions are no news."""

    def __init__(self) -> None:
        self._runs: dict[str, KnownRun] = {}
        self._heard: dict[str, Manifest] = {}
        self._versions: dict[str, list[str]] = {}

    def hear(self, uid: str, manifest: Manifest) -> bool:
        """A watch tells of a run; returns whether that is news."""
        version = manifest["metadata"]["resourceVersion"]
        versions = self._versions.get(uid, [])
        if version in versions:
            # What is older has been told of, or never will be: a watch keeps the order.
            del versions[: versions.index(version)]
            return False
        self._heard[uid] = manifest
        return True

    def take_heard(self, uid: str) -> Manifest | None:
        """What a watch told since it was last asked, less what is known meanwhile."""
        heard = self._heard.pop(uid, None)
        known = heard is None or heard["metadata"]["resourceVersion"] in self._versions.get(uid, [])
        return None if known else heard

    def get(self, uid: str) -> KnownRun | None:
        """What is known of a run."""
        return self._runs.get(uid)

    def keep(self, uid: str, run: KnownRun) -> None:
        """It is known so from now on."""
        self._runs[uid] = run
        if run.certain:
            versions = self._versions.setdefault(uid, [])
            if run.version not in versions:
                versions.append(run.version)
                del versions[:-REMEMBERED]

    def drop(self, uid: str) -> None:
        """It has to be asked for; which versions are no news stays known."""
        self._runs.pop(uid, None)

    def forget(self, uid: str) -> None:
        """The run is gone, or at rest."""
        for part in (self._runs, self._heard, self._versions):
            part.pop(uid, None)

    def forget_all(self) -> None:
        """Another replica may have written since; what a watch told is as good as ever."""
        for part in (self._runs, self._versions):
            part.clear()


def read_status(run: Manifest) -> BenchmarkRunStatus:
    """The status as recorded, less what a newer operator may have added; raises UnreadableStatusError.

    What cannot be read is not taken for empty: a run that has finished would begin again.
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
    """What of its status is none of ours: it is written back as it was."""
    ours = {field.alias for field in BenchmarkRunStatus.model_fields.values()}
    return {name: value for name, value in (run.get("status") or {}).items() if name not in ours}


def is_at_rest(run: Manifest) -> bool:
    """Whether it has finished, was seen to have done so, and does not go by itself."""
    status = run.get("status") or {}
    finished = any(each.get("type") == "Finished" and each.get("status") == "True" for each in _conditions(status))
    seen = status.get("observedGeneration") == run["metadata"]["generation"]
    return finished and seen and (run["spec"].get("runPolicy") or {}).get("ttlSecondsAfterFinished") is None


def _conditions(status: Manifest) -> list[Manifest]:
    conditions = status.get("conditions")
    return conditions if isinstance(conditions, list) else []
