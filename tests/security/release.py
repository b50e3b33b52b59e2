"""The chart in a real API server's namespace, and what an account or a user may do there."""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any

from chart.helm import CHART, helm

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.cluster import Cluster

__all__ = ["Permissions", "installed", "permissions"]

Permissions = set[tuple[str, str, str]]
"""Group, resource and verb."""
REVIEWS = "authorization.k8s.io"
ANYBODY = "system:serviceaccount:default:nobody"
"""An account that no role is bound to: what is public in a cluster, it may."""


@contextlib.contextmanager
def installed(cluster: Cluster, **values: Any) -> Iterator[str]:
    """A release in the cluster's namespace, named after it, as some of its roles are the whole cluster's."""
    place = (cluster.namespace, f"--kubeconfig={cluster.kubeconfig}", f"--namespace={cluster.namespace}")
    # The session's other tests may have defined the kinds before.
    done = helm("install", "--take-ownership", *place, CHART, values=values)
    assert done.returncode == 0, done.stderr
    try:
        yield cluster.namespace
    finally:
        helm("uninstall", *place)


def permissions(cluster: Cluster, who: str, namespace: str) -> Permissions:
    """Return a user's permissions in a namespace beyond those of every account."""
    return _permissions(cluster, who, namespace) - _permissions(cluster, ANYBODY, namespace)


def _permissions(cluster: Cluster, who: str, namespace: str) -> Permissions:
    review = {"apiVersion": f"{REVIEWS}/v1", "kind": "SelfSubjectRulesReview", "spec": {"namespace": namespace}}
    asked = ("create", f"--as={who}", "--validate=false", "--filename=-", "--output=json")
    found = json.loads(cluster.kubectl(*asked, input=json.dumps(review)).stdout)["status"]
    assert not found["incomplete"], found
    return {
        (group, resource, verb)
        for rule in found["resourceRules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
