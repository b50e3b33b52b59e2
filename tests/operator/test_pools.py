"""The real scheduler places each ready profile on nodes like those of the clouds' pools."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client

from accelbench.api.profiles import Profile, Profiles, load_presets
from accelbench.plan.placement import Node, fits, misfits, read_nodes
from accelbench_operator.runs.job import build_claim_template, build_job
from accelbench_operator.runs.observed import observe_pod
from accelbench_operator.runs.pending import explain_pending
from cluster.cluster import Cluster
from cluster.errors import DeadlineError
from cluster.wait import wait_until
from operator_world.builders import make_attempt, make_job, make_plan
from operator_world.pools import OURS, POOLS, PoolNodes, define_device_classes
from operator_world.process import OperatorProcess
from tiers import one_of_each

pytestmark = pytest.mark.slow

CRDS = Path(__file__).parents[2] / "crds"
GOES_TO = {
    "cpu": {"plain"},
    "nvidia": {
        *("gke-l4", "gke-a100", "gke-h100", "gke-h100-mig", "eks-nodegroup", "eks-karpenter", "eks-auto", "mig-single")
    },
    "gke-nvidia-l4": {"gke-l4"},
    "gke-nvidia-a100": {"gke-a100"},
    "gke-nvidia-h100": {"gke-h100", "gke-h100-mig"},
    "gke-nvidia-h100-mig-1g-10gb": {"gke-h100-mig"},
    "eks-nodegroup-nvidia-h100": {"eks-nodegroup"},
    "eks-karpenter-nvidia-h100": {"eks-karpenter"},
    "eks-auto-nvidia-h100": {"eks-auto"},
    "aks-nvidia": {"aks"},
    "aks-nvidia-h100": {"aks"},
    "nvidia-mig-1g-10gb": {"mig-mixed"},
    "nvidia-mig-3g-40gb": {"mig-mixed"},
    "nvidia-h100-mig-single-1g-10gb": {"mig-single"},
    "dra-nvidia": {"dra"},
    "dra-nvidia-mig": set(),
    "amd": {"amd"},
    "amd-mi300x": {"amd"},
    "gke-v5e-1x1": {"v5e-1x1"},
    "gke-v5e-2x2": {"v5e-2x2"},
    "gke-v5e-2x4": {"v5e-2x4"},
    "gke-v5p-2x2x1": {"v5p-2x2x1"},
    "gke-v6e-1x1": {"v6e-1x1"},
    "gke-v6e-2x2": {"v6e-2x2"},
    "gke-v6e-2x4": {"v6e-2x4"},
}


@pytest.fixture(scope="module")
def nodes(control_plane: Cluster) -> Iterator[PoolNodes]:
    define_device_classes(control_plane)
    with PoolNodes(control_plane, POOLS) as found:
        yield found


class Scheduler:
    """Ask the real scheduler about pods like those of the operator."""

    def __init__(self, cluster: Cluster, nodes: PoolNodes) -> None:
        self._cluster = cluster
        self._nodes = nodes
        self._core = client.CoreV1Api(cluster.client())

    def start(self, profile: Profile, name: str, **selector: str) -> None:
        """Create the pod of a case with that profile."""
        template = {"spec": {"tolerations": [OURS | {"operator": "Exists"}], "nodeSelector": selector}}
        variants = [{"use": "jax/jit"}, {"use": "jax/op-by-op"}]
        plan = make_plan(
            profiles=Profiles((profile,)),
            accelerator={"profile": profile.name},
            variants=variants,
            podTemplate=template,
        )
        if profile.device_class:
            claim = build_claim_template(plan.run, profile)
            del claim["metadata"]["ownerReferences"]
            claim["metadata"]["namespace"] = self._cluster.namespace
            self._cluster.apply(claim)
        made = build_job(plan.run, plan.cases[0], 1, plan.runner)["spec"]["template"]
        pod = {"metadata": made["metadata"] | {"name": name}, "spec": made["spec"]}
        self._core.create_namespaced_pod(self._cluster.namespace, pod)

    def decided(self) -> dict[str, Any]:
        """Return every pod by name, when each has a node or the reason that it has none."""
        self._nodes.beat()

        def all_are() -> bool:
            return all(self._is_decided(pod) for pod in self._pods().values())

        wait_until(all_are, what="the scheduler to have looked at every pod")
        return self._pods()

    def clear(self) -> None:
        self._core.delete_collection_namespaced_pod(self._cluster.namespace, grace_period_seconds=0)
        wait_until(lambda: not self._pods(), what="the pods to be gone")

    def close(self) -> None:
        self._core.api_client.close()

    def node_of(self, pod: Any) -> str | None:
        found: str | None = pod["spec"].get("nodeName")
        return found

    def _is_decided(self, pod: Any) -> bool:
        conditions = {each["type"]: each for each in pod["status"].get("conditions", ())}
        scheduled = conditions.get("PodScheduled", {})
        return bool(self.node_of(pod)) or (
            scheduled.get("reason") == "Unschedulable" and "waiting" not in scheduled["message"]
        )

    def _pods(self) -> dict[str, Any]:
        found = self._core.list_namespaced_pod(self._cluster.namespace)
        return {
            pod["metadata"]["name"]: pod for pod in self._core.api_client.sanitize_for_serialization(found)["items"]
        }


@pytest.fixture
def scheduler(cluster: Cluster, nodes: PoolNodes) -> Iterator[Scheduler]:
    asked = Scheduler(cluster, nodes)
    yield asked
    asked.clear()
    asked.close()


def read(cluster: Cluster) -> dict[str, Node]:
    """Return the nodes as `accelbench profiles` reads them, without the taint that keeps other tests' pods away."""
    manifests = [each for each in cluster.get("nodes")["items"] if each["metadata"]["name"] in POOLS]
    for each in manifests:
        each["spec"]["taints"] = [taint for taint in each["spec"]["taints"] if taint["key"] != OURS["key"]]
    pods = cluster.get("pods", "--all-namespaces")["items"]
    found = read_nodes(manifests, pods, cluster.get("resourceslices")["items"])
    return {node.name: node for node in found}


def test_every_ready_profile_has_a_pool_here() -> None:
    assert GOES_TO.keys() == load_presets().keys()


def kind_of(name: str) -> tuple[str, str | None, str | None]:
    """Return what decides on which nodes a profile's pods can run."""
    profile = load_presets()[name]
    return profile.platform, profile.resource, profile.device_class


@pytest.mark.parametrize("name", one_of_each(sorted(load_presets()), kind_of))
def test_pods_of_a_ready_profile_are_scheduled_to_its_pools_only(
    cluster: Cluster, scheduler: Scheduler, name: str
) -> None:
    profile = load_presets()[name]
    found = read(cluster)
    for pool in POOLS:
        scheduler.start(profile, pool, **{"kubernetes.io/hostname": pool})
    pods = scheduler.decided()

    assert {pool for pool, pod in pods.items() if scheduler.node_of(pod)} == GOES_TO[name]
    if name != "dra-nvidia-mig":  # which devices a class holds is scheduled in CEL, which only the scheduler reads
        assert {pool for pool, node in found.items() if fits(profile, node)} == GOES_TO[name]


@pytest.mark.parametrize(
    ("name", "pool", "reason", "remedy"),
    [
        ("gke-nvidia-h100", "gke-l4", "affinity/selector", "cloud.google.com/gke-accelerator=nvidia-h100-80gb"),
        ("gke-v5e-2x4", "v5e-2x4-two-hosts", "Insufficient google.com/tpu", "asks for 8 google.com/tpu"),
        ("nvidia", "aks", "untolerated taint", "does not tolerate that taint"),
        ("nvidia-mig-3g-40gb", "mig-single", "Insufficient nvidia.com/mig-3g.40gb", "asks for nvidia.com/mig-3g.40gb"),
        ("amd", "plain", "Insufficient amd.com/gpu", "asks for amd.com/gpu"),
        ("dra-nvidia", "plain", "cannot allocate all claims", "claims a device of DeviceClass gpu.nvidia.com"),
    ],
)
def test_the_message_of_an_unschedulable_pod_gives_the_reason_and_the_remedy(
    scheduler: Scheduler, name: str, pool: str, reason: str, remedy: str
) -> None:
    profile = load_presets()[name]
    scheduler.start(profile, "pod", **{"kubernetes.io/hostname": pool})
    (pod,) = scheduler.decided().values()

    plan = make_plan()
    message = explain_pending(make_job(plan, make_attempt(plan)), observe_pod(pod), profile)
    assert reason in message
    assert remedy in message


def test_resources_in_use_are_counted_as_the_scheduler_counts_them(cluster: Cluster, scheduler: Scheduler) -> None:
    profile = load_presets()["nvidia-mig-1g-10gb"]
    for name in ("one", "two", "three"):
        scheduler.start(profile, name)
    pods = scheduler.decided()
    assert sorted(filter(None, map(scheduler.node_of, pods.values()))) == ["mig-mixed", "mig-mixed"]

    node = read(cluster)["mig-mixed"]
    assert [each.message for each in misfits(profile, node)] == [
        "has 0 nvidia.com/mig-1g.10gb free, of 2 nvidia.com/mig-1g.10gb"
    ]
    assert fits(profile, node)


def test_an_exclusive_case_occupies_its_node_as_the_scheduler_sees_it(cluster: Cluster, scheduler: Scheduler) -> None:
    here = {"kubernetes.io/hostname": "plain"}
    scheduler.start(load_presets()["cpu"], "one", **here)
    (pod,) = scheduler.decided().values()
    assert scheduler.node_of(pod) == "plain"

    scheduler.start(load_presets()["cpu"], "other", **here)
    assert scheduler.node_of(scheduler.decided()["other"]) is None
    assert [each.message for each in misfits(load_presets()["cpu"], read(cluster)["plain"])] == [
        "a case has it to itself"
    ]


PROFILES = """
h200: {preset: gke-nvidia-h100, nodeSelector: {cloud.google.com/gke-accelerator: nvidia-h200-141gb}}
dra: {preset: dra-nvidia}
others: {preset: gke-nvidia-h100, namespaces: [others]}
"""


@pytest.fixture
def operator(control_plane: Cluster, cluster: Cluster, tmp_path: Path) -> Iterator[OperatorProcess]:
    control_plane.define(CRDS)
    process = OperatorProcess(cluster, tmp_path, profiles=PROFILES)
    process.start()
    yield process
    process.terminate()
    assert "Traceback" not in process.log(), process.log()


def run_on(cluster: Cluster, profile: str, **template: Any) -> None:
    """Apply a run with that name and profile."""
    spec = {
        "workload": {"name": "matmul-chain", "parameters": {"size": 64}},
        "variants": [{"use": "jax/jit"}, {"use": "jax/op-by-op"}],
        "accelerator": {"profile": profile},
        "podTemplate": template,
    }
    cluster.apply(
        {"apiVersion": "accelbench.dev/v1alpha1", "kind": "BenchmarkRun", "metadata": {"name": profile}, "spec": spec}
    )


def wait_for_words(cluster: Cluster, operator: OperatorProcess, run: str, condition: str, *words: str) -> None:
    def message() -> str:
        conditions = cluster.get("bmr", run).get("status", {}).get("conditions", [])
        return next((str(each["message"]) for each in conditions if each["type"] == condition), "")

    try:
        wait_until(lambda: all(each in message() for each in words), what=f"{run} to say {words}")
    except DeadlineError as error:
        raise AssertionError(f"{message()}\n{operator.log()}") from error


def test_the_conditions_of_a_run_give_the_reason_that_it_cannot_be_placed(
    cluster: Cluster, nodes: PoolNodes, operator: OperatorProcess
) -> None:
    nodes.beat()
    run_on(cluster, "h200", spec={"tolerations": [OURS | {"operator": "Exists"}]})
    run_on(cluster, "others")
    why = ("No node takes the pod", "selects nodes by cloud.google.com/gke-accelerator=nvidia-h200-141gb")
    wait_for_words(cluster, operator, "h200", "Finished", *why)
    wait_for_words(cluster, operator, "others", "Accepted", "others is for runs in others", cluster.namespace)


def test_a_run_claims_its_device_and_leaves_nothing_behind(
    cluster: Cluster, nodes: PoolNodes, operator: OperatorProcess
) -> None:
    nodes.beat()
    run_on(cluster, "dra", spec={"tolerations": [OURS | {"operator": "Exists"}]})

    def placed() -> bool:
        return [each["spec"].get("nodeName") for each in cluster.get("pods")["items"]] == ["dra"]

    wait_until(placed, what="the case's pod to have a node")
    assert len(cluster.get("resourceclaimtemplates")["items"]) == 1

    cluster.kubectl("delete", "bmr", "dra", "--wait=false")
    # Nobody is there to end the pod.
    cluster.kubectl("delete", "pods", "--all", "--force", "--grace-period=0")
    wait_until(
        lambda: not cluster.get("resourceclaims,resourceclaimtemplates,jobs")["items"], what="everything to be gone"
    )


def test_a_claim_is_deleted_with_its_pod(cluster: Cluster, scheduler: Scheduler) -> None:
    scheduler.start(load_presets()["dra-nvidia"], "pod")
    (pod,) = scheduler.decided().values()
    assert scheduler.node_of(pod) == "dra"
    (claim,) = cluster.get("resourceclaims")["items"]
    assert claim["status"]["allocation"]["devices"]["results"][0]["driver"] == "gpu.nvidia.com"

    scheduler.clear()
    wait_until(lambda: not cluster.get("resourceclaims")["items"], what="the claim to go")
