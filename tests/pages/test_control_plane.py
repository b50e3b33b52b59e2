"""Commands of the pages for administrators that need an API server but no pod work."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from accelbench.api.metadata import ObjectMeta
from accelbench.api.result import BenchmarkResult
from accelbench.api.run import BenchmarkRun
from accelbench.plan.cases import plan_cases
from chart.helm import adopt
from cluster.wait import wait_until
from operator_world.builders import make_result
from pages.machine import at_cluster, checkout
from pages.page import ROOT, Page
from pages.table import RUN

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cluster.cluster import Cluster

pytestmark = pytest.mark.slow

PAGES = {path: places["control plane"] for path, places in RUN.items() if "control plane" in places}
MY_RUN = {
    "apiVersion": "accelbench.dev/v1alpha1",
    "kind": "BenchmarkRun",
    "metadata": {"name": "my-run"},
    "spec": {"workload": {"name": "matmul-chain"}, "variants": [{"use": "pytorch/eager"}, {"use": "jax/jit"}]},
}


@pytest.fixture
def environment(cluster: Cluster, tmp_path: Path) -> Iterator[dict[str, str]]:
    """A shell there. What a page leaves in the whole cluster is gone afterwards, the definitions excepted."""
    cluster.define(ROOT / "crds")
    adopt(cluster, "accelbench", "accelbench")
    yield at_cluster(cluster, tmp_path / "shell")
    cluster.kubectl("delete", "namespace", "accelbench", "team-a", "--ignore-not-found", "--wait=false")
    cluster.kubectl("delete", "secret", "registry", "--ignore-not-found")
    bindings = ("rolebinding/benchmarks-jane", "rolebinding/benchmarks-view-jane")
    cluster.kubectl("delete", "--namespace=default", "--ignore-not-found", *bindings)


def test_an_administrator_installs_upgrades_and_removes_the_operator(
    environment: dict[str, str], tmp_path: Path
) -> None:
    directory = checkout(tmp_path / "accelbench")
    install, upgrade = "docs/operations/install.md", "docs/operations/upgrade.md"
    (directory / "results").mkdir()
    *there, remove = PAGES[install]
    printed = Page.read(install).run(directory, environment, *there)
    assert any("h100" in each for each in printed)
    Page.read(upgrade).run(directory, environment, *PAGES[upgrade])
    Page.read(install).run(directory, environment, remove)


def test_a_namespace_is_held_to_the_restricted_standard(
    environment: dict[str, str], cluster: Cluster, tmp_path: Path
) -> None:
    page = "docs/operations/security.md"
    cluster.kubectl("create", "namespace", "team-a")
    Page.read(page).run(tmp_path, environment, *PAGES[page])
    labels = cluster.get("namespace", "team-a")["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"


def test_the_commands_for_troubleshooting_show_the_run(
    environment: dict[str, str], cluster: Cluster, tmp_path: Path
) -> None:
    page = "docs/operations/troubleshooting.md"
    cluster.apply(MY_RUN)
    listed, described, _ = Page.read(page).run(tmp_path, environment, *PAGES[page])
    assert "my-run" in listed
    assert "my-run" in described


def test_results_come_back_as_they_were(environment: dict[str, str], cluster: Cluster, tmp_path: Path) -> None:
    page = "docs/operations/backup.md"
    copy, back = PAGES[page]
    # The page copies every namespace; those of tests before this one may still be on their way out.
    wait_until(lambda: not cluster.get("bmres", "--all-namespaces")["items"], what="no results of earlier tests")
    cluster.apply(_stored())
    before = _contents(cluster)
    Page.read(page).run(tmp_path, environment, copy)
    assert "matmul-chain" in (tmp_path / "results.csv").read_text()
    cluster.kubectl("delete", "bmres", "--all")
    wait_until(lambda: _contents(cluster) == {}, what="the results to be gone")
    Page.read(page).run(tmp_path, environment, back)
    assert _contents(cluster) == before != {}


def _stored() -> dict[str, Any]:
    """A result as the operator stores one."""
    [case] = plan_cases(BenchmarkRun.model_validate(MY_RUN))
    metadata = ObjectMeta(name="my-run-1", labels={"accelbench.dev/run": "my-run"})
    document = BenchmarkResult.from_result(make_result(case), metadata, [])
    return json.loads(document.model_dump_json(by_alias=True, exclude_none=True))


def _contents(cluster: Cluster) -> dict[str, tuple[Any, Any]]:
    items = cluster.get("bmres")["items"]
    return {item["metadata"]["name"]: (item["metadata"]["labels"], item["result"]) for item in items}
