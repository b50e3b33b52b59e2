"""Runs on a real node whose pod fails: each reports what happened and the remedy, and none hangs."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
from typing import TYPE_CHECKING, Any

import pytest

from cluster.wait import wait_until
from e2e.installation import process_of
from taxonomy.runs import condition, ended, manifest, prepare, wait_for_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cluster.cluster import Cluster
    from e2e.installation import Installed

pytestmark = pytest.mark.nightly

NAMESPACE = "accelbench-taxonomy-running"
TERMINATING = f"{NAMESPACE}-terminating"
ONCE = {"infrastructureRetries": 0}
RUNS = (
    manifest("evicted"),
    manifest("preempted", accelerator={"profile": "rare"}),
    manifest("late", runPolicy={"activeDeadlineSeconds": 5}),
    manifest("crashed", runPolicy=ONCE),
    manifest("log-lost", runPolicy=ONCE),
    manifest("job-deleted", runPolicy=ONCE),
    manifest("pod-deleted"),
    manifest("deleted"),
)
URGENT = (
    {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent-test"}, "value": 1000},
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "urgent"},
        "spec": {
            "priorityClassName": "urgent-test",
            "containers": [
                {
                    "name": "urgent",
                    "image": "localhost/pod:pause",
                    "resources": {"limits": {"example.com/rare": "1"}, "requests": {"example.com/rare": "1"}},
                }
            ],
        },
    },
)


@pytest.fixture(scope="module")
def cluster(installed: Installed) -> Iterator[Cluster]:
    """All of the runs, applied at once."""
    cluster, other = (dataclasses.replace(installed.cluster, namespace=each) for each in (NAMESPACE, TERMINATING))
    for each in (cluster, other):
        prepare(each)
    try:
        cluster.apply(*RUNS)
        other.apply(manifest("terminating"))
        yield cluster
    finally:
        cluster.kubectl("delete", "priorityclass", "urgent-test", "--ignore-not-found")
        cluster.kubectl("delete", "namespace", NAMESPACE, TERMINATING, "--wait=false", "--ignore-not-found")
    log = installed.system.kubectl("logs", "--selector=app.kubernetes.io/name=accelbench", "--tail=-1").stdout
    assert log
    assert "Traceback" not in log, log


def pods_of(cluster: Cluster, run: str) -> list[Any]:
    found: list[Any] = cluster.get("pods", f"--selector=accelbench.dev/run={run}")["items"]
    return found


def at_work(cluster: Cluster, run: str) -> Any:
    """The run's pod, once its container runs."""

    def running() -> list[Any]:
        return [pod for pod in pods_of(cluster, run) if _state(pod).get("running")]

    try:
        wait_until(running, what=f"{run} to run")
    except Exception as error:
        raise AssertionError(f"{run} does not run: {condition(cluster, run)}") from error
    [pod] = running()
    return pod


def _state(pod: Any) -> Any:
    [status] = pod["status"].get("containerStatuses") or [{}]
    return status.get("state", {})


def kill(pod: Any) -> None:
    """SIGKILL its supervisor, as the kernel does."""
    [status] = pod["status"]["containerStatuses"]
    os.kill(process_of(status["containerID"]), signal.SIGKILL)


def cancel(cluster: Cluster, run: str) -> None:
    """Before it begins again."""
    cluster.kubectl("patch", "bmr", run, "--type=merge", '--patch={"spec": {"runPolicy": {"cancel": true}}}')


def test_an_evicted_pod_is_tried_again_and_the_run_names_the_cause(
    cluster: Cluster, record: Callable[..., None]
) -> None:
    name = at_work(cluster, "evicted")["metadata"]["name"]
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": NAMESPACE}}
    path = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/eviction"
    cluster.kubectl("create", f"--raw={path}", "--filename=-", input=json.dumps(eviction))
    words = (f"Disrupted: pod {name} on node", "EvictionByEvictionAPI", "PodDisruptionBudget", "attempt 2 starts at")
    record("evicted", wait_for_words(cluster, "evicted", *words))
    cancel(cluster, "evicted")


def test_a_preempted_pod_is_tried_again_and_the_run_names_the_cause(
    cluster: Cluster, record: Callable[..., None]
) -> None:
    at_work(cluster, "preempted")
    cluster.apply(*URGENT)
    words = ("Preempted: ", "PreemptionByScheduler", "Give the pods a priorityClassName", "attempt 2 starts at")
    record("preempted", wait_for_words(cluster, "preempted", *words))
    cancel(cluster, "preempted")


def test_a_run_ends_at_its_active_deadline(cluster: Cluster, record: Callable[..., None]) -> None:
    words = ("active for longer than its deadline", "Raise runPolicy.activeDeadlineSeconds")
    record("deadline of the run", ended(cluster, "late", "ActiveDeadlineExceeded", *words))
    wait_until(lambda: not pods_of(cluster, "late"), what="its pod to end")


def test_a_killed_runner_ends_the_case_with_its_exit_code_and_the_command_to_investigate(
    cluster: Cluster, record: Callable[..., None]
) -> None:
    kill(at_work(cluster, "crashed"))
    words = ("ResultLost: the runner ended with exit code 137", "kubectl logs", "See the pod's log")
    # A round may be over before the signal arrives: then what it gave stands.
    record("runner crashed", ended(cluster, "crashed", ("CaseFailed", "Incomplete"), *words))


def test_a_log_that_the_node_lost_is_read_again_and_the_run_reports_it(
    cluster: Cluster, record: Callable[..., None]
) -> None:
    pod = at_work(cluster, "log-lost")
    metadata = pod["metadata"]
    folder = f"{NAMESPACE}_{metadata['name']}_{metadata['uid']}"
    [log] = (cluster.kubeconfig.parent / "var/log/pods" / folder / "runner").glob("*.log")
    log.unlink()
    kill(pod)
    record(
        "log lost", wait_for_words(cluster, "log-lost", "the log of its pod cannot be read: ", "Check that its node")
    )


def test_a_job_deleted_by_a_user_ends_the_case_with_the_right_way_to_stop_a_run(
    cluster: Cluster, record: Callable[..., None]
) -> None:
    at_work(cluster, "job-deleted")
    cluster.kubectl("delete", "jobs", "--selector=accelbench.dev/run=job-deleted")
    words = ("JobDeleted: Job ", "was deleted before its result was stored", "runPolicy.suspend frees its device")
    record("Job deleted by hand", ended(cluster, "job-deleted", "CaseFailed", *words))


def test_a_pod_deleted_by_a_user_is_tried_again_and_the_run_reports_it(
    cluster: Cluster, record: Callable[..., None]
) -> None:
    name = at_work(cluster, "pod-deleted")["metadata"]["name"]
    cluster.kubectl("delete", "pod", name)
    record("pod deleted by hand", wait_for_words(cluster, "pod-deleted", "attempt 2 starts at", "deleted"))
    cancel(cluster, "pod-deleted")


def test_a_run_that_is_deleted_leaves_neither_job_nor_pod_nor_result(
    cluster: Cluster, record: Callable[..., None]
) -> None:
    at_work(cluster, "deleted")
    cluster.kubectl("delete", "bmr", "deleted")
    for kind in ("jobs", "pods"):
        left = ("get", kind, "--selector=accelbench.dev/run=deleted", "--output=name")
        wait_until(lambda left=left: not cluster.kubectl(*left).stdout, what=f"its {kind} to go")
    assert not cluster.get("bmres", "--selector=accelbench.dev/run=deleted")["items"]
    record("run deleted in the middle")


def test_the_runs_of_a_deleted_namespace_are_deleted(cluster: Cluster, record: Callable[..., None]) -> None:
    at_work(dataclasses.replace(cluster, namespace=TERMINATING), "terminating")
    cluster.kubectl("delete", "namespace", TERMINATING, "--timeout=900s")
    record("namespace terminating")
