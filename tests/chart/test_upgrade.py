"""Upgrade, rollback and removal of a release keep the definitions, runs and results by default.

Each test has a control plane of its own: definitions are the whole cluster's.
"""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from accelbench.api import crd
from accelbench.api.metadata import ObjectMeta
from accelbench.api.result import BenchmarkResult, Result
from api.manifests import GOOD
from chart.helm import CHART, helm
from cluster.run import down, session_directory, up
from cluster.wait import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.cluster import Cluster

pytestmark = pytest.mark.slow

ROOT = CHART.parents[1]
PREVIOUS = Path(__file__).parent / "previous" / "accelbench-0.1.0.tgz"
"""The chart as it was: its definitions in crds/, which Helm installs and never looks at again."""
MEASURED = ROOT / "tests" / "data" / "matmul-chain.result.json"
"""Of the previous chart's days: it has no number that its definitions lack."""
RELEASE = "accelbench"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A cluster that nobody else has."""
    directory = session_directory()
    cluster, processes = up(directory, node=False, die_with_parent=True)
    try:
        yield cluster
    finally:
        down(directory)
        processes.reap()


def release(cluster: Cluster, *command: str | Path, name: str = RELEASE, **values: Any) -> str:
    """Run helm on a release; return its error, empty if it succeeded."""
    place = (f"--kubeconfig={cluster.kubeconfig}", f"--namespace={cluster.namespace}")
    action, *rest = command
    given = {"values": values} if action in {"install", "upgrade"} else {}
    done = helm(str(action), name, *rest, *place, **given)
    return done.stderr if done.returncode else ""


def fill(cluster: Cluster) -> None:
    """A run with a status, and a result that was measured."""
    wait_until(lambda: cluster.kubectl("get", "bmr,bmres", check=False).returncode == 0, what="both kinds to be served")
    cluster.apply(GOOD)
    status = '{"status": {"phase": "Succeeded"}}'
    cluster.kubectl("patch", "bmr", "matmul-chain", "--subresource=status", "--type=merge", f"--patch={status}")
    cluster.apply(stored("measured", recompilations=None))


def stored(name: str, *, recompilations: int | None) -> dict[str, Any]:
    """A result that was measured, as a release wrote it before targets and environments; with a number, or without."""
    measured = Result.model_validate_json(MEASURED.read_text())
    document = BenchmarkResult.from_result(measured, ObjectMeta(name=name), ()).model_dump(
        mode="json", by_alias=True, exclude_none=True
    )
    del document["result"]["compiled"]
    del document["result"]["case"]["environments"]
    for variant in document["result"]["variants"]:
        variant["numbers"].pop("recompilations", None)
        if recompilations is not None:
            variant["numbers"]["recompilations"] = recompilations
    return document | {"metadata": {"name": name}}


def held(cluster: Cluster) -> dict[str, Any]:
    """Everything in them but who wrote it last."""
    found = cluster.get("bmr,bmres")["items"]
    for each in found:
        each["metadata"].pop("managedFields", None)
    return {f"{each['kind']}/{each['metadata']['name']}": each for each in found}


def has_all_of(found: Any, expected: Any) -> bool:
    """Return True if nothing of `expected` is missing or changed; newer definitions may add defaults."""
    if isinstance(expected, dict) and isinstance(found, dict):
        return all(key in found and has_all_of(found[key], value) for key, value in expected.items())
    return bool(found == expected)


def definitions(cluster: Cluster) -> dict[str, Any]:
    wanted = [f"{kind.plural}.accelbench.dev" for kind in crd.KINDS]
    found = {each["metadata"]["name"]: each for each in cluster.get("crds")["items"]}
    return {name: found[name] for name in wanted if name in found}


def older(directory: Path) -> Path:
    """This chart, as of a release whose runs had no columns in `kubectl get`, and whose results lacked a number."""
    chart = shutil.copytree(CHART, directory / "accelbench")
    for kind in ("benchmarkruns", "benchmarkresults"):
        file = chart / "definitions" / f"{kind}.accelbench.dev.yaml"
        definition = yaml.safe_load(file.read_text())
        version = definition["spec"]["versions"][0]
        if kind == "benchmarkruns":
            del version["additionalPrinterColumns"]
        else:
            result = version["schema"]["openAPIV3Schema"]["properties"]["result"]["properties"]
            del result["variants"]["items"]["properties"]["numbers"]["properties"]["recompilations"]
        file.write_text(yaml.safe_dump(definition, sort_keys=False))
    return chart


def columns(cluster: Cluster) -> list[str]:
    """Return the output of `kubectl get` for runs; an API server without their columns shows their age."""
    version = definitions(cluster)["benchmarkruns.accelbench.dev"]["spec"]["versions"][0]
    return [each["name"] for each in version.get("additionalPrinterColumns", [{"name": "Age"}])]


def test_an_upgrade_from_the_previous_chart_keeps_all_runs_and_results(cluster: Cluster) -> None:
    assert not release(cluster, "install", PREVIOUS)
    fill(cluster)
    before = held(cluster)
    assert len(before) == 2

    # Definitions of another release are not adopted unasked: Helm names the required owner.
    refused = release(cluster, "upgrade", CHART)
    assert "invalid ownership metadata" in refused
    assert "benchmark" in refused
    assert held(cluster) == before

    assert not release(cluster, "upgrade", CHART, "--take-ownership")
    assert has_all_of(held(cluster), before)
    for definition in definitions(cluster).values():
        assert definition["metadata"]["annotations"]["meta.helm.sh/release-name"] == RELEASE
        assert definition["metadata"]["annotations"]["helm.sh/resource-policy"] == "keep"

    assert not release(cluster, "rollback", "1")
    assert has_all_of(held(cluster), before)

    assert not release(cluster, "upgrade", CHART)
    assert has_all_of(held(cluster), before)

    assert not release(cluster, "uninstall")
    assert not cluster.get("deployments")["items"]
    assert has_all_of(held(cluster), before)

    assert not release(cluster, "install", CHART)
    assert has_all_of(held(cluster), before)


def test_an_upgrade_installs_new_definitions_and_a_rollback_the_previous_ones(cluster: Cluster, tmp_path: Path) -> None:
    assert not release(cluster, "install", older(tmp_path))
    fill(cluster)
    before = held(cluster)
    assert columns(cluster) == ["Age"]

    assert not release(cluster, "upgrade", CHART)
    assert "Workload" in columns(cluster)
    assert held(cluster) == before

    assert not release(cluster, "rollback", "1")
    assert columns(cluster) == ["Age"]
    assert held(cluster) == before


def test_a_number_that_a_rollback_hides_is_visible_after_the_next_upgrade(cluster: Cluster, tmp_path: Path) -> None:
    """An API server leaves out what its definitions lack, and keeps it."""

    def recompilations() -> set[int | None]:
        variants = cluster.get("bmres", "newer")["result"]["variants"]
        return {variant["numbers"].get("recompilations") for variant in variants}

    assert not release(cluster, "install", older(tmp_path))
    assert not release(cluster, "upgrade", CHART)
    cluster.apply(stored("newer", recompilations=7))
    assert recompilations() == {7}
    assert not release(cluster, "rollback", "1")
    wait_until(lambda: recompilations() == {None}, what="the older definition to be served")
    assert not release(cluster, "upgrade", CHART)
    wait_until(lambda: recompilations() == {7}, what="the newer definition to be served")


def test_a_second_release_leaves_the_definitions_to_the_first(cluster: Cluster) -> None:
    assert not release(cluster, "install", CHART)
    refused = release(cluster, "install", CHART, name="second", className="second")
    assert 'must equal "second": current value is "accelbench"' in refused
    assert not release(cluster, "install", CHART, name="second", className="second", crds={"enabled": False})
    fill(cluster)
    before = held(cluster)
    assert not release(cluster, "uninstall", name="second")
    assert held(cluster) == before


def test_a_release_in_another_namespace_can_adopt_the_definitions_of_the_previous_one(cluster: Cluster) -> None:
    assert not release(cluster, "install", CHART)
    fill(cluster)
    before = held(cluster)
    assert not release(cluster, "uninstall")

    cluster.kubectl("create", "namespace", "elsewhere")
    moved = dataclasses.replace(cluster, namespace="elsewhere")
    refused = release(moved, "install", CHART)
    assert "invalid ownership metadata" in refused
    assert 'meta.helm.sh/release-namespace" must equal "elsewhere"' in refused

    assert not release(moved, "install", CHART, "--take-ownership")
    assert moved.get("deployments")["items"]
    assert held(cluster) == before
    for definition in definitions(cluster).values():
        assert definition["metadata"]["annotations"]["meta.helm.sh/release-namespace"] == "elsewhere"
    assert not release(moved, "upgrade", CHART)


def test_definitions_that_are_not_kept_are_deleted_with_the_release(cluster: Cluster) -> None:
    assert not release(cluster, "install", CHART, crds={"keep": False})
    assert len(definitions(cluster)) == len(crd.KINDS)
    assert not release(cluster, "uninstall")
    wait_until(lambda: not definitions(cluster), what="the definitions to be gone")
