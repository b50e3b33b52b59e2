"""Choose which Job to delete when a quota of Jobs or pods is full: one that is kept only for its log."""

import re
from collections.abc import Collection, Iterable

from accelbench.api.run import Attempt
from accelbench_operator.runs.observed import ObservedJob

QUOTA_OF_OBJECTS = re.compile(r"exceeded quota: .*\bcount/(jobs\.batch|pods)=")
"""Messages of API servers about a quota that counts Jobs or pods, including those that have ended."""


def is_quota_of_objects(message: str) -> bool:
    """Return True if a quota of Jobs or pods is full, so that deleting a Job that has ended makes room."""
    return QUOTA_OF_OBJECTS.search(message) is not None


def oldest_kept_job(
    ended_jobs: Iterable[ObservedJob], run_uid: str, attempts: Iterable[Attempt], finished_runs: Collection[str]
) -> ObservedJob | None:
    """Return the Job that ended first, of the Jobs that no run needs; None if there is none.

    Args:
        ended_jobs: Jobs of one namespace that have ended.
        run_uid: The UID of an unfinished run.
        attempts: The attempts of that run. The Jobs of attempts in flight are needed: their results are being read.
        finished_runs: The UIDs of runs that have finished, which need no Jobs.
    """
    needed = {attempt.job for attempt in attempts if attempt.job and not attempt.finished}
    unneeded = []
    for job in ended_jobs:
        is_unneeded_by_run = job.owner == run_uid and job.key.name not in needed
        if job.owner in finished_runs or is_unneeded_by_run:
            unneeded.append(job)
    return min(unneeded, key=lambda job: (job.ended_at or job.created_at, job.key.name), default=None)
