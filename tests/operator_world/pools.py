"""Nodes like those of the pools of clouds and drivers, for the real scheduler, without kubelets.

Labels, taints and resources are those that `accelbench/api/presets.yaml` names the sources of.
"""

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from kubernetes import client

from cluster.cluster import Cluster
from cluster.wait import wait_until

OURS = {"key": "accelbench.dev/test", "effect": "NoSchedule"}
"""On every node beside its own: pods that other tests have left behind wait for a node, too."""
NVIDIA = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
TPU = {"key": "google.com/tpu", "value": "present", "effect": "NoSchedule"}
GKE = "cloud.google.com"


@dataclass(frozen=True)
class PoolNode:
    """Describe a node of a pool."""

    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    offers: Mapping[str, str] = field(default_factory=dict)
    driver: str = ""
    """That publishes one device of it as a ResourceSlice."""


def tpu(accelerator: str, topology: str, chips: int) -> PoolNode:
    labels = {f"{GKE}/gke-tpu-accelerator": accelerator, f"{GKE}/gke-tpu-topology": topology}
    return PoolNode(labels, (TPU,), {"google.com/tpu": str(chips)})


POOLS: Mapping[str, PoolNode] = {
    "plain": PoolNode(),
    "windows": PoolNode({"kubernetes.io/os": "windows"}),
    "gke-l4": PoolNode({f"{GKE}/gke-accelerator": "nvidia-l4"}, (NVIDIA,), {"nvidia.com/gpu": "1"}),
    "gke-a100": PoolNode({f"{GKE}/gke-accelerator": "nvidia-tesla-a100"}, (NVIDIA,), {"nvidia.com/gpu": "8"}),
    "gke-h100": PoolNode({f"{GKE}/gke-accelerator": "nvidia-h100-80gb"}, (NVIDIA,), {"nvidia.com/gpu": "8"}),
    "gke-h100-mig": PoolNode(
        {f"{GKE}/gke-accelerator": "nvidia-h100-80gb", f"{GKE}/gke-gpu-partition-size": "1g.10gb"},
        (NVIDIA,),
        {"nvidia.com/gpu": "56"},
    ),
    "eks-nodegroup": PoolNode(
        {"node.kubernetes.io/instance-type": "p5.48xlarge", "eks.amazonaws.com/nodegroup": "h100"},
        ({"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"},),
        {"nvidia.com/gpu": "8"},
    ),
    "eks-karpenter": PoolNode(
        {"karpenter.sh/nodepool": "gpu", "karpenter.k8s.aws/instance-gpu-name": "h100"},
        ({"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"},),
        {"nvidia.com/gpu": "8"},
    ),
    "eks-auto": PoolNode(
        {"eks.amazonaws.com/compute-type": "auto", "eks.amazonaws.com/instance-gpu-name": "h100"},
        ({"key": "nvidia.com/gpu", "effect": "NoSchedule"},),
        {"nvidia.com/gpu": "8"},
    ),
    "aks": PoolNode(
        {"kubernetes.azure.com/accelerator": "nvidia", "node.kubernetes.io/instance-type": "Standard_NC40ads_H100_v5"},
        ({"key": "sku", "value": "gpu", "effect": "NoSchedule"},),
        {"nvidia.com/gpu": "1"},
    ),
    "mig-mixed": PoolNode(
        {"nvidia.com/mig.strategy": "mixed", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
        (NVIDIA,),
        {"nvidia.com/mig-1g.10gb": "2", "nvidia.com/mig-3g.40gb": "1"},
    ),
    "mig-single": PoolNode(
        {"nvidia.com/mig.strategy": "single", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb"},
        (NVIDIA,),
        {"nvidia.com/gpu": "7"},
    ),
    "amd": PoolNode(
        {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"},
        ({"key": "amd.com/gpu", "effect": "NoSchedule"},),
        {"amd.com/gpu": "8"},
    ),
    "dra": PoolNode({}, (NVIDIA,), {}, driver="gpu.nvidia.com"),
    "v5e-1x1": tpu("tpu-v5-lite-podslice", "1x1", 1),
    "v5e-2x2": tpu("tpu-v5-lite-podslice", "2x2", 4),
    "v5e-2x4": tpu("tpu-v5-lite-podslice", "2x4", 8),
    "v5e-2x4-two-hosts": tpu("tpu-v5-lite-podslice", "2x4", 4),
    "v5p-2x2x1": tpu("tpu-v5p-slice", "2x2x1", 4),
    "v6e-1x1": tpu("tpu-v6e-slice", "1x1", 1),
    "v6e-2x2": tpu("tpu-v6e-slice", "2x2", 4),
    "v6e-2x4": tpu("tpu-v6e-slice", "2x4", 8),
}


class PoolNodes:
    """Create these nodes, ready for pods. Use as a context manager; `beat` renews their heartbeat for 30 s."""

    def __init__(self, cluster: Cluster, nodes: Mapping[str, PoolNode], *, tainted: bool = True) -> None:
        """Create the nodes; `tainted` keeps off pods without a toleration of our taint."""
        self._taints = (OURS,) if tainted else ()
        self._nodes = nodes
        self._core = client.CoreV1Api(cluster.client())
        self._devices = client.CustomObjectsApi(self._core.api_client)

    def __enter__(self) -> Self:
        for name, node in self._nodes.items():
            marks = {"kubernetes.io/os": "linux", "kubernetes.io/hostname": name, **node.labels}
            self._core.create_node(
                {
                    "metadata": {"name": name, "labels": marks},
                    "spec": {"taints": [dict(each) for each in (*self._taints, *node.taints)]},
                }
            )
            if node.driver:
                self._publish(name, node.driver)
        self.beat()
        return self

    def __exit__(self, *_: object) -> None:
        for name, node in self._nodes.items():
            if node.driver:
                self._devices.delete_cluster_custom_object("resource.k8s.io", "v1", "resourceslices", name)
            self._core.delete_node(name)
        self._core.api_client.close()

    def beat(self) -> None:
        now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        ready = {"type": "Ready", "status": "True", "reason": "Played", "message": "", "lastHeartbeatTime": now}
        for name, node in self._nodes.items():
            amounts = {"cpu": "64", "memory": "256Gi", "ephemeral-storage": "100Gi", "pods": "110", **node.offers}
            status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
            self._core.patch_node_status(name, {"status": status})
        wait_until(self._are_ready, what="the nodes to be ready")

    def _are_ready(self) -> bool:
        taints = [
            taint
            for node in self._core.list_node().items
            if node.metadata.name in self._nodes
            for taint in node.spec.taints or ()
        ]
        return not any(taint.key.startswith("node.kubernetes.io/") for taint in taints)

    def _publish(self, name: str, driver: str) -> None:
        """Publish a ResourceSlice like a driver on the node."""
        body: dict[str, Any] = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": name},
            "spec": {
                "driver": driver,
                "nodeName": name,
                "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": "gpu-0", "attributes": {"type": {"string": "gpu"}}}],
            },
        }
        self._devices.create_cluster_custom_object("resource.k8s.io", "v1", "resourceslices", body)


def define_device_classes(cluster: Cluster, names: Iterable[str] = ("gpu", "mig")) -> None:
    """Define a DeviceClass for each kind of device, like the chart of NVIDIA's driver."""
    for name in names:
        expression = f'device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "{name}"'
        body = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": f"{name}.nvidia.com"},
            "spec": {"selectors": [{"cel": {"expression": expression}}]},
        }
        cluster.apply(body)
