"""Nothing hangs, runs twice or is lost: the operator's own code in a simulated cluster with faults."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from accelbench.cluster_api.errors import ApiError
from accelbench_operator.engine.kinds import Key
from accelbench_operator.engine.store import Store
from accelbench_operator.runs.apply import Applier
from accelbench_operator.runs.known import read_status
from accelbench_operator.runs.objects import RunObjects
from accelbench_operator.runs.reconcile import Reconciler
from accelbench_operator.runs.status import finished_at
from operator_world.builders import NAME, NAMESPACE, SETTINGS, UID, run_manifest
from operator_world.played import ENDINGS, KilledError, PlayedCluster, is_over

RETRY_SECONDS = 60.0
KEY = Key("BenchmarkRun", NAMESPACE, NAME, UID)
FAULTS = st.sampled_from(["", "", "", "", "", "kill", "time-out", "refuse"])
STEPS = st.one_of(
    st.just(("reconcile",)),
    st.just(("list",)),
    st.just(("hear",)),
    st.just(("start",)),
    st.tuples(st.just("end"), st.integers(0, 3), st.sampled_from(ENDINGS)),
    st.tuples(st.just("pass"), st.sampled_from([1, 60, 2000])),
    st.tuples(st.just("remove"), st.integers(0, 3)),
    st.tuples(st.just("hold"), st.integers(0, 3)),
    st.just(("admit",)),
)
POLICIES = st.sampled_from([{"suspend": True}, {"suspend": False}, {"cancel": True}])


class Process:
    """Run the operator's code, and restart it."""

    def __init__(self, cluster: PlayedCluster) -> None:
        self._cluster = cluster
        self._runner = asyncio.Runner()
        self.start()

    def start(self) -> None:
        self.store = Store()
        applier = Applier(self._cluster, RunObjects(self.store), self._cluster.clock)
        self._reconciler = Reconciler(self._cluster, RunObjects(self.store), applier, SETTINGS, self._cluster.clock)
        self._cluster.list_into(self.store)
        self._delivered = len(self._cluster.run_versions) - 1

    def deliver(self) -> None:
        """Deliver the next version of the run from the watch, in order, beginning with the present one."""
        if self._cluster.run is not None and self._delivered < len(self._cluster.run_versions):
            self._reconciler.changed(KEY, self._cluster.run_versions[self._delivered])
            self._delivered += 1

    def reconcile(self) -> float | None:
        try:
            return self._runner.run(self._reconciler.reconcile(KEY))
        except KilledError:
            self.start()
        except ApiError:
            return RETRY_SECONDS
        return 0.0

    def close(self) -> None:
        self._runner.close()


def play(cluster: PlayedCluster, process: Process, step: tuple) -> None:
    match step:
        case ("reconcile",):
            process.reconcile()
        case ("list",):
            cluster.list_into(process.store)
        case ("hear",):
            process.deliver()
        case ("remove", index):
            # A Job deleted before the operator recorded its existence looks like one that was never created.
            known = [attempt.job for attempt in read_status(cluster.run).attempts if attempt.job_uid]
            jobs = [name for name in cluster.jobs if name in known]
            if jobs:
                cluster.delete(jobs[index % len(jobs)])
                cluster.discarded_whole.clear()
        case _:
            happen(cluster, step)


def happen(cluster: PlayedCluster, step: tuple) -> None:
    """Perform a step of the cluster, in which the operator has no part."""
    match step:
        case ("start",):
            cluster.start_pods()
        case ("end", index, how) if cluster.jobs:
            cluster.end(list(cluster.jobs)[index % len(cluster.jobs)], how)
        case ("pass", seconds):
            cluster.advance(timedelta(seconds=seconds))
        case ("hold", index) if cluster.jobs:
            cluster.hold(list(cluster.jobs)[index % len(cluster.jobs)])
        case ("admit",):
            for name in cluster.jobs:
                cluster.admit(name)
        case ("policy", policy):
            cluster.set_policy(**policy)


def drain(cluster: PlayedCluster, process: Process, *, pods_end: bool) -> int:
    """Continue without further faults until the run has finished; return the number of reconciles."""
    for count in range(400):
        if cluster.run is None or finished_at(read_status(cluster.run)):
            return count
        play(cluster, process, ("admit",))
        cluster.list_into(process.store)
        process.deliver()
        after = process.reconcile()
        if pods_end:
            cluster.start_pods()
            for name in list(cluster.jobs):
                cluster.end(name, "whole")
        if after:
            cluster.advance(timedelta(seconds=after))
    raise AssertionError(f"not finished: {cluster.run['status']}")


def settle(cluster: PlayedCluster, process: Process) -> None:
    for _ in range(3):
        cluster.list_into(process.store)
        process.reconcile()


def faults(drawn: list[str]) -> Iterator[str]:
    yield from drawn
    while True:
        yield ""


@pytest.mark.slow
@settings(max_examples=200)
@example(
    # The watch did not deliver the end, and the pod's time has passed since.
    steps=[("reconcile",), ("start",), ("list",), ("end", 0, "whole"), ("pass", 2000), ("reconcile",)],
    drawn=[],
    parallelism=1,
    retries=0,
    pods_end=False,
)
@given(
    steps=st.lists(STEPS, max_size=40),
    drawn=st.lists(FAULTS, max_size=60),
    parallelism=st.integers(1, 3),
    retries=st.integers(0, 2),
    pods_end=st.booleans(),
)
def test_every_case_ends_with_one_result_or_one_reason_after_any_faults(
    steps: list[tuple], drawn: list[str], parallelism: int, retries: int, pods_end: bool
) -> None:
    policy = {"parallelism": parallelism, "infrastructureRetries": retries}
    supply = faults(drawn)
    cluster = PlayedCluster(run_manifest(sizes=(64, 128, 256), runPolicy=policy), lambda: next(supply))
    process = Process(cluster)
    try:
        for step in steps:
            play(cluster, process, step)
        supply = faults([])
        drain(cluster, process, pods_end=pods_end)
        settle(cluster, process)
    finally:
        process.close()

    status = read_status(cluster.run)
    assert max(Counter(cluster.created).values()) == 1
    assert max(Counter(cluster.stored).values(), default=1) == 1
    assert all(attempt.finished for attempt in status.attempts)
    begun = [*status.measured_cases, *(attempt.case for attempt in status.attempts)]
    assert len(begun) == len(set(begun)) == status.cases.measured + status.cases.failed
    assert all(attempt.retries <= retries for attempt in status.attempts)
    # A retry that was granted does not start if the run stops first.
    not_started = {attempt.retries + attempt.disruptions + 1 - attempt.number for attempt in status.attempts}
    assert not_started <= {0, 1}
    assert status.cases.measured == len(cluster.results)
    assert not cluster.discarded_whole
    assert not [name for name, job in cluster.jobs.items() if not is_over(job)]


@pytest.mark.slow
@settings(max_examples=200)
@given(
    steps=st.lists(st.one_of(STEPS, st.tuples(st.just("policy"), POLICIES)), max_size=40),
    drawn=st.lists(FAULTS, max_size=60),
    pods_end=st.booleans(),
)
def test_a_run_suspended_resumed_and_cancelled_at_any_time_ends_and_leaves_no_active_job(
    steps: list[tuple], drawn: list[str], pods_end: bool
) -> None:
    supply = faults(drawn)
    cluster = PlayedCluster(run_manifest(sizes=(64, 128), runPolicy={"parallelism": 2}), lambda: next(supply))
    process = Process(cluster)
    try:
        for step in steps:
            play(cluster, process, step)
        supply = faults([])
        cluster.set_policy(suspend=False)
        drain(cluster, process, pods_end=pods_end)
        settle(cluster, process)
    finally:
        process.close()

    status = read_status(cluster.run)
    assert max(Counter(cluster.created).values(), default=1) == 1
    assert max(Counter(cluster.stored).values(), default=1) == 1
    assert status.cases.measured == len(cluster.results)
    assert status.cases.active == 0
    assert not [name for name, job in cluster.jobs.items() if not is_over(job)]
    assert status.active_start_time is None


@settings(max_examples=100)
@given(
    steps=st.lists(
        st.one_of(
            st.sampled_from([("reconcile",), ("list",), ("start",), ("admit",), ("pass", 1), ("pass", 60)]),
            st.tuples(st.just("hold"), st.integers(0, 1)),
            st.tuples(st.just("end"), st.integers(0, 1), st.just("whole")),
        ),
        max_size=40,
    )
)
def test_no_case_is_lost_if_a_queue_takes_its_pod_back_repeatedly(steps: list[tuple]) -> None:
    policy = {"parallelism": 2, "infrastructureRetries": 0}
    cluster = PlayedCluster(run_manifest(sizes=(64, 128), runPolicy=policy), lambda: "")
    process = Process(cluster)
    try:
        for step in steps:
            play(cluster, process, step)
        drain(cluster, process, pods_end=True)
    finally:
        process.close()

    status = read_status(cluster.run)
    assert status.attempts == ()
    assert [stored["result"]["case"]["origin"]["attempt"] for stored in cluster.results.values()] == [1, 1]
    assert status.cases.measured == len(cluster.stored) == 2
    assert all(stored["result"]["complete"] for stored in cluster.results.values())
