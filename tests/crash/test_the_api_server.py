"""The API server is killed and restarted, and etcd is compacted, while runs start and end."""

import base64
import functools
import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.cluster import Cluster
from cluster.processes import Processes
from cluster.run import down, end_abandoned, session_directory, up
from cluster.wait import HANG_SECONDS, wait_until
from crash.harness import faults_of, ready
from crash.lives import Life
from crash.world import World
from operator_world.fake_kubelet import FakeKubelet
from operator_world.process import OperatorProcess

pytestmark = pytest.mark.slow

CRDS = Path(__file__).parents[2] / "crds"
LIFE = Life("restarted", phase="Succeeded", sizes=(64, 128, 256))
RUNS = 12
TIMES = 3


@pytest.fixture
def own() -> Iterator[tuple[Cluster, Processes]]:
    """A control plane that nobody else needs."""
    end_abandoned()
    directory = session_directory()
    cluster, processes = up(directory, node=False, die_with_parent=True)
    try:
        cluster.define(CRDS)
        wait_until(lambda: not cluster.kubectl("get", "bmr,bmres", check=False).returncode, what="the kinds")
        yield cluster, processes
    finally:
        down(directory)
        processes.reap()


def compact(processes: Processes) -> int:
    """Have etcd forget what was before now: watches that begin earlier have expired. Returns the revision."""

    def ask(path: str, body: dict[str, object]) -> dict[str, dict[str, str]]:
        address = processes.option("kube-apiserver", "etcd-servers").removeprefix("http://")
        url = f"http://{address}/v3/kv/{path}"
        with urllib.request.urlopen(url, json.dumps(body).encode(), timeout=HANG_SECONDS) as response:
            return dict(json.loads(response.read()))

    revision = int(ask("range", {"key": base64.b64encode(b"any").decode()})["header"]["revision"])
    ask("compaction", {"revision": revision, "physical": True})
    return revision


def test_runs_continue_after_an_api_server_is_killed_and_etcd_is_compacted(
    own: tuple[Cluster, Processes], tmp_path: Path
) -> None:
    cluster, processes = own
    with FakeKubelet(cluster, tmp_path) as kubelet, World(cluster, kubelet) as world:
        operator = OperatorProcess(cluster, tmp_path / "operator")
        operator.start()
        try:
            wait_until(lambda: ready(operator), what="the operator to be ready")
            names = [f"restarted-{number:02}" for number in range(RUNS)]
            for name in names:
                world.live(cluster.namespace, name, LIFE)
            cluster.apply(*(LIFE.manifest(name) for name in names))
            for number in range(1, TIMES + 1):
                wanted = number * RUNS * len(LIFE.sizes) // (TIMES + 1)
                wait_until(functools.partial(has_results, world, wanted), what="results")
                assert compact(processes) > 0
                processes.restart("kube-apiserver")
            wrong = {name: faults_of(world, cluster.namespace, name, LIFE) for name in names}
        finally:
            code = operator.terminate()
        assert {name: found for name, found in wrong.items() if found} == {}, operator.log()[-4000:]
        assert code == 0


def has_results(world: World, count: int) -> bool:
    return len(world.ledger.results) >= count
