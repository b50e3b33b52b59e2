"""Puts both images onto the node of `make cluster`, and says how to install the chart there.

`PYTHONPATH=tests python -m image.load`, after `python -m cluster up --node`.
"""

# ruff: noqa: T201 - a command line prints

from __future__ import annotations

import json
import shlex
import shutil
import sys
from typing import TYPE_CHECKING, Any

from cluster.build import binaries, cache
from cluster.cluster import Cluster
from cluster.errors import ClusterError
from image.build import build_image

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["reach", "values_for"]

INSTALL = "helm install accelbench charts/accelbench --namespace accelbench --create-namespace --wait"
"""As docs/start.md has it, but for the registry: this node has its images from an archive."""
GIGABYTE = 1e9
NEEDED = 15 * GIGABYTE
"""The runner's image is 4 GB packed and 9 GB unpacked: both frameworks come with CUDA's libraries."""


def reach(cluster: Cluster) -> dict[str, Any]:
    """The chart's values that say where the API server is: the tests' node routes no Services."""
    server = {"KUBERNETES_SERVICE_HOST": cluster.server.hostname, "KUBERNETES_SERVICE_PORT": str(cluster.server.port)}
    return {"extraEnv": [{"name": name, "value": value} for name, value in server.items()]}


def values_for(cluster: Cluster) -> dict[str, Any]:
    """The same, and the images as the node has them."""
    images = {"operator": "accelbench-operator", "runner": "accelbench-runner", "tag": "test"}
    return reach(cluster) | {"images": images}


def load(directory: Path) -> None:
    """Into the cluster of that directory; raises ClusterError where there is none, or too little room."""
    kubeconfig = directory / "kubeconfig"
    if not kubeconfig.exists():
        raise ClusterError("no cluster is up: start one with `make cluster`")
    if (free := shutil.disk_usage(directory).free) < NEEDED:
        raise ClusterError(
            f"{directory} has {free / GIGABYTE:.0f} GB of disk left, and the images need {NEEDED / GIGABYTE:.0f} GB: "
            "the kubelet would evict every pod"
        )
    cluster = Cluster(kubeconfig=kubeconfig, kubectl_program=binaries().kubectl)
    for target in ("operator", "runner"):
        print(f"image: unpacking the {target}'s ...", file=sys.stderr, flush=True)
        cluster.import_image(build_image(target))
    values = directory / "values.yaml"
    values.write_text(json.dumps(values_for(cluster), indent=2))
    print("The images are on the node. Install with:", file=sys.stderr, flush=True)
    print(f"{INSTALL} --values {shlex.quote(str(values))}")


def main() -> int:
    """Do it; returns the exit status."""
    try:
        load(cache() / "run")
    except ClusterError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
