"""The chart on a real API server."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from chart.helm import CHART, helm
from chart.schemas import schemas
from chart.switches import EVERYTHING, SWITCHES
from cluster.wait import wait_until
from pages.machine import at_cluster
from security.release import installed as release_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cluster.cluster import Cluster

pytestmark = pytest.mark.slow


@pytest.fixture
def installed(cluster: Cluster) -> Iterator[Cluster]:
    """A cluster with the chart in the test's namespace."""
    with release_in(cluster):
        yield cluster


def test_the_chart_installs_the_definitions_with_the_operator(installed: Cluster) -> None:
    assert installed.get("benchmarkruns")["items"] == []
    assert installed.get("benchmarkresults")["items"] == []
    (deployment,) = installed.get("deployments")["items"]
    assert deployment["spec"]["template"]["spec"]["serviceAccountName"] == installed.namespace


@pytest.fixture
def knowing(cluster: Cluster) -> Cluster:
    """A cluster that knows the kinds of the Prometheus and Grafana operators, by their real definitions."""
    cluster.define(schemas().crds)
    return cluster


def refusal(cluster: Cluster, values: dict[str, Any], *options: str) -> str:
    """Return a real API server's strict refusals of the rendered objects; empty if it accepts them all."""
    # Of the namespaces that the switches name these two are there.
    there = json.dumps(values).replace("team-a", cluster.namespace).replace("team-b", "default")
    values = json.loads(there)
    place = (f"--namespace={cluster.namespace}", "--kube-version=1.37.1")
    rendered = helm("template", cluster.namespace, CHART, *place, *(options or ("--skip-tests",)), values=values)
    assert rendered.returncode == 0, rendered.stderr
    # Each object says in which namespace it is, and not all in the same.
    validated = ("apply", "--namespace=", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict")
    done = cluster.kubectl(*validated, "--filename=-", input=rendered.stdout, check=False)
    return done.stderr if done.returncode else ""


THE_NAMESPACES_OWN = {"serviceAccount": {"create": False, "name": "default"}}
"""The account of a pod has to be there before an API server looks at the pod."""


def test_every_object_passes_the_api_servers_strict_validation(knowing: Cluster) -> None:
    assert refusal(knowing, {}) == ""
    assert refusal(knowing, EVERYTHING) == ""
    assert refusal(knowing, EVERYTHING | THE_NAMESPACES_OWN, "--show-only=templates/tests/at-work.yaml") == ""
    assert "runAsNotRoot" in refusal(knowing, {"podSecurityContext": {"runAsNotRoot": True}})


@pytest.mark.nightly
@pytest.mark.parametrize("name", SWITCHES)
def test_each_switch_alone_passes_strict_validation(knowing: Cluster, name: str) -> None:
    assert refusal(knowing, SWITCHES[name]) == ""


def test_the_pod_satisfies_the_restricted_pod_security_standard(cluster: Cluster) -> None:
    cluster.kubectl("label", "namespace", cluster.namespace, "pod-security.kubernetes.io/warn=restricted")

    def warnings(**values: bool) -> str:
        place = (f"--namespace={cluster.namespace}", "--kube-version=1.37.1")
        rendered = helm("template", "accelbench", CHART, *place, values=THE_NAMESPACES_OWN | values)
        return cluster.kubectl("apply", "--dry-run=server", "--filename=-", input=rendered.stdout).stderr

    assert "would violate PodSecurity" in warnings(hostNetwork=True)
    assert "PodSecurity" not in warnings()


def may(cluster: Cluster, verb: str, resource: str, part: str = "") -> bool:
    """Whether the user `engineer` may do that in the cluster's namespace."""
    command = ("auth", "can-i", verb, f"{resource}.accelbench.dev", f"--subresource={part}", "--as=engineer")
    return cluster.kubectl(*command, check=False).stdout.strip() == "yes"


def test_users_with_the_charts_role_may_run_benchmarks_and_write_no_result(installed: Cluster) -> None:
    assert not may(installed, "create", "benchmarkruns")
    role = f"--clusterrole={installed.namespace}-edit"
    installed.kubectl("create", "rolebinding", "engineer", role, "--user=engineer")
    wait_until(lambda: may(installed, "create", "benchmarkruns"), what="the role to be bound")
    assert not may(installed, "create", "benchmarkresults")
    assert not may(installed, "update", "benchmarkruns", "status")


def test_on_request_users_who_may_edit_a_namespace_may_run_benchmarks_there(cluster: Cluster) -> None:
    with release_in(cluster, rbac={"aggregate": True}):
        cluster.kubectl("create", "rolebinding", "engineer", "--clusterrole=edit", "--user=engineer")
        wait_until(lambda: may(cluster, "create", "benchmarkruns"), what="the role to be aggregated")
        assert may(cluster, "get", "benchmarkresults")


def notes(cluster: Cluster, **values: Any) -> str:
    """Return helm's output after an installation there with these values."""
    place = (f"--kubeconfig={cluster.kubeconfig}", f"--namespace={cluster.namespace}", "--take-ownership")
    done = helm("install", cluster.namespace, *place, CHART, "--dry-run=server", values=values)
    assert done.returncode == 0, done.stderr
    return done.stdout.partition("NOTES:")[2]


def test_the_notes_explain_the_next_steps(cluster: Cluster) -> None:
    here = f"--namespace {cluster.namespace}"
    assert f"helm test {cluster.namespace} {here}" in notes(cluster)
    assert "do kind load image-archive $image; done" in notes(cluster)
    assert "kind load" not in notes(cluster, images={"registry": "registry.example.com"})
    assert "kubectl apply --server-side -f crds/" in notes(cluster, crds={"enabled": False})
    assert "deletes every run and every result" in notes(cluster, crds={"keep": False})


@pytest.mark.parametrize("namespaced", [False, True])
def test_the_run_of_the_notes_can_be_pasted_into_a_shell(installed: Cluster, tmp_path: Path, namespaced: bool) -> None:
    there = "default" if namespaced else installed.namespace
    values = {"namespaces": [there], "className": "second"} if namespaced else {}
    [pasted] = re.findall(r"^ *kubectl apply .*?(?=^Metrics:)", notes(installed, **values), re.MULTILINE | re.DOTALL)
    environment = at_cluster(installed, tmp_path / "shell")
    # Nothing is measured here, so a wait would not end: the requested objects are kept instead.
    waited = tmp_path / "waited"
    kubectl = tmp_path / "shell" / "kubectl"
    _, _, real = kubectl.read_text().partition("\n")
    kubectl.write_text(f'#!/bin/sh\ncase "$1" in wait) echo "$@" > {shlex.quote(str(waited))}; exit;; esac\n{real}')
    # As from a terminal, line by line: what follows a heredoc that does not end would be swallowed by it.
    done = subprocess.run(["bash", "-e"], input=pasted, env=environment, capture_output=True, text=True, check=False)
    try:
        assert (done.returncode, "here-document" in done.stderr) == (0, False), done.stderr
        run = installed.get("bmr", "first-run", f"--namespace={there}")
        assert [each["use"] for each in run["spec"]["variants"]] == ["pytorch/eager", "jax/jit"]
        assert run["spec"]["workload"]["name"] == "matmul-chain"
        assert run["spec"].get("className") == values.get("className", "accelbench")
        assert "bmr/first-run" in waited.read_text()
        assert ("--namespace default" in waited.read_text()) is namespaced
        assert "first-run" in done.stdout.partition("created")[2]
    finally:
        installed.kubectl("delete", "bmr", "first-run", f"--namespace={there}", "--ignore-not-found", "--wait=false")
