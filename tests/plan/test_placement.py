"""Which node fits which profile, and why not; tests/operator/test_pools.py holds it against the real scheduler."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from kubernetes.utils import parse_quantity

from accelbench.api import labels
from accelbench.api.profiles import Profile, ProfileToleration
from accelbench.plan import placement
from accelbench.plan.placement import Node, Taint, fits, misfits, pod_requests, read_nodes, resources_without_profile

GPU = Profile(name="gpu", platform="cuda", resource="nvidia.com/gpu", cpu=4, memory="16Gi")
AMOUNTS = {
    "cpu": Decimal(8),
    "memory": Decimal(2**36),
    "ephemeral-storage": Decimal(2**36),
    "pods": Decimal(110),
    "nvidia.com/gpu": Decimal(2),
}
LINUX = {"kubernetes.io/os": "linux"}
NODE = Node("a", labels=LINUX, allocatable=AMOUNTS)


def why(profile: Profile, node: Node) -> list[tuple[str, str]]:
    return [(each.cause, each.message) for each in misfits(profile, node)]


def test_a_node_that_has_everything_fits() -> None:
    assert misfits(GPU, NODE) == ()


def test_a_missing_or_different_label_is_named() -> None:
    wanting = GPU.model_copy(update={"node_selector": {"kind": "a100"}})
    assert why(wanting, NODE) == [("label", "has no label kind")]
    assert why(wanting, replace(NODE, labels=LINUX | {"kind": "l4"})) == [("label", "kind is l4, not a100")]
    assert misfits(wanting, replace(NODE, labels=LINUX | {"kind": "a100"})) == ()


def test_a_node_of_another_system_or_architecture_fits_no_image() -> None:
    windows, arm = LINUX | {"kubernetes.io/os": "windows"}, LINUX | {"kubernetes.io/arch": "arm64"}
    assert why(GPU, replace(NODE, labels=windows)) == [("label", "kubernetes.io/os is windows, not linux")]
    amd = GPU.model_copy(update={"arch": "amd64"})
    assert why(amd, replace(NODE, labels=arm)) == [("label", "kubernetes.io/arch is arm64, not amd64")]


@pytest.mark.parametrize(
    ("toleration", "borne"),
    [
        ({"key": "gpu"}, True),
        ({"key": "gpu", "operator": "Equal", "value": "yes"}, True),
        ({"key": "gpu", "operator": "Equal", "value": "no"}, False),
        ({"key": "gpu", "effect": "NoExecute"}, False),
        ({"key": "other"}, False),
        ({}, True),
    ],
)
def test_a_taint_is_tolerated_as_a_toleration_defines(toleration: dict[str, Any], borne: bool) -> None:
    node = replace(NODE, taints=(Taint("gpu", "yes", "NoSchedule"),))
    profile = GPU.model_copy(update={"tolerations": (ProfileToleration(**toleration),)})
    assert why(profile, node) == ([] if borne else [("taint", "has the taint gpu=yes:NoSchedule")])


def test_a_taint_that_only_prefers_keeps_no_pod_off() -> None:
    assert misfits(GPU, replace(NODE, taints=(Taint("x", "", "PreferNoSchedule"),))) == ()


def test_missing_resources_and_resources_in_use_are_distinguished() -> None:
    without = replace(NODE, allocatable={**AMOUNTS, "nvidia.com/gpu": Decimal(0)})
    taken = replace(NODE, requested={"nvidia.com/gpu": Decimal(2)})
    small = replace(NODE, allocatable={**AMOUNTS, "cpu": Decimal("3.92")})
    assert why(GPU, without) == [("resource", "offers no nvidia.com/gpu")]
    assert why(GPU, taken) == [("occupied", "has 0 nvidia.com/gpu free, of 2 nvidia.com/gpu")]
    assert why(GPU, small) == [("resource", "offers 3.92 cpu, short of 4 cpu")]
    labelled = GPU.model_copy(update={"node_selector": {"kind": "l4"}})
    bare = replace(small, allocatable={**small.allocatable, "nvidia.com/gpu": Decimal(0)})
    assert [message for _, message in why(labelled, bare)] == [
        "offers no nvidia.com/gpu",
        "offers 3.92 cpu, short of 4 cpu",
        "has no label kind",
    ]
    assert [fits(GPU, node) for node in (without, taken, small)] == [False, True, False]


def test_an_exclusive_case_waits_for_the_others_and_keeps_them_off() -> None:
    alone = Profile(name="cpu", platform="cpu")
    assert [cause for cause, _ in why(alone, replace(NODE, cases=1))] == ["occupied"]
    assert [cause for cause, _ in why(GPU, replace(NODE, cases=1, exclusive=True))] == ["occupied"]
    assert misfits(GPU, replace(NODE, cases=1)) == ()


def test_a_claim_needs_a_driver_on_the_node() -> None:
    claiming = Profile(name="dra", platform="cuda", device_class="gpu.nvidia.com")
    assert [cause for cause, _ in why(claiming, NODE)] == ["resource"]
    assert misfits(claiming, replace(NODE, drivers=frozenset({"gpu.nvidia.com"}))) == ()


def test_devices_without_a_profile_are_listed_and_do_not_include_those_in_use() -> None:
    other = replace(NODE, name="b", allocatable={**AMOUNTS, "amd.com/gpu": Decimal(1), "hugepages-2Mi": Decimal(4)})
    tainted = replace(NODE, name="c", taints=(Taint("x", "", "NoSchedule"),))
    busy = replace(NODE, name="d", requested={"nvidia.com/gpu": Decimal(2)})
    found = resources_without_profile([GPU], [NODE, other, tainted, busy])
    assert {resource: [node.name for node in nodes] for resource, nodes in found.items()} == {
        "amd.com/gpu": ["b"],
        "nvidia.com/gpu": ["c"],
    }


def test_a_pod_counts_with_its_largest_request() -> None:
    def asks(cpu: str, **fields: Any) -> dict[str, Any]:
        return {"resources": {"requests": {"cpu": cpu}}, **fields}

    spec = {
        "containers": [asks("500m"), asks("1")],
        "initContainers": [asks("2"), asks("250m", restartPolicy="Always")],
        "overhead": {"cpu": "100m"},
    }
    assert pod_requests(spec) == {"cpu": Decimal("2.1"), "pods": Decimal(1)}
    assert pod_requests({"containers": [{}]}) == {"pods": Decimal(1)}


def test_nodes_are_read_with_what_is_on_them() -> None:
    marks = {labels.MANAGED_BY: labels.MANAGER, labels.CASE: "all"}
    on_it = {"nodeName": "a", "containers": [{"resources": {"requests": {"cpu": "2"}}}]}
    whole = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}}}
    pods = [
        {"metadata": {"labels": marks}, "spec": on_it | whole, "status": {"phase": "Running"}},
        {"metadata": {}, "spec": on_it, "status": {"phase": "Running"}},
        {"metadata": {}, "spec": on_it, "status": {"phase": "Succeeded"}},
        {"metadata": {}, "spec": {"containers": []}, "status": {"phase": "Pending"}},
    ]
    node = {
        "metadata": {"name": "a", "labels": {"kind": "x"}},
        "spec": {"taints": [{"key": "t", "effect": "NoSchedule"}]},
        "status": {"allocatable": {"cpu": "3920m", "google.com/tpu": "4", "hugepages-1Gi": "0"}},
    }
    slices = [{"spec": {"nodeName": "a", "driver": "gpu.nvidia.com"}}, {"spec": {"driver": "net", "allNodes": True}}]
    (read,) = read_nodes([node], pods, slices)
    assert (read.requested["cpu"], read.cases, read.exclusive) == (Decimal(4), 1, True)
    assert (read.devices, read.drivers) == ({"google.com/tpu": 4}, frozenset({"gpu.nvidia.com"}))
    assert str(read.taints[0]) == "t:NoSchedule"


@pytest.mark.parametrize("text", ["2", "500m", "64Gi", "1e3", "0", "3920m", "1.5Ti", "250M", "12k", "1E", "100u", "5n"])
def test_a_quantity_is_what_kubernetes_client_takes_it_for(text: str) -> None:
    assert placement.parse_quantity(text) == parse_quantity(text)


@pytest.mark.parametrize("text", ["", "many", "64Gib"])
def test_an_invalid_quantity_is_refused_as_such(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        placement.parse_quantity(text)
