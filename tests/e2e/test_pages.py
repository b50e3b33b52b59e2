"""The commands of the pages end with a verdict in kubectl and in Grafana, on a real node."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import pytest

from accelbench import __version__
from chart.helm import CHART, adopt, helm
from cluster.wait import wait_until
from e2e.installation import scraping
from grafana.dashboards import ALL
from image.build import build_image, image_name
from image.load import reach
from pages.machine import at_cluster, checkout
from pages.page import REGISTRY, ROOT, Page
from pages.table import RUN

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cluster.cluster import Cluster

pytestmark = pytest.mark.nightly

PAGES = {path: places["node"] for path, places in RUN.items() if "node" in places}
RELEASE, NAMESPACE = "accelbench", "accelbench"


@pytest.fixture
def bare(cluster: Cluster) -> Iterator[Cluster]:
    """The node as if it had pulled both images, without accelbench: another module's release is away for as long.

    It has them under the names that `make publish REGISTRY=...` gives them in the pages' registry, and under no other
    of this version: a page that does not say where images come from does not get any.
    """
    for target in ("operator", "runner"):
        cluster.import_image(build_image(target))
        cluster.name_image(image_name(target), f"{REGISTRY}/accelbench-{target}:{__version__}")
    cluster.define(ROOT / "crds")
    there = f"--kubeconfig={cluster.kubeconfig}"
    listed = json.loads(helm("list", "--all-namespaces", "--output=json", there).stdout)
    others = [each["namespace"] for each in listed if each["name"] == RELEASE]
    values = {
        each: json.loads(helm("get", "values", RELEASE, f"-n={each}", "-o=json", there).stdout) for each in others
    }
    for each in others:
        assert helm("uninstall", RELEASE, f"--namespace={each}", "--wait", there).returncode == 0
    adopt(cluster, RELEASE, NAMESPACE)
    try:
        yield cluster
    finally:
        helm("uninstall", RELEASE, f"--namespace={NAMESPACE}", "--wait", there)
        cluster.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", "--wait=false")
        for each in others:
            adopt(cluster, RELEASE, each)
            again = helm("install", RELEASE, CHART, f"--namespace={each}", "--wait", there, values=values[each])
            assert again.returncode == 0, again.stderr


def test_a_cluster_decides_which_framework_is_faster(bare: Cluster, tmp_path: Path) -> None:
    environment = at_cluster(bare, tmp_path / "shell", reach(bare))
    directory = checkout(tmp_path / "accelbench")
    start, tutorial = "docs/start.md", "docs/tutorials/cluster.md"
    Page.read(start).run(directory, environment, *PAGES[start])
    assert_grafana_shows_the_verdicts(bare, tmp_path / "prometheus")
    printed = Page.read(tutorial).run(directory, environment, *PAGES[tutorial])
    assert any(each in {"True", "False"} for each in printed)
    wait_until(lambda: bare.get("bmr")["items"][1:] == [], what="the tutorial's runs to be gone")
    results = bare.get("bmres")["items"]
    assert {each["result"]["case"]["workload"] for each in results} == {"matmul-chain", "softmax-rows"}


def assert_grafana_shows_the_verdicts(cluster: Cluster, directory: Path) -> None:
    """Of the first run: what the queries of Overview's table find in a Prometheus that scrapes the operator."""
    given = {each["variant"]: each["verdict"] for each in cluster.get("bmr", "matmul-chain")["status"]["comparisons"]}
    queries = dict(ALL["overview"].queries())
    with scraping(dataclasses.replace(cluster, namespace=NAMESPACE), directory, replicas=1) as prometheus:
        query = ALL["overview"].filled_in(queries["overview: Verdicts: verdict"], namespace=cluster.namespace)
        samples = prometheus.query(query)
    assert {each["metric"]["variant"]: each["metric"]["verdict"] for each in samples} == given
