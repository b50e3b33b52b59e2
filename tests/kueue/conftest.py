"""A control plane with Kueue for these tests alone, because its webhooks change every Job."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from cluster.run import down, session_directory, up
from kueue.build import kueue
from kueue.controller import start_kueue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.cluster import Cluster

PAGE = Path(__file__).parents[2] / "docs" / "operations" / "kueue.md"


@pytest.fixture(scope="session")
def control_plane() -> Iterator[Cluster]:
    """In place of the one that all other tests share, so `cluster` is a namespace of it."""
    built, directory = kueue(), session_directory()
    cluster, processes = up(directory, node=False, die_with_parent=True)
    try:
        start_kueue(built, cluster, processes, directory / "kueue")
        yield cluster
    finally:
        down(directory)
        processes.reap()


@pytest.fixture(scope="session")
def page() -> dict[str, Any]:
    """What the page has a reader apply, by kind."""
    blocks = [rest.partition("```")[0] for rest in PAGE.read_text().split("```yaml\n")[1:]]
    return {document["kind"]: document for block in blocks for document in yaml.safe_load_all(block)}


@pytest.fixture
def queue(cluster: Cluster, page: dict[str, Any]) -> str:
    """Return the name of the page's LocalQueue in the test's namespace."""
    objects = copy.deepcopy({kind: each for kind, each in page.items() if kind != "BenchmarkRun"})
    # Of the whole cluster, so the test has one of its own.
    objects["ClusterQueue"]["metadata"]["name"] = objects["LocalQueue"]["spec"]["clusterQueue"] = cluster.namespace
    cluster.apply(*objects.values())
    return str(objects["LocalQueue"]["metadata"]["name"])
