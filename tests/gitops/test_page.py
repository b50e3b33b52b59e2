"""The commands and files of the page about GitOps work unchanged."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from accelbench.local.manifests import read
from accelbench.plan.cases import plan_cases
from gitops.build import judges
from gitops.page import PAGE, ROOT, documents, schedule, shown
from gitops.phases import PHASES
from pages.machine import at_cluster
from pages.page import Page

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from accelbench.api.run import BenchmarkRun
    from cluster.cluster import Cluster


def nightly_run() -> dict[str, Any]:
    """The run that the CronJob creates."""
    [text] = [document["data"]["run.yaml"] for document in schedule() if document["kind"] == "ConfigMap"]
    run: dict[str, Any] = yaml.safe_load(text)
    return run


def runs(directory: Path) -> list[BenchmarkRun]:
    """Every run on the page, as `accelbench validate` reads it."""
    found = [*(document for document in documents() if document["kind"] == "BenchmarkRun"), nightly_run()]
    file = directory / "runs.yaml"
    file.write_text(yaml.safe_dump_all(found))
    return read(str(file))


def test_the_runs_of_the_page_are_valid(tmp_path: Path) -> None:
    for run in runs(tmp_path):
        assert plan_cases(run)


def test_the_table_of_the_page_has_every_phase_of_a_run() -> None:
    assert set(PHASES) <= set(shown())


def test_only_runs_that_are_not_applied_again_have_a_time_to_live(tmp_path: Path) -> None:
    for run in runs(tmp_path):
        assert run.metadata.generate_name or run.spec.run_policy.ttl_seconds_after_finished is None


@pytest.mark.nightly
def test_flux_accepts_the_kustomization_of_the_page() -> None:
    [document] = [each for each in documents() if each["apiVersion"].startswith("kustomize.toolkit.fluxcd.io/")]
    given = {"input": yaml.safe_dump(document), "capture_output": True, "text": True}
    done = subprocess.run([judges(), "kustomization"], check=False, **given)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def benchmarks(cluster: Cluster) -> Iterator[Cluster]:
    """A cluster with the page's namespace, to which the restricted Pod Security standard applies."""
    cluster.define(ROOT / "crds")
    cluster.kubectl("create", "namespace", "benchmarks")
    cluster.kubectl("label", "namespace", "benchmarks", "pod-security.kubernetes.io/warn=restricted")
    yield cluster
    cluster.kubectl("delete", "namespace", "benchmarks")


@pytest.mark.slow
def test_the_schedule_of_the_page_may_only_create_runs(benchmarks: Cluster) -> None:
    applied = ("apply", "--server-side", "--validate=strict", "--namespace=benchmarks", "--filename=-")
    said = benchmarks.kubectl(*applied, input=yaml.safe_dump_all(schedule()))
    assert "PodSecurity" not in said.stderr
    account = ("--namespace=benchmarks", "--as=system:serviceaccount:benchmarks:nightly")
    for _ in range(2):
        benchmarks.kubectl("create", *account, "--filename=-", input=json.dumps(nightly_run()))
    created = benchmarks.get("bmr", "--namespace=benchmarks")["items"]
    assert [run["metadata"]["generateName"] for run in created] == ["nightly-", "nightly-"]
    name = created[0]["metadata"]["name"]
    assert "Forbidden" in benchmarks.kubectl("delete", "bmr", name, *account, check=False).stderr


@pytest.mark.slow
def test_kubectl_prunes_a_run_as_the_page_describes(benchmarks: Cluster) -> None:
    [option] = re.findall(r"--prune-allowlist=[^\s`]+", PAGE.read_text())
    applied = ("apply", "--namespace=benchmarks", "--prune", option, "--selector=team=vision", "--filename=-")
    for name in ("old", "new"):
        run = nightly_run() | {"metadata": {"name": name, "labels": {"team": "vision"}}}
        benchmarks.kubectl(*applied, input=json.dumps(run))
    assert [run["metadata"]["name"] for run in benchmarks.get("bmr", "--namespace=benchmarks")["items"]] == ["new"]


@pytest.mark.slow
def test_the_command_of_the_page_adds_the_health_checks_and_keeps_other_settings(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.kubectl("create", "namespace", "argocd")
    try:
        cluster.kubectl("create", "configmap", "argocd-cm", "--namespace=argocd", "--from-literal=url=https://here")
        Page.read(str(PAGE.relative_to(ROOT))).run(ROOT, at_cluster(cluster, tmp_path / "shell"), "Argo CD")
        settings = cluster.get("configmap", "argocd-cm", "--namespace=argocd")["data"]
    finally:
        cluster.kubectl("delete", "namespace", "argocd", "--wait=false")
    checks = yaml.safe_load((ROOT / "examples" / "argocd" / "argocd-cm.yaml").read_text())["data"]
    assert settings == checks | {"url": "https://here"}
