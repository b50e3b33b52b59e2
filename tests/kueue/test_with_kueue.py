"""The operator's process, Kueue's controller and a real control plane; only the node is played."""

import json
from typing import Any

import pytest

from accelbench.api import labels
from cluster.cluster import Cluster
from cluster.wait import wait_until
from operator_world.builders import make_headline, make_log, make_result
from operator_world.fake_kubelet import FakeKubelet
from operator_world.process import OperatorProcess
from operator_world.steps import apply, assert_one_result_for_each, condition, next_pod, patch, succeed, wait_for

pytestmark = pytest.mark.slow


def wait_for_words(cluster: Cluster, *words: str, name: str = "chain") -> None:
    """Wait until the run's `Finished` condition has all these words."""
    try:
        wait_until(
            lambda: all(each in condition(cluster, "Finished", name).get("message", "") for each in words),
            what=f"{words} in the condition",
        )
    except Exception as error:
        raise AssertionError(f"{condition(cluster, 'Finished', name)}\n{cluster.get('workloads')}") from error


def stop(cluster: Cluster, policy: str) -> None:
    """Have the test's ClusterQueue stop, or go on with `None`."""
    change = json.dumps({"spec": {"stopPolicy": policy}})
    cluster.kubectl("patch", "clusterqueue", cluster.namespace, "--type=merge", f"--patch={change}")


def let_go(kubelet: FakeKubelet, pod: Any) -> None:
    """Terminate the runner: it delivers its partial result, and the pod is deleted."""
    wait_until(lambda: kubelet.is_being_deleted(pod), what="the pod to be told to go")
    partial = make_result(kubelet.case_of(pod), complete=False)
    kubelet.end(pod, log=make_log(partial), message=make_headline(partial), exit_code=143, reason="Error")
    kubelet.remove(pod)


def attempt(cluster: Cluster, name: str = "chain") -> tuple[int, str | None]:
    """Return the number of the run's only attempt and the reason of its failure, or of its result."""
    for result in cluster.get("bmres", f"--selector={labels.RUN}={name}")["items"]:
        return result["result"]["case"]["origin"]["attempt"], None
    [found] = cluster.get("bmr", name)["status"]["attempts"]
    return found["number"], found.get("reason")


def test_a_run_whose_queue_has_room_is_admitted_and_leaves_no_workload(
    cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess, queue: str, page: dict[str, Any]
) -> None:
    cluster.apply(page["BenchmarkRun"])
    name = page["BenchmarkRun"]["metadata"]["name"]
    succeed(kubelet, next_pod(kubelet, cluster))
    wait_for(cluster, operator, "Finished", "Succeeded", name=name)

    assert_one_result_for_each(cluster, 1)
    assert attempt(cluster, name) == (1, None)
    wait_until(lambda: not cluster.get("workloads")["items"], what="the Workload to go")


def test_a_run_in_a_full_queue_reports_kueues_message_and_runs_when_there_is_room(
    cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess, queue: str
) -> None:
    apply(cluster, queue=queue, name="before", sizes=(128,))
    occupying = next_pod(kubelet, cluster)
    kubelet.start(occupying)
    apply(cluster, queue=queue)
    wait_for_words(cluster, f"waits in queue {queue}: ", "insufficient unused quota for cpu in flavor any-node")
    waiting = cluster.get("bmr", "chain")["status"]
    assert waiting["phase"] == "Queued"
    assert (waiting.get("activeStartTime"), waiting["activeSeconds"]) == (None, 0)

    succeed(kubelet, occupying)
    kubelet.start(next_pod(kubelet, cluster))
    wait_for(cluster, operator, "Finished", "Running")
    assert cluster.get("bmr", "chain")["status"]["activeStartTime"]
    [pod] = [each for each in kubelet.pods(cluster.namespace) if each.status.phase == "Running"]
    succeed(kubelet, pod)
    wait_for(cluster, operator, "Finished", "Succeeded")
    assert_one_result_for_each(cluster, 2)


def test_a_resource_that_the_queue_does_not_cover_is_named_with_the_cluster_queue_that_lacks_it(
    cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess, queue: str
) -> None:
    spec = cluster.get("clusterqueue", cluster.namespace)["spec"]
    [group] = spec["resourceGroups"]
    group["coveredResources"].remove("ephemeral-storage")
    resources = group["flavors"][0]["resources"]
    group["flavors"][0]["resources"] = [each for each in resources if each["name"] != "ephemeral-storage"]
    cluster.kubectl("patch", "clusterqueue", cluster.namespace, "--type=merge", f"--patch={json.dumps({'spec': spec})}")
    apply(cluster, queue=queue)
    wait_for_words(
        cluster,
        f"waits in queue {queue}: ",
        "resource ephemeral-storage unavailable in ClusterQueue",
        f"coveredResources of ClusterQueue {cluster.namespace}",
    )


def test_a_preempted_case_starts_again_once_it_is_admitted_and_spends_no_retry(
    cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess, queue: str
) -> None:
    apply(cluster, queue=queue, infrastructureRetries=0)
    preempted = next_pod(kubelet, cluster)
    kubelet.start(preempted)
    wait_for(cluster, operator, "Finished", "Running")
    apply(cluster, queue=queue, name="urgent", priority="urgent", sizes=(128,))
    let_go(kubelet, preempted)
    wait_for_words(cluster, "Kueue took it back (Preempted): ")
    assert attempt(cluster) == (1, None)

    succeed(kubelet, next_pod(kubelet, cluster))
    wait_for(cluster, operator, "Finished", "Succeeded", name="urgent")
    again = next_pod(kubelet, cluster)
    assert again.metadata.name != preempted.metadata.name
    succeed(kubelet, again)
    wait_for(cluster, operator, "Finished", "Succeeded")
    assert attempt(cluster) == (1, None)
    assert_one_result_for_each(cluster, 2)


def test_a_queue_that_is_drained_and_opened_again_before_the_pod_has_gone_loses_no_case(
    cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess, queue: str
) -> None:
    apply(cluster, queue=queue, infrastructureRetries=0)
    drained = next_pod(kubelet, cluster)
    kubelet.start(drained)
    wait_for(cluster, operator, "Finished", "Running")
    stop(cluster, "HoldAndDrain")
    wait_for_words(cluster, "Kueue took it back (ClusterQueueStopped): The ClusterQueue is stopped")
    stop(cluster, "None")
    wait_for_words(cluster, f"Pod {drained.metadata.name}", "has not ended yet")
    let_go(kubelet, drained)
    succeed(kubelet, next_pod(kubelet, cluster))
    wait_for(cluster, operator, "Finished", "Succeeded")

    assert attempt(cluster) == (1, None)
    assert_one_result_for_each(cluster, 1)


def test_a_misspelt_queue_is_named_with_the_nearest_one_until_the_deadline_ends_the_run(
    cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess, queue: str
) -> None:
    apply(cluster, queue="benchmark", startDeadlineSeconds=10)
    words = (f"LocalQueue benchmark does not exist in namespace {cluster.namespace}", f"did you mean {queue}?")
    wait_for_words(cluster, *words)
    wait_for(cluster, operator, "Finished", "StartDeadlineExceeded")
    wait_for_words(cluster, "did not start within 10 s", *words)
    wait_until(lambda: not cluster.get("jobs,workloads")["items"], what="its Job and Workload to go")
    assert attempt(cluster) == (1, "StartDeadlineExceeded")


def test_a_run_continues_when_its_missing_queue_is_created(
    cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess, queue: str
) -> None:
    apply(cluster, queue="late")
    wait_for_words(cluster, "LocalQueue late does not exist")
    made = cluster.get("localqueue", queue)
    cluster.apply({**made, "metadata": {"name": "late"}})
    succeed(kubelet, next_pod(kubelet, cluster))
    wait_for(cluster, operator, "Finished", "Succeeded")
    assert attempt(cluster) == (1, None)
    assert_one_result_for_each(cluster, 1)


def test_a_run_that_is_suspended_and_resumed_waits_in_its_present_queue(
    cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess, queue: str
) -> None:
    apply(cluster, queue="benchmark")
    wait_for_words(cluster, f"did you mean {queue}?")
    patch(cluster, suspend=True)
    wait_for(cluster, operator, "Finished", "Suspended")
    cluster.kubectl("label", "--overwrite", "bmr", "chain", f"{labels.QUEUE}={queue}")
    patch(cluster, suspend=False)
    succeed(kubelet, next_pod(kubelet, cluster))
    wait_for(cluster, operator, "Finished", "Succeeded")
    assert_one_result_for_each(cluster, 1)


def test_a_queued_run_that_is_cancelled_leaves_no_workload(
    cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess, queue: str
) -> None:
    stop(cluster, "Hold")
    apply(cluster, queue=queue)
    wait_for_words(cluster, f"waits in queue {queue}: ", "is inactive")
    patch(cluster, cancel=True)
    wait_for(cluster, operator, "Finished", "Cancelled")
    wait_until(lambda: not cluster.get("jobs,workloads")["items"], what="its Job and Workload to go")
    assert attempt(cluster) == (1, "Cancelled")


def test_a_queued_run_that_is_deleted_leaves_no_workload(
    cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess, queue: str
) -> None:
    stop(cluster, "Hold")
    apply(cluster, queue=queue)
    wait_until(lambda: cluster.get("workloads")["items"], what="its Workload")
    cluster.kubectl("delete", "bmr", "chain")
    wait_until(lambda: not cluster.get("jobs,workloads")["items"], what="its Job and Workload to go")
