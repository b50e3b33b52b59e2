"""Large runs and hostile logs: the operator's memory is bounded, and other runs are measured."""

from pathlib import Path

import pytest

from accelbench.delivery.log import MARK
from accelbench_operator.runs.cluster import MAXIMUM_READ_BYTES
from cluster.cluster import Cluster
from cluster.wait import wait_until
from operator_world.builders import large_run
from operator_world.fake_kubelet import FakeKubelet
from operator_world.process import OperatorProcess
from operator_world.steps import apply, condition, next_pod, succeed, wait_for

pytestmark = pytest.mark.slow

LARGE_RUNS = 12
HOSTILE_LOGS = 4
MAXIMUM_MEGABYTES = 150
"""The chart's limit is 268 MB; the rest is for results and for other tenants' runs."""


def hostile_log() -> str:
    """Return a log of the largest size that is read as a whole: each line begins a document."""
    line = f"{MARK} result %06d 1/9 {'0' * 64} A\n"
    return "".join(line % number for number in range(MAXIMUM_READ_BYTES // len(line % 0)))


def test_large_runs_and_hostile_logs_take_bounded_memory_and_delay_no_other_run(
    cluster: Cluster, kubelet: FakeKubelet, operator: OperatorProcess
) -> None:
    names = [f"large-{number}" for number in range(LARGE_RUNS)]
    for number in range(LARGE_RUNS):
        run = large_run(number)
        cluster.apply(run | {"metadata": {"name": run["metadata"]["name"]}})
    wait_until(
        lambda: all(condition(cluster, "Finished", name).get("reason") == "Suspended" for name in names),
        what="the large runs to be accepted",
    )
    operator.terminate()
    operator.start()
    wait_until(lambda: operator.is_ready, what="the operator to be ready")
    apply(cluster, name="hostile", sizes=(8, 16, 32, 64), parallelism=HOSTILE_LOGS, infrastructureRetries=0)
    log = hostile_log()
    pods = []
    for _ in range(HOSTILE_LOGS):
        pods.append(next_pod(kubelet, cluster))
        kubelet.start(pods[-1])
    for pod in pods:
        kubelet.end(pod, log=log, message="")
    apply(cluster, name="honest")
    succeed(kubelet, next_pod(kubelet, cluster))
    wait_for(cluster, operator, "Finished", "Succeeded", "honest")
    wait_for(cluster, operator, "Finished", "CaseFailed", "hostile")
    status = Path(f"/proc/{operator.pid}/status").read_text()
    peak_kib = int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])
    assert peak_kib * 1024 < MAXIMUM_MEGABYTES * 1e6
