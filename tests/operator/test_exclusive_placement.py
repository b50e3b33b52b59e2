"""Nothing shares a node with an exclusive case: decided by the real scheduler, on nodes without a kubelet."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from accelbench_operator.runs.job import build_job
from cluster.cluster import Cluster
from cluster.errors import DeadlineError
from cluster.wait import wait_until
from operator_world.builders import make_plan
from operator_world.fake_kubelet import FakeKubelet

CRDS = Path(__file__).parents[2] / "crds"
DEVICES = {"example.com/gpu": "2"}
PROFILES = """
processors: {platform: cpu, memory: 1Gi, tolerations: [{key: placement}]}
devices: {platform: cuda, resource: example.com/gpu, memory: 1Gi, tolerations: [{key: placement}]}
"""


@pytest.fixture
def node(control_plane: Cluster, cluster: Cluster, tmp_path: Path) -> Iterator[FakeKubelet]:
    control_plane.define(CRDS)
    with FakeKubelet(control_plane, tmp_path, "placement") as running:
        control_plane.kubectl("label", "node", "placement", "kubernetes.io/hostname=placement")
        # Pods that other tests have left behind wait for a node, too.
        control_plane.kubectl("taint", "node", "placement", "placement=:NoSchedule")
        running.offer(**DEVICES)
        yield running
        # Nobody is there to end them, and they would stand on the next node of that name.
        cluster.kubectl("delete", "pods", "--all", "--force", "--grace-period=0")


def start(cluster: Cluster, name: str, profile: str) -> None:
    """Create the pod of a run's case as the operator would."""
    from accelbench.api.profiles import Profiles, parse_profiles

    plan = make_plan(profiles=Profiles(parse_profiles(PROFILES, source="test")), accelerator={"profile": profile})
    template = build_job(plan.run, plan.cases[0], 1, plan.runner)["spec"]["template"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": template["metadata"] | {"name": name}}
    cluster.apply(yaml.safe_load(yaml.safe_dump(pod | {"spec": template["spec"]})))


def is_placed(cluster: Cluster, name: str) -> bool:
    return bool(cluster.get("pod", name)["spec"].get("nodeName"))


def wait_for_a_place(cluster: Cluster, kubelet: FakeKubelet, name: str) -> None:
    def is_placed_on_a_node_that_is_alive() -> bool:
        kubelet.offer(**DEVICES)  # its heartbeat
        return is_placed(cluster, name)

    try:
        wait_until(is_placed_on_a_node_that_is_alive, what=f"{name} to be placed", every_seconds=0.5)
    except DeadlineError as error:
        node = cluster.get("node", "placement")
        raise AssertionError(f"{refusal(cluster, name)}\n{node['spec']}\n{node['status']['conditions']}") from error


def refusal(cluster: Cluster, name: str) -> str:
    conditions: list[dict[str, Any]] = cluster.get("pod", name).get("status", {}).get("conditions", [])
    return next((each.get("message", "") for each in conditions if each["type"] == "PodScheduled"), "")


def wait_for_refusal(cluster: Cluster, name: str) -> None:
    wait_until(lambda: "anti-affinity" in refusal(cluster, name), what=f"the scheduler to refuse {name}")
    assert not is_placed(cluster, name)


@pytest.mark.parametrize(("first", "second"), [("processors", "processors"), ("processors", "devices")])
def test_an_exclusive_case_shares_no_node_with_any_other_case(
    cluster: Cluster, node: FakeKubelet, first: str, second: str
) -> None:
    for one, other in ((first, second), (second, first)):
        start(cluster, "one", one)
        wait_for_a_place(cluster, node, "one")
        start(cluster, "other", other)
        wait_for_refusal(cluster, "other")
        assert is_placed(cluster, "one")
        cluster.kubectl("delete", "pod", "one", "--force", "--grace-period=0")
        wait_for_a_place(cluster, node, "other")
        cluster.kubectl("delete", "pod", "other", "--force", "--grace-period=0")


def test_cases_with_devices_of_their_own_share_a_node(cluster: Cluster, node: FakeKubelet) -> None:
    for name in ("one", "other"):
        start(cluster, name, "devices")
        wait_for_a_place(cluster, node, name)
    assert [cluster.get("pod", name)["spec"]["nodeName"] for name in ("one", "other")] == ["placement", "placement"]
