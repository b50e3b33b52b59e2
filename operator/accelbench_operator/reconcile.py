"""One run, once: read it live, decide, write the status, then act. What it learned makes the run due again at once."""

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from pydantic import ValidationError

from accelbench.api.profiles import Profiles
from accelbench.api.run import BenchmarkRunStatus
from accelbench_operator.accept import Plan, Refused, accept
from accelbench_operator.apply import Applier, ForeignObjectError
from accelbench_operator.cluster import Cluster
from accelbench_operator.decide import Decision, DeleteJob, decide
from accelbench_operator.events import event_manifest, transitions
from accelbench_operator.kubernetes_api import ApiError, ConflictError, Manifest
from accelbench_operator.store import Store


class RunKey(NamedTuple):
    """Which run: a new one of the same name is another."""

    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        """As logs show it."""
        return f"BenchmarkRun {self.namespace}/{self.name}"


class Reconciler:
    """Brings runs forward. Call it with a key; it returns after how many seconds to look again, or None."""

    def __init__(
        self,
        cluster: Cluster,
        store: Store,
        applier: Applier,
        profiles: Profiles,
        clock: Callable[[], datetime],
        leading: Callable[[], bool],
    ) -> None:
        self._cluster = cluster
        self._store = store
        self._applier = applier
        self._profiles = profiles
        self._clock = clock
        self._leading = leading
        self._plans: dict[str, tuple[int, Plan | Refused]] = {}
        self.phases: dict[RunKey, str] = {}
        """The phase of every run that is known."""

    async def __call__(self, key: RunKey) -> float | None:
        """One step of one run."""
        run = await self._cluster.get_run(key.namespace, key.name)
        if run is None or run["metadata"]["uid"] != key.uid or run["metadata"].get("deletionTimestamp"):
            # Its owner references have the cluster delete what belongs to it.
            self._forget(key)
            return None
        if not self._leading():
            return None
        before = read_status(run)
        plan = self._plan(run)
        observed = self._store.observed(key.uid, self._applier.losses.get(key.uid, {}))
        decision = decide(plan, before, observed, self._clock(), run["metadata"]["generation"])
        self.phases[key] = decision.status.phase
        if decision.status != before:
            try:
                await self._write(run, before, decision.status)
            except ConflictError:
                return 0.0
        errors = []
        for action in decision.actions:
            try:
                if isinstance(action, DeleteJob):
                    await self._applier.delete_job(action, key.namespace)
                elif isinstance(plan, Plan):
                    await self._applier.apply(action, plan, observed)
            except (ApiError, ForeignObjectError) as error:
                # One case's trouble must not hold up the others.
                errors.append(error)
        if errors:
            raise errors[0]
        return self._again(decision)

    def _again(self, decision: Decision) -> float | None:
        if any(not isinstance(action, DeleteJob) for action in decision.actions):
            return 0.0
        if decision.requeue_at is None:
            return None
        return max(0.0, (decision.requeue_at - self._clock()).total_seconds())

    async def _write(self, run: Manifest, before: BenchmarkRunStatus, after: BenchmarkRunStatus) -> None:
        status = after.model_dump(mode="json", by_alias=True, exclude_none=True)
        await self._cluster.put_run_status({**run, "status": status})
        metadata = run["metadata"]
        for transition in transitions(before, after):
            event = event_manifest(transition, metadata["namespace"], metadata["name"], metadata["uid"], self._clock())
            try:
                await self._cluster.create_event(event)
            except ApiError:
                # Told already, or not to be told: an event is for people who watch, nothing rests on it.
                continue

    def _plan(self, run: Manifest) -> Plan | Refused:
        """The plan of this generation of the run: planning 256 cases at every event would be felt."""
        uid, generation = run["metadata"]["uid"], run["metadata"]["generation"]
        known = self._plans.get(uid)
        if known is None or known[0] != generation:
            known = self._plans[uid] = (generation, accept(run, self._profiles))
        return known[1]

    def _forget(self, key: RunKey) -> None:
        self._plans.pop(key.uid, None)
        self._applier.losses.pop(key.uid, None)
        self.phases.pop(key, None)


def read_status(run: Manifest) -> BenchmarkRunStatus:
    """The status as recorded; one that cannot be read counts as none: what is in the cluster says the rest."""
    try:
        return BenchmarkRunStatus.model_validate(run.get("status") or {})
    except ValidationError:
        return BenchmarkRunStatus()
