"""One run, once: read it live, decide, write the status, then act. What it learned makes the run due again at once."""

import contextlib
import logging
from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple

from pydantic import ValidationError

from accelbench.api.reasons import ConditionReason
from accelbench.api.run import DEFAULT_CLASS, BenchmarkRunStatus, UsedRunner
from accelbench.problem import Problem
from accelbench_operator.accept import Plan, Refused, accept
from accelbench_operator.apply import Applier
from accelbench_operator.attempts import Observed
from accelbench_operator.cluster import Cluster
from accelbench_operator.decide import Decision, DeleteJob, DeleteRun, decide
from accelbench_operator.events import Transition, event_manifest, transitions
from accelbench_operator.kubernetes_api import ApiError, ConflictError, InvalidError, Manifest, TooLargeError
from accelbench_operator.settings import Settings
from accelbench_operator.status import finished_at, shortened
from accelbench_operator.store import Store

logger = logging.getLogger(__name__)

UNFINISHED = {ConditionReason.QUEUED, ConditionReason.RUNNING, ConditionReason.SUSPENDED}


class UnreadableStatusError(Exception):
    """A run's status is none that this operator knows; the message says what to do."""


class RunKey(NamedTuple):
    """Which run: a new one of the same name is another."""

    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        """As logs show it."""
        return f"BenchmarkRun {self.namespace}/{self.name}"


class Reconciler:
    """Brings runs forward. Call it with a key; it returns after how many seconds to look again, or None.

    It is called where this replica leads; what it writes is fenced all the same (`KubernetesCluster`).
    """

    def __init__(
        self,
        cluster: Cluster,
        store: Store,
        applier: Applier,
        settings: Settings,
        clock: Callable[[], datetime],
        acted: Callable[[RunKey], None] = lambda _: None,
    ) -> None:
        """`acted` is told of each step that was taken: a run of many cases can take minutes."""
        self._cluster = cluster
        self.store = store
        """What the cluster holds, as far as this operator has heard."""
        self._applier = applier
        self._settings = settings
        self._clock = clock
        self._acted = acted
        self._plans: dict[str, tuple[tuple[int, UsedRunner | None], Plan | Refused]] = {}
        self.phases: dict[RunKey, str] = {}
        """The phase of every run that is known."""
        self.versions: dict[str, str] = {}
        """By UID, the resource version of a run as it was last read or written here: nothing is news about that."""

    async def __call__(self, key: RunKey) -> float | None:
        """One step of one run."""
        run = await self._cluster.get_run(key.namespace, key.name)
        if run is None or not self._operates(run, key.uid):
            # Its owner references have the cluster delete what belongs to it.
            self.forget(key)
            return None
        self.versions[key.uid] = run["metadata"]["resourceVersion"]
        try:
            before = read_status(run)
        except UnreadableStatusError as error:
            await self._tell(run, Transition("Warning", "StatusUnreadable", str(error)))
            raise
        plan = self._plan(run, before)
        observed = self.store.observed(
            key.namespace, key.uid, self._applier.losses.get(key.uid, {}), self._applier.obstacles.of(key.uid)
        )
        decision = decide(plan, before, observed, self._clock(), run["metadata"]["generation"])
        self.phases[key] = decision.status.phase
        ends = finished_at(decision.status) and not finished_at(before)
        if ends and isinstance(plan, Plan) and await self._applier.find_missing(plan, before.attempts, observed):
            return 0.0
        if decision.status != before:
            try:
                await self._write(run, before, decision.status)
            except ConflictError:
                return 0.0
        await self._act(decision, plan, observed, key)
        return self._again(decision)

    async def _act(self, decision: Decision, plan: Plan | Refused, observed: Observed, key: RunKey) -> None:
        errors = []
        for action in decision.actions:
            try:
                if isinstance(action, DeleteJob):
                    await self._applier.delete_job(action, key.namespace)
                elif isinstance(action, DeleteRun):
                    await self._cluster.delete_run(key.namespace, key.name, key.uid)
                elif isinstance(plan, Plan):
                    await self._applier.apply(action, plan, observed)
            except Exception as error:  # noqa: BLE001 - it is raised below
                # One case's trouble must not hold up the others.
                errors.append(error)
            self._acted(key)
        if errors:
            raise errors[0]

    def _operates(self, run: Manifest, uid: str) -> bool:
        """Whether it is the run that was meant, is to stay, and is of this operator's class."""
        metadata = run["metadata"]
        if metadata["uid"] != uid or metadata.get("deletionTimestamp"):
            return False
        return bool(run["spec"].get("className", DEFAULT_CLASS) == self._settings.class_name)

    def in_progress(self) -> set[str]:
        """The UIDs of runs that have not finished."""
        return {key.uid for key, phase in self.phases.items() if phase in UNFINISHED}

    def _again(self, decision: Decision) -> float | None:
        if any(not isinstance(action, DeleteJob) for action in decision.actions):
            return 0.0
        if decision.requeue_at is None:
            return None
        return max(0.0, (decision.requeue_at - self._clock()).total_seconds())

    async def _write(self, run: Manifest, before: BenchmarkRunStatus, after: BenchmarkRunStatus) -> None:
        known = {field.alias for field in BenchmarkRunStatus.model_fields.values()}
        kept = {name: value for name, value in (run.get("status") or {}).items() if name not in known}
        try:
            await self._put(run, kept, after)
        except (InvalidError, TooLargeError) as error:
            # A CRD of another release may take no field of ours, an API server no more than so many bytes.
            await self._tell(run, Transition("Warning", "StatusRefused", error.message))
            await self._put(run, {}, shortened(after))
        for transition in transitions(before, after):
            await self._tell(run, transition)

    async def _put(self, run: Manifest, kept: Manifest, status: BenchmarkRunStatus) -> None:
        document = status.model_dump(mode="json", by_alias=True, exclude_none=True)
        stored = await self._cluster.put_run_status({**run, "status": kept | document})
        self.versions[run["metadata"]["uid"]] = stored["metadata"]["resourceVersion"]

    async def _tell(self, run: Manifest, transition: Transition) -> None:
        metadata = run["metadata"]
        event = event_manifest(transition, metadata["namespace"], metadata["name"], metadata["uid"], self._clock())
        # Told already, or not to be told: an event is for people who watch, nothing rests on it.
        with contextlib.suppress(ApiError):
            await self._cluster.create_event(event)

    def _plan(self, run: Manifest, status: BenchmarkRunStatus) -> Plan | Refused:
        """The plan of this generation of the run: planning 256 cases at every event would be felt.

        A finished run needs none, and thousands of them would fill the memory: only when it has to go is left to know.
        """
        if finished_at(status):
            self._plans.pop(run["metadata"]["uid"], None)
            return Refused((), ttl_seconds=run["spec"].get("runPolicy", {}).get("ttlSecondsAfterFinished"))
        uid, asked = run["metadata"]["uid"], (run["metadata"]["generation"], status.runner)
        known = self._plans.get(uid)
        if known is None or known[0] != asked:
            try:
                plan = accept(
                    run,
                    self._settings.profiles,
                    self._settings.runner_image,
                    status.runner,
                    pod_template=self._settings.pod_template,
                )
            except Exception as error:
                logger.exception("%s/%s cannot be planned", run["metadata"].get("namespace"), run["metadata"]["name"])
                what = f"accelbench itself failed while planning, which is a defect: {type(error).__name__}: {error}"
                plan = Refused((Problem("", what),))
            known = self._plans[uid] = (asked, plan)
        return known[1]

    def forget(self, key: RunKey) -> None:
        """The run is gone."""
        self._plans.pop(key.uid, None)
        self._applier.forget(key.uid)
        self.phases.pop(key, None)
        self.versions.pop(key.uid, None)


def read_status(run: Manifest) -> BenchmarkRunStatus:
    """The status as recorded, less what a newer operator may have added; raises UnreadableStatusError.

    What cannot be read is not taken for empty: a run that has finished would begin again.
    """
    try:
        return BenchmarkRunStatus.model_validate(run.get("status") or {}, extra="ignore")
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in problem["loc"])
        raise UnreadableStatusError(
            f"status.{where}: {problem['msg']}; this operator leaves the run alone: install the release that "
            "wrote it, or delete the run and apply it again"
        ) from error
