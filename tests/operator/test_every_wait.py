"""Every wait of the table: it reports its reason, and ends at the time and in the way of the table."""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest

from accelbench.api import labels
from accelbench.api.run import BenchmarkRunStatus
from accelbench.cluster_api.errors import ApiError, ForbiddenError, UnreachableError, api_error
from accelbench.document import timestamp
from accelbench_operator.engine.kinds import Key
from accelbench_operator.engine.queue import LONGEST_DELAY_SECONDS
from accelbench_operator.engine.store import Store
from accelbench_operator.runs.apply import Applier, ForeignObjectError
from accelbench_operator.runs.known import read_status
from accelbench_operator.runs.kueue import SHORTEST_PAUSE
from accelbench_operator.runs.objects import RunObjects
from accelbench_operator.runs.reconcile import PROGRESS_DELAY, Reconciler
from accelbench_operator.runs.status import finished_at
from accelbench_operator.runs.waits import (
    DELAY_BEFORE_FIRST_READ,
    FIRST_RETRY,
    MINIMUM_TRIES,
    REPORTED_TRIES,
    Wait,
    retry_delay,
)
from operator_world.builders import NAME, NAMESPACE, NOW, SETTINGS, UID, run_manifest
from operator_world.played import PlayedCluster

KEY = Key("BenchmarkRun", NAMESPACE, NAME, UID)
QUOTA = ForbiddenError(403, "exceeded quota: few")
BRIEF = PROGRESS_DELAY
AT_THE_NEXT_TRY = timedelta(seconds=LONGEST_DELAY_SECONDS)


class World:
    """Run the operator's own code in a simulated cluster, and read its status as a user does."""

    def __init__(self, **policy: Any) -> None:
        self.cluster = PlayedCluster(run_manifest(runPolicy={"infrastructureRetries": 0} | policy), lambda: "")
        self.store = Store()
        applier = Applier(self.cluster, RunObjects(self.store), self.cluster.clock)
        self._reconciler = Reconciler(self.cluster, RunObjects(self.store), applier, SETTINGS, self.cluster.clock)

    def advance(self, duration: timedelta = timedelta()) -> float | None:
        """Let time pass, reconcile until the operator waits, and return the seconds until its next reconcile."""
        self.cluster.advance(duration)
        for _ in range(20):
            self.cluster.list_into(self.store)
            if self.cluster.run:
                self._reconciler.changed(KEY, self.cluster.run)
            try:
                after = asyncio.run(self._reconciler.reconcile(KEY))
            except (ApiError, ForeignObjectError):
                return LONGEST_DELAY_SECONDS
            if after is None or after > BRIEF.total_seconds():
                return after
            self.cluster.advance(timedelta(seconds=after))
        raise AssertionError(f"it looks again and again: {self.status}")

    def wait(self) -> datetime | None:
        """Return when the run has finished or started another attempt if nothing else happens; None: never."""
        job = self.job
        after = self.advance()
        while not finished_at(self.status) and self.job in {job, ""}:
            if after is None:
                return None
            after = self.advance(timedelta(seconds=after))
            assert self.cluster.now < NOW + timedelta(days=3), self.status
        return self.cluster.now

    @property
    def status(self) -> BenchmarkRunStatus:
        return read_status(self.cluster.run)

    @property
    def job(self) -> str:
        return next((attempt.job for attempt in self.status.attempts), "")

    def message(self, kind: str = "Finished") -> str:
        return next(each.message for each in self.status.conditions if each.type == kind)

    def reason(self) -> str:
        """Return the reason of the attempt that ended, else of the run."""
        lost = next((attempt.reason for attempt in self.status.attempts if attempt.reason), None)
        return lost or next(each.reason for each in self.status.conditions if each.type == "Succeeded")

    def started(self) -> "World":
        self.advance()
        self.cluster.start_pods()
        self.advance()
        return self

    def ended(self) -> "World":
        self.started()
        self.cluster.end(self.job, "whole")
        return self

    def refused(self) -> datetime:
        """Return the time of the first refusal, after enough refusals for the run to report it."""
        since = self.cluster.now
        self.advance()
        for _ in range(REPORTED_TRIES + 1):
            self.advance(BRIEF)
        return since

    def refuse(self, request: str, error: Exception) -> "World":
        async def refused(*_: Any) -> Any:
            raise error

        setattr(self.cluster, request, refused)
        return self


@dataclass(frozen=True)
class Provoked:
    """Hold a world in which the wait has begun, the run's message, and the wait's duration and start."""

    world: World
    message: str
    lasts: timedelta | None
    since: datetime = NOW


def job_refused() -> Provoked:
    world = World().refuse("create_job", QUOTA)
    world.refused()
    return Provoked(world, "Its Job cannot be created: exceeded quota: few. Wait for others to end", DAY)


def held_by_a_queue() -> Provoked:
    world = held(World(startDeadlineSeconds=600), "team-a")
    return Provoked(world, "waits in queue team-a: Kueue has created no Workload for it", timedelta(seconds=600))


def held_by_nobody() -> Provoked:
    world = held(World(), "team-x")
    return Provoked(world, "LocalQueue team-x does not exist in namespace team", DAY)


def held(world: World, queue: str) -> World:
    world.advance()
    job = world.cluster.jobs[world.job]
    job["spec"]["suspend"] = True
    job["metadata"]["labels"][labels.QUEUE] = queue
    world.advance()
    world.advance(SHORTEST_PAUSE)
    return world


def no_pod() -> Provoked:
    world = World()
    world.advance()
    uid = world.cluster.jobs[world.job]["metadata"]["uid"]
    world.cluster.post(event(world, uid, "FailedCreate", 'pods "x" is forbidden: exceeded quota: few'))
    world.advance(timedelta(seconds=world.advance() or 0))
    return Provoked(
        world,
        'has no pod yet: FailedCreate: pods "x" is forbidden: exceeded quota: few. Wait for',
        DAY - DELAY_BEFORE_FIRST_READ,
    )


def a_silent_node() -> Provoked:
    world = World()
    world.advance()
    world.cluster.start_pods()
    [pod] = world.cluster.pods.values()
    pod["status"] = {"phase": "Pending"}
    world.cluster.post(event(world, pod["metadata"]["uid"], "FailedMount", 'configmap "x" not found'))
    world.advance(timedelta(seconds=world.advance() or 0))
    return Provoked(
        world,
        'The node is preparing the pod: FailedMount: configmap "x" not found. Create it',
        DAY - DELAY_BEFORE_FIRST_READ,
    )


def a_pod_that_stays() -> Provoked:
    world = World().started()
    [pod] = world.cluster.pods.values()
    pod["spec"] = {"nodeName": "far"}
    pod["metadata"]["deletionTimestamp"] = world.cluster.clock().isoformat()
    since = world.cluster.now
    world.advance()
    return Provoked(world, "0 of 1 cases done", Wait.END_OF_POD.default_limit, since)


def no_answer() -> Provoked:
    world = World().ended().refuse("list_pods", UnreachableError(0, "no route to host"))
    world.cluster.pods.clear()
    since = world.refused()
    return Provoked(world, "cannot find out what became of it: no route to host", Wait.FIND_POD.default_limit, since)


def no_answer_on_the_result() -> Provoked:
    world = World().started()
    world.cluster.end(world.job, "deleted")
    world.refuse("get_result", UnreachableError(0, "no route to host"))
    says = "cannot find out whether it has a result: no route to host"
    return Provoked(world, says, Wait.RESULT.default_limit, world.refused())


def a_log_that_is_refused() -> Provoked:
    world = World().ended().refuse("read_log", ApiError(503, "no kubelet"))
    since = world.refused()
    return Provoked(world, "the log of its pod cannot be read: no kubelet", Wait.READ_LOG.default_limit, since)


def a_result_that_is_refused() -> Provoked:
    world = World().ended().refuse("create_result", QUOTA)
    since = world.refused()
    return Provoked(world, "its result cannot be stored: exceeded quota: few", Wait.STORE_RESULT.default_limit, since)


def between_attempts() -> Provoked:
    world = World(infrastructureRetries=10).started()
    world.cluster.end(world.job, "evicted")
    [pod] = world.cluster.pods.values()
    world.cluster.logs[pod["metadata"]["uid"]] = ""
    since = world.cluster.now
    world.advance()
    says = f"attempt 2 starts at {timestamp(since + FIRST_RETRY)}, after Disrupted: pod"
    return Provoked(world, says, FIRST_RETRY, since)


def the_pod_before() -> Provoked:
    world = World().started()
    pods = dict(world.cluster.pods)
    world.cluster.set_policy(suspend=True)
    world.advance()
    world.cluster.pods.update(pods)
    [pod] = world.cluster.pods.values()
    pod["metadata"]["deletionTimestamp"] = world.cluster.clock().isoformat()
    world.cluster.set_policy(suspend=False)
    since = world.cluster.now
    world.advance()
    return Provoked(world, "of the previous attempt has not ended yet", Wait.EARLIER_POD.default_limit, since)


def at_work() -> Provoked:
    world = World(activeDeadlineSeconds=300).started()
    since = datetime.fromisoformat(world.status.active_start_time or "")
    return Provoked(world, "0 of 1 cases done", timedelta(seconds=300), since)


def suspended() -> Provoked:
    world = World().started()
    world.cluster.set_policy(suspend=True)
    world.advance()
    return Provoked(world, "runPolicy.suspend: false resumes it", None)


def event(world: World, uid: str, reason: str, message: str) -> Any:
    return {
        "involvedObject": {"uid": uid},
        "type": "Warning",
        "reason": reason,
        "message": message,
        "lastTimestamp": world.cluster.clock().isoformat(),
    }


DAY = timedelta(days=1)
PROVOKED: Mapping[Wait, Callable[[], Provoked]] = {
    Wait.CREATE_JOB: job_refused,
    Wait.QUEUE: held_by_a_queue,
    Wait.NO_QUEUE: held_by_nobody,
    Wait.POD: no_pod,
    Wait.START: a_silent_node,
    Wait.END_OF_POD: a_pod_that_stays,
    Wait.FIND_POD: no_answer,
    Wait.RESULT: no_answer_on_the_result,
    Wait.READ_LOG: a_log_that_is_refused,
    Wait.STORE_RESULT: a_result_that_is_refused,
    Wait.RETRY: between_attempts,
    Wait.EARLIER_POD: the_pod_before,
    Wait.ACTIVE: at_work,
    Wait.RESUME: suspended,
}
TRIED_AGAIN = {Wait.RETRY, Wait.EARLIER_POD}


@pytest.mark.parametrize("wait", Wait, ids=lambda wait: wait.name)
def test_every_wait_reports_its_reason_and_ends_after_the_time_of_the_table(wait: Wait) -> None:
    provoked = PROVOKED[wait]()
    world = provoked.world
    assert provoked.message in world.message()
    end = world.wait()
    if provoked.lasts is None:
        assert end is None
        return

    assert end is not None
    assert provoked.lasts <= end - provoked.since <= provoked.lasts + AT_THE_NEXT_TRY
    if wait in TRIED_AGAIN:
        assert (wait.ends_with, world.status.attempts[0].number) == (None, 2)
    else:
        assert world.reason() == wait.ends_with


EVENTS = (
    'pods "x" is forbidden: maximum cpu usage per Container is 500m, but limit is 1',
    'pods "x" is forbidden: exceeded quota: few',
    "exec format error",
    "DeadlineExceeded: Pod was active on the node longer than the specified deadline",
    "Evicted: preempted, NodeLost, BackoffLimitExceeded",
)


@pytest.mark.parametrize("message", EVENTS)
@pytest.mark.parametrize("about", ["the Job", "the pod"])
def test_no_event_of_a_user_ends_a_wait(message: str, about: str) -> None:
    world = World()
    world.advance()
    job = world.cluster.jobs[world.job]
    about_uid = job["metadata"]["uid"]
    if about == "the pod":
        world.cluster.start_pods()
        [pod] = world.cluster.pods.values()
        pod["status"] = {"phase": "Pending"}
        about_uid = pod["metadata"]["uid"]
    for reason in ("FailedCreate", "Failed", "Killing", "BackOff"):
        world.cluster.post(event(world, about_uid, reason, message))
    for _ in range(3):
        world.advance(timedelta(minutes=5))
    assert message in world.message()
    assert world.reason() == "Unfinished"
    end = world.wait()
    assert end is not None
    assert end - NOW >= DAY
    assert world.reason() == "StartDeadlineExceeded"


def test_a_namespace_without_its_label_is_named_in_the_condition_and_waited_for() -> None:
    denial = (
        "jobs.batch is forbidden: ValidatingAdmissionPolicy 'x-jobs' with binding 'x-jobs' denied request: namespace "
        "team: is not labelled accelbench.dev/runs=allowed, so it may have no runs; ask those who manage the cluster"
    )
    world = World().refuse("create_job", api_error(422, json.dumps({"message": denial})))
    world.refused()
    assert denial in world.message()
    assert "once the namespace has the label, the case continues by itself" in world.message()
    assert "podTemplate" not in world.message()
    world.wait()
    assert world.reason() == "StartDeadlineExceeded"


def test_a_retry_waits_twice_as_long_each_time() -> None:
    assert [retry_delay(retries).total_seconds() for retries in range(8)] == [10, 20, 40, 80, 160, 320, 600, 600]


@pytest.mark.parametrize("wait", [wait for wait in Wait if wait.limit.tries], ids=lambda wait: wait.name)
def test_a_wait_ends_neither_before_its_limit_nor_before_the_fourth_try(wait: Wait) -> None:
    in_time = NOW + wait.default_limit
    assert wait.is_over(NOW, MINIMUM_TRIES, in_time)
    assert not wait.is_over(NOW, MINIMUM_TRIES - 1, in_time + timedelta(days=1))
    assert not wait.is_over(NOW, 100, in_time - timedelta(seconds=1))
