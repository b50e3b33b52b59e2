"""Choose which Job to delete when a quota of Jobs or pods is full: one that is kept only for its log."""

import re
from collections.abc import Collection, Iterable

from accelbench.api.run import Attempt
from accelbench_operator.runs.observed import ObservedJob

QUOTA_OF_OBJECTS = re.compile(r"exceeded quota: .*\bcount/(jobs\.batch|pods)=")
"""Messages of API servers about a quota in which each Job and each pod counts, also one that has ended."""


def is_quota_of_objects(message: str) -> bool:
    """Return True if a quota of Jobs or pods is full, so that deleting one that has ended makes room."""
    return QUOTA_OF_OBJECTS.search(message) is not None


def oldest_kept_job(
    ended_jobs: Iterable[ObservedJob], run_uid: str, attempts: Iterable[Attempt], finished_runs: Collection[str]
) -> ObservedJob | None:
    """Return the Job that ended first among those that no run needs; None if there is none.

    Args:
        ended_jobs: Jobs of one namespace that have ended.
        run_uid: The UID of an unfinished run.
        attempts: The attempts of that run. It needs the Jobs of those in flight: their results are being read.
        finished_runs: The UIDs of runs that have finished, which need no Jobs.
    """
    needed = {attempt.job for attempt in attempts if attempt.job and not attempt.finished}
    kept = [
        job for job in ended_jobs if job.owner in finished_runs or (job.owner == run_uid and job.key.name not in needed)
    ]
    return min(kept, key=lambda job: (job.ended_at or job.created_at, job.key.name), default=None)
