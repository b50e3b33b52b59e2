"""Explain what delays the deletion of a run. This operator sets no finalizers, so it never delays one itself."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Self

from accelbench_operator.engine.kinds import Manifest
from accelbench_operator.runs.attempts import Observed
from accelbench_operator.runs.observed import explain_still_running

GARBAGE_COLLECTOR_FINALIZERS = frozenset({"foregroundDeletion", "orphan"})
"""Finalizers that Kubernetes' garbage collector sets and removes."""
USUAL_TIME = timedelta(minutes=1)
"""Time after which a deletion counts as delayed: twice the grace period that a pod has by default."""
LONGEST_PAUSE = timedelta(minutes=30)
"""Maximum time between two checks of a deletion; the Events of the checks before last for an hour."""
MAXIMUM_HOLDERS = 3
"""Maximum number of objects that a message names."""


@dataclass(frozen=True)
class Deletion:
    """Describe a run that is being deleted."""

    since: datetime
    finalizers: tuple[str, ...]

    @classmethod
    def of(cls, run: Manifest) -> Self:
        """Return the deletion of a run that has a `deletionTimestamp`."""
        metadata = run["metadata"]
        since = datetime.fromisoformat(metadata["deletionTimestamp"])
        return cls(since, tuple(metadata.get("finalizers") or ()))

    def next_check(self, now: datetime) -> timedelta:
        """Return the time until the next check of what delays the deletion; it grows with the time that has passed."""
        passed = now - self.since
        # The first check is due when the usual time has passed; later, each pause doubles the time that has passed.
        pause = max(USUAL_TIME - passed, passed, timedelta(seconds=1))
        return min(pause, LONGEST_PAUSE)

    def explain(self, observed: Observed, refusals: Mapping[str, str], now: datetime) -> str:
        """Return what delays the deletion, and what to do; empty if nothing does, or not for long yet.

        `refusals` has, by the Job's name, the API server's message if it does not let the operator delete the Job. A
        refusal is reported at once, because waiting does not help.
        """
        holders = tuple(self._holders(observed, refusals))
        is_recent = now - self.since < USUAL_TIME
        if not holders or (is_recent and not refusals):
            return ""
        named = "; ".join(holders[:MAXIMUM_HOLDERS])
        more = f"; and {len(holders) - MAXIMUM_HOLDERS} more" if len(holders) > MAXIMUM_HOLDERS else ""
        return f"The deletion of this run waits for: {named}{more}"

    def _holders(self, observed: Observed, refusals: Mapping[str, str]) -> Iterator[str]:
        """Yield each object or finalizer that delays the deletion, with what to do."""
        for finalizer in self.finalizers:
            if finalizer not in GARBAGE_COLLECTOR_FINALIZERS:
                yield f"finalizer {finalizer}, which another program has set: have that program remove it"
        for pods in observed.pods.values():
            for pod in pods:
                if pod.is_over:
                    continue
                location = f" on node {pod.node}" if pod.node else ""
                still_running = f", where {explain_still_running(pod)}" if pod.still_running else ""
                yield (
                    f"pod {pod.key.name}{location}, which has not ended{still_running}: check that the node is Ready; "
                    "if it is gone for good, kubectl delete pod --force"
                )
        for name in observed.jobs:
            if name in refusals:
                yield (
                    f"Job {name}, which the operator cannot delete: {refusals[name].rstrip('. ')}. Have the operator's "
                    "role or that admission policy corrected, or delete the Job yourself"
                )
            else:
                yield f"Job {name}, which still exists: kubectl get job {name} -o yaml shows its finalizers"
