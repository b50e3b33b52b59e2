"""The operator's process against a real API server, Job controller and garbage collector, and a simulated node."""

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from accelbench.api import labels
from accelbench.api.case import Case
from accelbench.api.result import Failure
from cluster.cluster import Cluster
from cluster.wait import wait_until
from crash.proxy import Proxy, Rule
from operator_world.builders import make_headline, make_log, make_result
from operator_world.fake_kubelet import IMAGE_ID, NODE, FakeKubelet
from operator_world.fixtures import CRDS
from operator_world.process import OperatorProcess
from operator_world.steps import apply, assert_one_result_for_each, condition, next_pod, patch, succeed, wait_for
from tiers import on_a_push

pytestmark = pytest.mark.slow


def test_the_operator_is_healthy_serves_metrics_and_exits_cleanly_on_a_signal(operator: OperatorProcess) -> None:
    def answers(port: int, path: str) -> bytes:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as response:
                return response.read()
        except OSError:
            return b""

    wait_until(lambda: answers(operator.health_port, "/healthz"), what="the probe's answer")
    assert json.loads(answers(operator.health_port, "/healthz"))["longest-work-seconds"] < 1
    assert b"accelbench_" in answers(operator.metrics_port, "/metrics")
    assert operator.terminate() == 0, operator.log()


@pytest.mark.parametrize("path", ["/api", "/apis", "/apis/accelbench.dev/v1alpha1"])
def test_the_operator_exits_without_a_traceback_while_its_first_answer_is_incomplete(
    cluster: Cluster, kubelet: FakeKubelet, tmp_path: Path, path: str
) -> None:
    asked = Rule(f"get {path}", 1, "half")
    with Proxy(cluster.kubeconfig, kill=lambda: None, rules=[asked]) as proxy:
        operator = OperatorProcess(cluster, tmp_path, server=proxy.url)
        operator.start()
        try:
            wait_until(lambda: asked.fired, what=f"its first request for {path}")
        finally:
            code = operator.terminate()
    assert (code, "Traceback" in operator.log()) == (0, False), operator.log()


def test_the_operator_exits_at_once_although_its_first_list_was_never_answered(
    cluster: Cluster, kubelet: FakeKubelet, tmp_path: Path
) -> None:
    asked = Rule("list pods", 1, "hang")
    with Proxy(cluster.kubeconfig, kill=lambda: None, rules=[asked]) as proxy:
        operator = OperatorProcess(cluster, tmp_path, server=proxy.url)
        operator.start()
        try:
            wait_until(
                lambda: asked.fired and any(seen.kind == "watch benchmarkruns" for seen in proxy.requests),
                what="its watch of runs",
            )
        finally:
            code = operator.terminate()
    assert (code, "Traceback" in operator.log()) == (0, False), operator.log()


def test_an_idle_operator_takes_less_than_120_megabytes(
    cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess
) -> None:
    apply(cluster)
    succeed(kubelet, next_pod(kubelet, cluster))
    wait_for(cluster, operator, "Finished", "Succeeded")
    status = Path(f"/proc/{operator.pid}/status").read_text()
    resident = int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])

    assert resident < 120 * 1024, f"{resident} KiB"


def test_a_deleted_namespace_does_not_delay_the_others(cluster: Cluster, kubelet: FakeKubelet, tmp_path: Path) -> None:
    """Its Role is deleted too, so every list there is refused."""
    served = f"{cluster.namespace},gone"
    operator = OperatorProcess(cluster, tmp_path, environment={"ACCELBENCH_NAMESPACES": served})
    operator.start()
    try:
        apply(cluster)
        succeed(kubelet, next_pod(kubelet, cluster))
        wait_for(cluster, operator, "Finished", "Succeeded")
        with urllib.request.urlopen(f"http://127.0.0.1:{operator.health_port}/readyz", timeout=5) as ready:
            assert ready.status == 200
        with urllib.request.urlopen(f"http://127.0.0.1:{operator.metrics_port}/metrics", timeout=5) as metrics:
            assert 'accelbench_operator_namespace_unlisted{namespace="gone"} 1.0' in metrics.read().decode()
    finally:
        code = operator.terminate()
    assert (code, "Traceback" in operator.log()) == (0, False), operator.log()


def test_an_operator_that_may_not_use_its_lease_is_not_ready_and_gives_the_reason(
    cluster: Cluster, kubelet: FakeKubelet, tmp_path: Path
) -> None:
    operator = OperatorProcess(cluster, tmp_path, environment={"ACCELBENCH_LEASE": "kube-system/operator"})

    def problems() -> str:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{operator.health_port}/readyz", timeout=5):
                return ""
        except urllib.error.HTTPError as refusal:
            return str(json.load(refusal)["problems"])
        except OSError:
            return ""

    operator.start()
    try:
        wait_until(lambda: "Lease kube-system/operator" in problems(), what="the reason")
    finally:
        operator.terminate()


def test_an_operator_survives_the_deletion_of_its_crds_and_continues_when_they_are_back(
    cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess
) -> None:
    wait_until(lambda: operator.is_ready, what="the operator to be ready")
    apply(cluster)
    kubelet.start(next_pod(kubelet, cluster))
    wait_for(cluster, operator, "Finished", "Running")
    pid = operator.pid
    cluster.kubectl("delete", "crd", "benchmarkruns.accelbench.dev", "benchmarkresults.accelbench.dev")
    try:
        wait_until(lambda: not operator.is_ready, what="the operator to be unready")
    finally:
        cluster.define(CRDS)
    wait_until(lambda: operator.is_ready, what="the operator to be ready again")
    apply(cluster, name="after")
    succeed(kubelet, next_pod(kubelet, cluster))
    wait_for(cluster, operator, "Finished", "Succeeded", name="after")
    assert (operator.pid, operator.terminate()) == (pid, 0), operator.log()


def test_one_of_three_api_servers_whose_clock_is_wrong_ends_no_run(
    cluster: Cluster, kubelet: FakeKubelet, tmp_path: Path
) -> None:
    errors = cycle([7200.0, 0.0, 0.0])
    wrong_answers = 10
    with Proxy(cluster.kubeconfig, kill=lambda: None) as proxy:
        operator = OperatorProcess(cluster, tmp_path, server=proxy.url)
        operator.start()
        try:
            apply(cluster, activeDeadlineSeconds=600)
            pod = next_pod(kubelet, cluster)
            kubelet.start(pod)
            wait_for(cluster, operator, "Finished", "Running")
            answered = len(proxy.requests)
            proxy.ahead = lambda: next(errors)
            parallelism = 1
            while len(proxy.requests) < answered + 3 * wrong_answers:
                parallelism += 1
                patch(cluster, parallelism=parallelism)
                wait_until(lambda: is_acknowledged(cluster), what="the operator to read the change")
            assert condition(cluster, "Finished")["reason"] == "Running"
            succeed(kubelet, pod)
            wait_for(cluster, operator, "Finished", "Succeeded")
        finally:
            operator.terminate()


def is_acknowledged(cluster: Cluster) -> bool:
    run = cluster.get("bmr", "chain")
    return bool(run["status"]["observedGeneration"] == run["metadata"]["generation"])


def test_an_applied_run_becomes_a_job_and_the_log_of_its_pod_a_stored_result(
    cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess
) -> None:
    apply(cluster)
    pod = next_pod(kubelet, cluster)
    wait_until(lambda: "No node takes the pod" in condition(cluster, "Finished").get("message", ""), what="the reason")
    kubelet.start(pod)
    wait_for(cluster, operator, "Finished", "Running")
    succeed(kubelet, pod)
    wait_for(cluster, operator, "Finished", "Succeeded")

    run = cluster.get("bmr", "chain")
    (result,) = cluster.get("bmres")["items"]
    assert run["status"]["headline"] == "jax/jit faster 2.00x (1.90 to 2.10)"
    assert result["metadata"]["labels"][labels.RUN_UID] == run["metadata"]["uid"]
    assert run["status"]["measuredCases"] == [result["result"]["case"]["name"]]
    assert not run["status"].get("attempts")
    where = result["summary"]
    assert (where["pod"], where["node"], where["image"]) == (pod.metadata.name, NODE, IMAGE_ID)
    assert run["status"]["runner"]["image"] == "accelbench-runner:test"
    assert result["result"]["comparisons"][0]["verdict"] == "faster"
    wait_until(lambda: not cluster.get("jobs")["items"], what="the Job to be deleted")
    events = cluster.get("events", "--field-selector=involvedObject.kind=BenchmarkRun")["items"]
    reasons = [event["reason"] for event in events]
    assert reasons == ["Succeeded"]


def test_the_log_of_a_variant_that_raised_can_be_read_until_its_job_expires(
    cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess
) -> None:
    apply(cluster)
    pod = next_pod(kubelet, cluster)
    result = make_result(kubelet.case_of(pod), failure=Failure(reason="Raised", message="oh", round=1))
    kubelet.start(pod)
    kubelet.end(pod, log=make_log(result), message=make_headline(result))
    wait_for(cluster, operator, "Finished", "VariantFailed")
    wait_until(lambda: cluster.get("jobs")["items"][0]["status"].get("conditions"), what="the end of the Job")
    assert "compiling" in cluster.kubectl("logs", f"--selector={labels.RUN}=chain").stdout
    [job] = cluster.get("jobs")["items"]
    path = "{.spec.template.metadata.annotations.accelbench\\.dev/case-document}"
    document = cluster.kubectl("get", "job", job["metadata"]["name"], f"--output=jsonpath={path}").stdout
    assert Case.model_validate_json(document).name == job["metadata"]["labels"][labels.CASE]

    patch(cluster, failedJobsHistorySeconds=0)
    wait_until(lambda: not cluster.get("jobs")["items"], what="the Job to be deleted")


def test_a_case_does_not_fail_if_its_job_expires_while_no_operator_runs(
    cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess
) -> None:
    apply(cluster)
    pod = next_pod(kubelet, cluster)
    kubelet.start(pod)
    wait_for(cluster, operator, "Finished", "Running")
    [job] = cluster.get("jobs")["items"]
    operator.kill()
    policy = '{"spec": {"ttlSecondsAfterFinished": 0}}'
    cluster.kubectl("patch", "job", job["metadata"]["name"], "--type=merge", f"--patch={policy}")
    succeed(kubelet, pod)
    wait_until(lambda: not cluster.get("jobs")["items"], what="the Job to be deleted")

    operator.start()
    succeed(kubelet, next_pod(kubelet, cluster))
    wait_for(cluster, operator, "Finished", "Succeeded")
    assert_one_result_for_each(cluster, 1)
    [message] = [event["message"] for event in cluster.get("events")["items"] if event["reason"] == "JobDeleted"]
    assert f"Job {job['metadata']['name']} was deleted before its result was stored, not by this operator" in message
    assert "The case itself did not fail" in message


def test_a_sidecar_that_keeps_running_delays_neither_the_result_nor_the_next_case(
    cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess
) -> None:
    apply(cluster, sizes=(64, 128))
    pod = next_pod(kubelet, cluster)
    result = make_result(kubelet.case_of(pod))
    kubelet.start(pod)
    kubelet.end(pod, log=make_log(result), message=make_headline(result), sidecar="istio-proxy")
    succeed(kubelet, next_pod(kubelet, cluster))
    wait_for(cluster, operator, "Finished", "Succeeded")

    assert kubelet.is_being_deleted(pod)
    notes = [result["result"].get("notes", []) for result in cluster.get("bmres")["items"]]
    assert sum("container istio-proxy still runs" in " ".join(lines) for lines in notes) == 1


@pytest.mark.parametrize(
    "moment",
    on_a_push(["recorded", "created", "running", "ended", "stored"], lambda moment: moment in {"created", "ended"}),
)
def test_an_operator_killed_at_any_moment_leaves_one_job_and_one_result_for_each_case(
    cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess, moment: str
) -> None:
    jobs: set[str] = set()

    def note_jobs() -> list[Any]:
        found = cluster.get("jobs")["items"]
        jobs.update(job["metadata"]["uid"] for job in found)
        return found

    def restart() -> None:
        operator.kill()
        operator.start()

    apply(cluster, sizes=(64, 128))
    if moment == "recorded":
        wait_until(lambda: cluster.get("bmr", "chain").get("status", {}).get("attempts"), what="an attempt")
        restart()
    if moment == "created":
        wait_until(note_jobs, what="a Job")
        restart()
    for _ in range(2):
        pod = next_pod(kubelet, cluster)
        note_jobs()
        kubelet.start(pod)
        if moment == "running":
            restart()
        result = make_result(kubelet.case_of(pod))
        if moment == "ended":
            operator.kill()
        kubelet.end(pod, log=make_log(result), message=make_headline(result))
        if moment == "ended":
            operator.start()
        if moment == "stored":
            case = kubelet.case_of(pod).name
            wait_until(
                lambda case=case: cluster.get("bmres", f"--selector={labels.CASE}={case}")["items"], what="a result"
            )
            restart()
    wait_for(cluster, operator, "Finished", "Succeeded")

    assert len(jobs) == 2
    assert_one_result_for_each(cluster, 2)


def test_a_suspended_run_discards_its_job_and_starts_the_case_again_when_resumed(
    cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess
) -> None:
    apply(cluster)
    discarded = next_pod(kubelet, cluster)
    kubelet.start(discarded)
    wait_for(cluster, operator, "Finished", "Running")
    patch(cluster, suspend=True)
    wait_for(cluster, operator, "Finished", "Suspended")
    wait_until(lambda: not cluster.get("jobs")["items"], what="the Job to be deleted")
    wait_until(lambda: kubelet.is_being_deleted(discarded), what="the pod to be deleted")
    kubelet.remove(discarded)
    patch(cluster, suspend=False)
    succeed(kubelet, next_pod(kubelet, cluster))
    wait_for(cluster, operator, "Finished", "Succeeded")

    [result] = cluster.get("bmres")["items"]
    assert result["result"]["case"]["origin"]["attempt"] == 2
    assert_one_result_for_each(cluster, 1)


def test_a_cancelled_run_finishes_and_keeps_its_results(
    cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess
) -> None:
    apply(cluster, sizes=(64, 128))
    succeed(kubelet, next_pod(kubelet, cluster))
    kubelet.start(next_pod(kubelet, cluster))
    wait_for(cluster, operator, "Finished", "Running")
    patch(cluster, cancel=True)
    wait_for(cluster, operator, "Finished", "Cancelled")

    assert cluster.get("bmr", "chain")["status"]["cases"] == {"total": 2, "active": 0, "measured": 1, "failed": 1}
    assert_one_result_for_each(cluster, 1)
    wait_until(lambda: not cluster.get("jobs")["items"], what="the Jobs to be deleted")


def test_a_container_killed_for_memory_names_the_variant_and_keeps_the_rounds_before(
    cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess, record: Callable[..., None]
) -> None:
    apply(cluster)
    pod = next_pod(kubelet, cluster)
    result = make_result(kubelet.case_of(pod))
    kubelet.start(pod)
    message = make_headline(result, state="running", running="jax/jit", digest=None)
    log = make_log(result, result.model_copy(update={"complete": False}))
    without_result = "\n".join(line for line in log.splitlines() if " result " not in line)
    kubelet.end(pod, log=without_result, message=message, exit_code=137, reason="OOMKilled")
    wait_for(cluster, operator, "Finished", "VariantFailed")
    record("out of memory", condition(cluster, "Succeeded"))

    (stored,) = cluster.get("bmres")["items"]
    variants = {variant["name"]: variant for variant in stored["result"]["variants"]}
    assert variants["jax/jit"]["failure"]["reason"] == "OutOfMemory"
    assert variants["pytorch/eager"]["seconds"]["medianSeconds"] == "0.1"


def test_the_result_holds_each_expectation_with_its_numbers(
    cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess
) -> None:
    apply(cluster, expectations=[{"metric": "speedup", "variant": "jax/jit", "atLeast": "3"}])
    succeed(kubelet, next_pod(kubelet, cluster))
    wait_for(cluster, operator, "Succeeded", "ExpectationNotMet")
    (stored,) = cluster.get("bmres")["items"]
    (judged,) = stored["expectations"]
    assert (judged["metric"], judged["atLeast"], judged["outcome"]) == ("speedup", "3", "not-met")
    assert judged["message"] in condition(cluster, "Succeeded")["message"]


@pytest.mark.parametrize(("policy", "left"), [("Retain", 1), ("Delete", 0)])
def test_a_result_outlives_its_run_if_the_run_asks_for_it(
    cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess, policy: str, left: int
) -> None:
    apply(cluster, resultRetentionPolicy=policy)
    succeed(kubelet, next_pod(kubelet, cluster))
    wait_for(cluster, operator, "Finished", "Succeeded")
    cluster.kubectl("delete", "bmr", "chain", "--cascade=foreground")
    wait_until(lambda: len(cluster.get("bmres")["items"]) == left, what=f"{left} results")
    assert not cluster.get("bmr")["items"]


def test_a_run_in_a_queue_on_a_cluster_without_kueue_reports_that_until_its_deadline(
    cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess
) -> None:
    apply(cluster, queue="benchmarks", startDeadlineSeconds=8)
    expected = "waits in queue benchmarks, and this cluster has no Kueue to admit it: install Kueue, or apply the run"
    wait_until(lambda: expected in condition(cluster, "Finished").get("message", ""), what="the reason")
    wait_for(cluster, operator, "Finished", "StartDeadlineExceeded")
    assert expected in condition(cluster, "Succeeded")["message"]
    wait_until(lambda: not cluster.get("jobs")["items"], what="the Job to be deleted")


@pytest.fixture
def replicas(cluster: Cluster, kubelet: FakeKubelet, tmp_path: Path) -> Iterator[tuple[OperatorProcess, ...]]:
    """Return the leader and its follower."""
    both = tuple(OperatorProcess(cluster, tmp_path / name, lease="operator") for name in ("one", "other"))
    try:
        for each in both:
            each.start()
            wait_until(lambda: any(replica.leads for replica in both), what="a leader")
        yield both
    finally:
        for each in both:
            each.resume()
            each.terminate()
    for each in both:
        assert "Traceback" not in each.log(), each.log()


def test_the_follower_takes_over_when_the_leader_is_killed(
    cluster: Cluster, kubelet: FakeKubelet, replicas: tuple[OperatorProcess, ...]
) -> None:
    leader, follower = replicas
    apply(cluster, sizes=(64, 128))
    pod = next_pod(kubelet, cluster)
    leader.kill()
    succeed(kubelet, pod)
    wait_until(lambda: follower.leads, what="the other to lead")  # how long that takes: benchmarks/failover.py
    leader.start()  # not before: it would stand for election, too
    succeed(kubelet, next_pod(kubelet, cluster))
    wait_for(cluster, follower, "Finished", "Succeeded")
    assert_one_result_for_each(cluster, 2)


def test_a_leader_that_exits_releases_its_lease_at_once(
    cluster: Cluster, replicas: tuple[OperatorProcess, ...]
) -> None:
    def holder() -> str:
        return cluster.get("lease", "operator")["spec"].get("holderIdentity") or ""

    leader, follower = replicas
    held = holder()
    assert leader.terminate() == 0, leader.log()
    assert holder() != held  # who is killed holds it until its time is up
    wait_until(lambda: follower.leads, what="the other to lead")
    leader.start()


def test_a_leader_that_was_paused_writes_nothing_when_it_resumes(
    cluster: Cluster, kubelet: FakeKubelet, replicas: tuple[OperatorProcess, ...]
) -> None:
    leader, follower = replicas
    apply(cluster)
    pod = next_pod(kubelet, cluster)
    leader.pause()
    wait_until(lambda: follower.leads, what="the other to lead")
    succeed(kubelet, pod)
    wait_for(cluster, follower, "Finished", "Succeeded")
    wait_until(lambda: not cluster.get("jobs")["items"], what="the Job to be deleted")
    version = cluster.get("bmr", "chain")["metadata"]["resourceVersion"]
    leader.resume()
    wait_until(lambda: "does not lead" in leader.log(), what="it to notice")

    assert not leader.leads
    assert cluster.get("bmr", "chain")["metadata"]["resourceVersion"] == version
    assert_one_result_for_each(cluster, 1)


def test_two_operators_of_two_classes_share_a_namespace_and_no_run(
    cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess, tmp_path: Path
) -> None:
    apply(cluster, name="staged", class_name="staging")
    apply(cluster)
    succeed(kubelet, next_pod(kubelet, cluster))
    wait_for(cluster, operator, "Finished", "Succeeded")
    assert "phase" not in cluster.get("bmr", "staged")["status"]

    other = OperatorProcess(cluster, tmp_path / "other", class_name="staging")
    other.start()
    try:
        pod = next_pod(kubelet, cluster)
        assert pod.metadata.labels[labels.RUN] == "staged"
        succeed(kubelet, pod)
        wait_until(
            lambda: cluster.get("bmr", "staged").get("status", {}).get("phase") == "Succeeded", what="the other's run"
        )
    finally:
        other.terminate()
    assert len(cluster.get("bmres")["items"]) == 2
