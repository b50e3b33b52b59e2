"""A real control plane and the operator's own process; the node is played, for what no real one can be brought to do.

A kubelet whose log has another digest, a node that says nothing for hours, an operator that was away for as long or
whose clock is wrong.
"""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from accelbench.delivery.log import MAXIMUM_BYTES_BY_KIND, digest_of
from cluster.wait import wait_until
from crash.proxy import Proxy
from operator_world.builders import make_headline, make_log, make_result
from operator_world.fake_kubelet import FakeKubelet
from operator_world.process import OperatorProcess
from taxonomy.runs import condition, ended

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from accelbench.api.result import Result
    from cluster.cluster import Cluster

pytestmark = pytest.mark.slow

CRDS = Path(__file__).parents[2] / "crds"
ONCE = {"infrastructureRetries": 0}


@pytest.fixture(scope="module")
def kubelet(control_plane: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeKubelet]:
    control_plane.define(CRDS)
    with FakeKubelet(control_plane, tmp_path_factory.mktemp("kubelet"), "taxonomy") as running:
        yield running


@pytest.fixture
def operator(cluster: Cluster, tmp_path: Path) -> Iterator[OperatorProcess]:
    process = OperatorProcess(cluster, tmp_path)
    yield process
    process.terminate()
    assert "Traceback" not in process.log(), process.log()


def apply(cluster: Cluster, sizes: tuple[int, ...] = (64,), **policy: Any) -> None:
    spec = {
        "workload": {"name": "matmul-chain"},
        "variants": [{"use": "pytorch/eager"}, {"use": "jax/jit"}],
        "sweep": [{"name": "size", "values": list(sizes)}],
        "measurement": {"timeLimitSeconds": 60},
        "runPolicy": policy,
    }
    kind = {"apiVersion": "accelbench.dev/v1alpha1", "kind": "BenchmarkRun"}
    cluster.apply({**kind, "metadata": {"name": "chain"}, "spec": spec})


def next_pod(kubelet: FakeKubelet, cluster: Cluster) -> Any:
    def waiting() -> list[Any]:
        return [pod for pod in kubelet.pods(cluster.namespace) if pod.status.phase == "Pending"]

    wait_until(waiting, what="a pod")
    return waiting()[0]


def succeed(kubelet: FakeKubelet, pod: Any, ago: timedelta = timedelta()) -> None:
    result = make_result(kubelet.case_of(pod))
    kubelet.start(pod, ago)
    kubelet.end(pod, log=make_log(result), message=make_headline(result), ago=ago)


def succeeded(cluster: Cluster) -> dict[str, Any]:
    wait_until(lambda: condition(cluster, "chain")["status"] == "True", what="the run to finish")
    found = condition(cluster, "chain", "Succeeded")
    assert found["status"] == "True", found
    return found


def large(result: Result, size: int) -> Result:
    """Return the result with notes of at least `size` bytes, which no compression makes small."""
    source = random.Random(0)  # noqa: S311 - the same in every run
    notes = tuple(source.randbytes(512).hex() for _ in range(size // 1024))
    return result.model_copy(update={"notes": notes})


def test_a_pod_is_lost_if_its_node_is_silent_past_the_deadline_and_the_node_is_named(
    cluster: Cluster, kubelet: FakeKubelet, tmp_path: Path, record: Callable[..., None]
) -> None:
    with Proxy(cluster.kubeconfig, kill=lambda: None) as proxy:
        operator = OperatorProcess(cluster, tmp_path, server=proxy.url)
        operator.start()
        apply(cluster, **ONCE)
        kubelet.start(next_pod(kubelet, cluster))
        wait_until(lambda: condition(cluster, "chain")["reason"] == "Running", what="the run to run")
        operator.kill()
        # As if the operator came back after more than an hour, in which the node has reported nothing.
        proxy.ahead = lambda: timedelta(minutes=65).total_seconds()
        operator.start()
        try:
            words = ("NodeLost: pod ", "but node taxonomy has not reported it", "Check whether the node is Ready")
            record("node lost", ended(cluster, "chain", "CaseFailed", *words))
            wait_until(lambda: not cluster.get("jobs")["items"], what="the Job to be deleted")
        finally:
            operator.terminate()
    assert "Traceback" not in operator.log(), operator.log()


def test_a_result_that_is_too_large_leaves_its_headline_and_a_remedy(
    cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess, record: Callable[..., None]
) -> None:
    operator.start()
    apply(cluster, **ONCE)
    pod = next_pod(kubelet, cluster)
    most = MAXIMUM_BYTES_BY_KIND["result"]
    result = large(make_result(kubelet.case_of(pod)), most)
    kubelet.start(pod)
    kubelet.end(pod, log=make_log(result), message=make_headline(result))
    words = ("only the runner's headline is left", f"too large: more than {most // 1024} KiB", "compare fewer variants")
    record("result too large", ended(cluster, "chain", "Incomplete", *words))


def test_a_log_whose_beginning_was_rotated_away_leaves_its_headline_and_names_the_missing_part(
    cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess, record: Callable[..., None]
) -> None:
    operator.start()
    apply(cluster, **ONCE)
    pod = next_pod(kubelet, cluster)
    result = large(make_result(kubelet.case_of(pod)), 20 * 1024)
    kubelet.start(pod)
    rest = make_log(result).splitlines()[3:]
    kubelet.end(pod, log="\n".join(rest), message=make_headline(result))
    words = ("only the runner's headline is left", "result 1: truncated: ", "see BenchmarkResult")
    record("log rotated", ended(cluster, "chain", "Incomplete", *words))


def test_an_altered_log_is_rejected_and_the_run_reports_it(
    cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess, record: Callable[..., None]
) -> None:
    operator.start()
    apply(cluster, **ONCE)
    pod = next_pod(kubelet, cluster)
    result = make_result(kubelet.case_of(pod))
    kubelet.start(pod)
    forged = make_result(kubelet.case_of(pod), speedup="2.05")
    mark = digest_of(forged.to_json())
    log = make_log(forged).replace(mark, digest_of(result.to_json()))
    kubelet.end(pod, log=log, message=make_headline(result))
    words = ("only the runner's headline is left", "altered", "see BenchmarkResult")
    record("digest mismatch", ended(cluster, "chain", "Incomplete", *words))
    [stored] = cluster.get("bmres")["items"]
    assert all("verdict" not in each for each in stored["result"]["comparisons"])


def test_a_run_whose_result_is_deleted_before_the_end_does_not_succeed(
    cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess, record: Callable[..., None]
) -> None:
    operator.start()
    apply(cluster, sizes=(64, 128))
    succeed(kubelet, next_pod(kubelet, cluster))
    wait_until(lambda: cluster.get("bmres")["items"], what="the first result")
    pod = next_pod(kubelet, cluster)
    cluster.kubectl("delete", "bmres", "--all")
    succeed(kubelet, pod)
    words = ("its result is gone", "Apply the run under another name")
    record("result deleted by hand", ended(cluster, "chain", "ResultMissing", *words))


def test_an_operator_that_was_down_for_hours_stores_the_results_of_that_time(
    cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess, record: Callable[..., None]
) -> None:
    operator.start()
    apply(cluster, activeDeadlineSeconds=600)
    pod = next_pod(kubelet, cluster)
    operator.kill()
    succeed(kubelet, pod, ago=timedelta(hours=5))
    operator.start()
    record("operator away for hours", succeeded(cluster))
    assert cluster.get("bmr", "chain")["status"].get("activeSeconds", 0) < 600


@pytest.mark.parametrize(("row", "clock"), [("operator's clock ahead", "+20m"), ("operator's clock behind", "-20m")])
def test_a_clock_that_is_wrong_by_minutes_ends_no_healthy_case(
    cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess, record: Callable[..., None], row: str, clock: str
) -> None:
    operator.start(clock)
    apply(cluster, startDeadlineSeconds=300, activeDeadlineSeconds=300)
    pod = next_pod(kubelet, cluster)
    kubelet.start(pod)
    wait_until(lambda: condition(cluster, "chain")["reason"] == "Running", what="the run to run")
    succeed(kubelet, pod)
    record(row, succeeded(cluster))
    assert "WARNING accelbench_operator.engine.clock" in operator.log()


@pytest.mark.parametrize("clock", ["+20m", "-20m"])
def test_a_clock_that_is_wrong_by_minutes_keeps_no_run_beyond_its_deadline(
    cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess, clock: str
) -> None:
    operator.start(clock)
    apply(cluster, activeDeadlineSeconds=5)
    kubelet.start(next_pod(kubelet, cluster))
    ended(cluster, "chain", "ActiveDeadlineExceeded")
