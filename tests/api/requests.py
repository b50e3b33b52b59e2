"""Requests to the API server without kubectl, for tests that need many of them or no help from it."""

from collections.abc import Mapping
from typing import Any

from kubernetes.client import CustomObjectsApi

from accelbench.api.run import GROUP, VERSION
from cluster.cluster import Cluster


def dry_run(cluster: Cluster, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Create a run all but for the storing, as strictly as kubectl asks for; return it as it would be stored."""
    with cluster.client() as client:
        return dry_run_with(CustomObjectsApi(client), cluster.namespace, manifest)


def dry_run_with(api: CustomObjectsApi, namespace: str, manifest: Mapping[str, Any]) -> dict[str, Any]:
    created = api.create_namespaced_custom_object(
        GROUP, VERSION, namespace, "benchmarkruns", manifest, dry_run="All", field_validation="Strict"
    )
    return dict(created)
