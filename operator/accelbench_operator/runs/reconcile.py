"""One run, once: read it live, decide, write the status, then act. What it learned makes the run due again at once."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from accelbench.api.metadata import API_VERSION
from accelbench.api.reasons import ConditionReason
from accelbench.api.run import DEFAULT_CLASS, Attempt, BenchmarkRunStatus
from accelbench.cluster_api.errors import ApiError, ConflictError, InvalidError, NotFoundError, TooLargeError
from accelbench.cluster_api.kinds import RUN
from accelbench.problem import Problem
from accelbench_operator.engine.kinds import Key, Manifest
from accelbench_operator.runs.accept import Plan, Refused, RunSettings, accept
from accelbench_operator.runs.actions import DeleteJob, DeleteRun
from accelbench_operator.runs.apply import Applier
from accelbench_operator.runs.attempts import Observed
from accelbench_operator.runs.cluster import Cluster
from accelbench_operator.runs.decide import Decision, decide
from accelbench_operator.runs.events import Transition, event_manifest, newly_lost, transitions
from accelbench_operator.runs.known import (
    KnownRun,
    KnownRuns,
    UnreadableStatusError,
    foreign_fields,
    is_at_rest,
    read_status,
)
from accelbench_operator.runs.objects import RunObjects, owned_by_runs
from accelbench_operator.runs.status import finished_at, only_tells_more, shortened

logger = logging.getLogger(__name__)

UNFINISHED = {ConditionReason.QUEUED, ConditionReason.RUNNING, ConditionReason.SUSPENDED}

TELL_AFTER = timedelta(seconds=2)
"""What only tells why a case waits, or where it is, waits for so long: most of it is over by then."""


class Reconciler:
    """Reconcile BenchmarkRuns.

    It is called where this replica leads; what it writes is fenced all the same (`Cluster`).
    """

    def __init__(
        self,
        cluster: Cluster,
        objects: RunObjects,
        applier: Applier,
        settings: RunSettings,
        clock: Callable[[], datetime],
        acted: Callable[[Key], None] = lambda _: None,
        lost: Callable[[Attempt], None] = lambda _: None,
        look: Callable[[Key, float], None] = lambda _key, _seconds: None,
    ) -> None:
        """`acted` is told of each step that was taken: a run of many cases can take minutes.

        `lost` is told of each attempt that was lost, once that is written. `look` is asked for another look after so
        many seconds, where this one raises.
        """
        self._cluster = cluster
        self.kind = RUN
        self.owns = owned_by_runs(settings.class_name)
        self._objects = objects
        self._applier = applier
        self._settings = settings
        self._clock = clock
        self._acted = acted
        self._lost = lost
        self._look = look
        self._known = KnownRuns()
        self._resting: set[Key] = set()
        self._leaving: set[Key] = set()
        """Deleted, and held back by somebody's finalizer."""
        self.phases: dict[Key, str] = {}
        """The phase of every run that is known."""

    def changed(self, key: Key, run: Manifest) -> bool:
        """A watch tells of a run; returns whether there may be something to do."""
        if not self._operates(run, key.uid):
            self.deleted(key)
            if not self._is_ours(run, key.uid):
                return False
            self._leaving.add(key)
            return self._objects.has_jobs(key.uid)
        if is_at_rest(run) and not self._objects.has_jobs(key.uid):
            self._rest(key, run["status"].get("phase", ""))
            return False
        self._resting.discard(key)
        return self._known.hear(key.uid, run)

    async def reconcile(self, key: Key) -> float | None:
        """One step of one run."""
        if key in self._leaving:
            await self._end_jobs(key)
            return None
        return await self._step(key)

    async def _step(self, key: Key) -> float | None:
        if key in self._resting and not self._objects.has_jobs(key.uid):
            return None
        known = await self._know(key)
        if known is None:
            # Its owner references have the cluster delete what belongs to it.
            self.deleted(key)
            return None
        plan, now = known.plan, self._clock()
        losses, obstacles = self._applier.losses.get(key.uid, {}), self._applier.obstacles.of(key.uid)
        held = self._objects.observed(key, losses, obstacles)
        observed = replace(held, queues=self._applier.queues.of(key.uid))
        decision = decide(plan, known.status, observed, now, known.generation)
        self.phases[key] = decision.status.phase
        ends = finished_at(decision.status) is not None and finished_at(known.written) is None
        if ends and isinstance(plan, Plan):
            measured = known.status.measured_cases
            if await self._applier.find_missing(plan, measured, observed):
                return 0.0
        known.status = decision.status
        wait = self._can_wait(known, now)
        if not (await self._settle(key, known, wait=wait is not None) and (known.certain or not decision.actions)):
            # It has changed since, or may have: it was only heard of.
            self._known.drop(key.uid)
            return 0.0
        try:
            await self._act(decision, plan, observed, key)
        except Exception:
            # What is refused again and again is tried ever more rarely; deadlines are kept all the same.
            if decision.requeue_at and decision.requeue_at > now:
                self._look(key, (decision.requeue_at - now).total_seconds())
            raise
        if ends:
            return 0.0  # to see what is left to do after the end
        again = self._again(decision, wait)
        if finished_at(known.status) and not decision.actions and again is None:
            self._rest(key, known.status.phase)
        return again

    async def _settle(self, key: Key, known: KnownRun, *, wait: bool) -> bool:
        """Whether the API server has the status now, or may later; False where the run has changed or is gone."""
        if wait or known.status == known.written:
            return True
        try:
            await self._write(key, known)
        except (ConflictError, NotFoundError):
            return False
        return True

    async def _know(self, key: Key) -> KnownRun | None:
        """What is to be decided on; None for a run that is gone, or that this operator has nothing to do with."""
        heard, known = self._known.take_heard(key.uid), self._known.get(key.uid)
        if heard is None and known is not None:
            return known
        if heard is not None and (known is None or not known.certain):
            run, certain = heard, False
        else:
            # Of two versions the later one cannot be told, so whoever knows is asked.
            found = await self._cluster.get_run(key.namespace, key.name)
            if found is None:
                return None
            run, certain = found, True
        if not self._operates(run, key.uid):
            return None
        try:
            status = read_status(run)
        except UnreadableStatusError as error:
            await self._tell(key, Transition("Warning", "StatusUnreadable", str(error)))
            raise
        generation = run["metadata"]["generation"]
        same = known is not None and (known.generation, known.written.runner) == (generation, status.runner)
        learned = KnownRun(
            version=run["metadata"]["resourceVersion"],
            generation=generation,
            # Hundreds of cases take a while to plan, and the first run of all imports the catalogue.
            plan=known.plan if known is not None and same else await asyncio.to_thread(self._plan, run, status),
            written=status,
            status=status,
            foreign=foreign_fields(run),
            certain=certain,
        )
        self._known.keep(key.uid, learned)
        return learned

    def _can_wait(self, known: KnownRun, now: datetime) -> datetime | None:
        """Until when it may wait that the status tells more than was written; None where it may not, or does not."""
        if known.status == known.written or not only_tells_more(known.written, known.status):
            known.untold_since = None
            return None
        known.untold_since = known.untold_since or now
        until = known.untold_since + TELL_AFTER
        return until if now < until else None

    async def _act(self, decision: Decision, plan: Plan | Refused, observed: Observed, key: Key) -> None:
        first: Exception | None = None
        for action in decision.actions:
            try:
                if isinstance(action, DeleteJob):
                    await self._applier.delete_job(action, key)
                elif isinstance(action, DeleteRun):
                    await self._cluster.delete_run(key.namespace, key.name, key.uid)
                elif isinstance(plan, Plan):
                    await self._applier.apply(action, plan, observed)
            except Exception as error:  # noqa: BLE001 - it is raised below
                # One case's trouble must not hold up the others.
                first = first or error
            self._acted(key)
        if first is not None:
            try:
                raise first
            finally:
                first = None  # else this frame and the traceback hold each other, and what they hold

    def _operates(self, run: Manifest, uid: str) -> bool:
        """Whether it is this operator's, and is to stay."""
        return self._is_ours(run, uid) and not run["metadata"].get("deletionTimestamp")

    def _is_ours(self, run: Manifest, uid: str) -> bool:
        """Whether it is the run that was meant, and of this operator's class."""
        of_class = run["spec"].get("className", DEFAULT_CLASS) == self._settings.class_name
        return bool(run["metadata"]["uid"] == uid and of_class)

    async def _end_jobs(self, key: Key) -> None:
        """Nobody wants them any more; the cluster deletes them only once their owner has gone."""
        for job in self._objects.observed(key).jobs.values():
            await self._cluster.delete_job(key.namespace, job.key.name, job.key.uid)

    def cases(self) -> dict[tuple[str, ...], int]:
        """How many cases of each run that has not finished are in which state: by namespace, name and state."""
        found: dict[tuple[str, ...], int] = {}
        for key, phase in self.phases.items():
            known = self._known.get(key.uid) if phase in UNFINISHED else None
            if known:
                for state, count in known.status.cases.model_dump().items():
                    found[key.namespace, key.name, state] = count
        return found

    def in_progress(self) -> set[str]:
        """The UIDs of runs that have not finished."""
        return {key.uid for key, phase in self.phases.items() if phase in UNFINISHED}

    def _again(self, decision: Decision, wait: datetime | None) -> float | None:
        if any(not isinstance(action, DeleteJob | DeleteRun) for action in decision.actions):
            return 0.0
        next_look = min((time for time in (decision.requeue_at, wait) if time is not None), default=None)
        return None if next_look is None else max(0.0, (next_look - self._clock()).total_seconds())

    async def _write(self, key: Key, known: KnownRun) -> None:
        before = known.written
        try:
            await self._put(key, known, known.foreign, known.status)
        except (InvalidError, TooLargeError) as error:
            # A CRD of another release may take no field of ours, an API server no more than so many bytes.
            await self._tell(key, Transition("Warning", "StatusRefused", error.message))
            await self._put(key, known, {}, shortened(known.status))
        for _, attempt in newly_lost(before, known.status):
            self._lost(attempt)
        for transition in transitions(before, known.status):
            await self._tell(key, transition)

    async def _put(self, key: Key, known: KnownRun, foreign: Manifest, status: BenchmarkRunStatus) -> None:
        document = dict(foreign) | status.model_dump(mode="json", by_alias=True, exclude_none=True)
        stored = await self._cluster.put_run_status(status_manifest(key, known.version, document))
        # What the API server does not know it drops.
        written = status if stored["status"] == document else read_status(stored)
        metadata = stored["metadata"]
        known.version, known.written, known.status, known.certain = metadata["resourceVersion"], written, status, True
        known.untold_since = None
        if finished_at(status):
            known.plan = Refused((), ttl_seconds=known.plan.ttl_seconds)
        self._known.keep(key.uid, known)

    async def _tell(self, key: Key, transition: Transition) -> None:
        event = event_manifest(transition, key.namespace, key.name, key.uid, self._clock())
        # Told already, or not to be told: an event is for people who watch, nothing rests on it.
        with contextlib.suppress(ApiError):
            await self._cluster.create_event(event)

    def _plan(self, run: Manifest, status: BenchmarkRunStatus) -> Plan | Refused:
        """A finished run needs none, and thousands of them would fill the memory: when it has to go is left to know."""
        if finished_at(status):
            return Refused((), ttl_seconds=run["spec"].get("runPolicy", {}).get("ttlSecondsAfterFinished"))
        try:
            return accept(
                run,
                self._settings.profiles,
                self._settings.runner_image,
                status.runner,
                pod_template=self._settings.pod_template,
            )
        except Exception as error:
            logger.exception("%s/%s cannot be planned", run["metadata"].get("namespace"), run["metadata"]["name"])
            what = f"accelbench itself failed while planning, which is a bug: {type(error).__name__}: {error}"
            return Refused((Problem("", what),))

    def _rest(self, key: Key, phase: str) -> None:
        """Nothing more will happen to the run; only its end is kept in mind."""
        self.phases[key] = phase
        self._resting.add(key)
        self._known.forget(key.uid)
        self._applier.forget(key.uid)

    def deleted(self, key: Key) -> None:
        """The run is gone."""
        self._known.forget(key.uid)
        self._applier.forget(key.uid)
        self._resting.discard(key)
        self._leaving.discard(key)
        self.phases.pop(key, None)

    def reset(self) -> None:
        """Another replica may have acted since: what was known before does not count."""
        self._known.forget_all()
        self._applier.forget_all()


def status_manifest(key: Key, version: str, status: Manifest) -> dict[str, Any]:
    """What is written of a run: its status, on top of that version."""
    metadata = {"namespace": key.namespace, "name": key.name, "uid": key.uid, "resourceVersion": version}
    return {"apiVersion": API_VERSION, "kind": "BenchmarkRun", "metadata": metadata, "status": dict(status)}
