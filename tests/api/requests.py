"""Requests to the API server without kubectl, for tests that need many of them."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kubernetes.client import ApiException, CustomObjectsApi

from accelbench.api.metadata import GROUP, VERSION
from api.refusals import without_notes
from cluster.cluster import Cluster

AS_KUBECTL_ASKS = {"dry_run": "All", "field_validation": "Strict"}


class Runs:
    """Send dry runs for BenchmarkRuns of a namespace: they are validated completely but not stored."""

    def __init__(self, api: CustomObjectsApi, namespace: str) -> None:
        self._api = api
        self._where = (GROUP, VERSION, namespace, "benchmarkruns")

    def create(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Return the run as it would be stored."""
        return dict(self._api.create_namespaced_custom_object(*self._where, manifest, **AS_KUBECTL_ASKS))

    def refusals_to_create(self, manifest: Mapping[str, Any]) -> set[str]:
        with _caught() as refusals:
            self.create(manifest)
        return refusals

    def refusals_to_update(self, manifest: Mapping[str, Any]) -> set[str]:
        name = manifest["metadata"]["name"]
        stored = self._api.get_namespaced_custom_object(*self._where, name)
        metadata = {**manifest["metadata"], "resourceVersion": stored["metadata"]["resourceVersion"]}
        with _caught() as refusals:
            self._api.replace_namespaced_custom_object(
                *self._where, name, {**manifest, "metadata": metadata}, **AS_KUBECTL_ASKS
            )
        return refusals


@contextmanager
def runs_of(cluster: Cluster) -> Iterator[Runs]:
    with cluster.client() as client:
        yield Runs(CustomObjectsApi(client), cluster.namespace)


@contextmanager
def _caught() -> Iterator[set[str]]:
    refusals: set[str] = set()
    try:
        yield refusals
    except ApiException as error:
        status = json.loads(error.body)
        if status["reason"] == "BadRequest":
            refusals |= set(status["message"].partition("strict decoding error: ")[2].split(", "))
        else:
            refusals |= without_notes(f"{cause['field']}: {cause['message']}" for cause in status["details"]["causes"])
