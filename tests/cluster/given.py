"""A cluster that the tests are given instead of starting one: only on purpose, and never somebody's by mistake."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from cluster.build import binaries
from cluster.cluster import Cluster
from cluster.errors import ForeignClusterError

__all__ = ["given_cluster"]

KUBECONFIG_VARIABLE = "ACCELBENCH_TEST_KUBECONFIG"
CONFIRM_VARIABLE = "ACCELBENCH_TEST_KUBECONFIG_CONFIRM"
EVERY_CLUSTERS_NAMESPACES = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})
OUR_NAMESPACES = "accelbench"


def given_cluster() -> Cluster | None:
    """Return the cluster that ACCELBENCH_TEST_KUBECONFIG names, or None where it is not set.

    Raises `ForeignClusterError` where it holds other namespaces than an empty one, unless the person who gave it has
    named its context in ACCELBENCH_TEST_KUBECONFIG_CONFIRM.
    """
    path = os.environ.get(KUBECONFIG_VARIABLE)
    if not path:
        return None
    installed = shutil.which("kubectl")
    program = Path(installed) if installed else binaries().kubectl
    cluster = Cluster(kubeconfig=Path(path).resolve(), kubectl_program=program)
    context = cluster.kubectl("config", "current-context").stdout.strip()
    found = {each["metadata"]["name"] for each in cluster.get("namespaces")["items"]}
    foreign = sorted(name for name in found - EVERY_CLUSTERS_NAMESPACES if name.partition("-")[0] != OUR_NAMESPACES)
    if foreign and os.environ.get(CONFIRM_VARIABLE) != context:
        raise ForeignClusterError(
            f"the cluster {context} has namespaces that are not the tests': {', '.join(foreign)}; "
            f"if it may be used and changed all the same, set {CONFIRM_VARIABLE}={context}"
        )
    return cluster
