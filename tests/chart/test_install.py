"""The chart on a real API server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from chart.helm import CHART, helm
from chart.schemas import schemas
from chart.switches import EVERYTHING, SWITCHES
from cluster.wait import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.cluster import Cluster

pytestmark = pytest.mark.cluster


@pytest.fixture
def installed(cluster: Cluster) -> Iterator[Cluster]:
    """A cluster with the chart in the test's namespace."""
    # Named after the namespace, as the chart's roles are the whole cluster's.
    release = (cluster.namespace, f"--kubeconfig={cluster.kubeconfig}", f"--namespace={cluster.namespace}")
    # The session's other tests may have defined the kinds before.
    done = helm("install", "--take-ownership", *release, CHART, values={})
    assert done.returncode == 0, done.stderr
    yield cluster
    helm("uninstall", *release)


def test_it_installs_the_definitions_with_the_operator(installed: Cluster) -> None:
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
    """What a real API server says against the rendered objects, strictly; empty where it takes them all."""
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


@pytest.mark.slow
@pytest.mark.parametrize("name", SWITCHES)
def test_each_switch_passes_it_alone(knowing: Cluster, name: str) -> None:
    assert refusal(knowing, SWITCHES[name]) == ""


def test_the_pod_satisfies_the_restricted_pod_security_standard(cluster: Cluster) -> None:
    cluster.kubectl("label", "namespace", cluster.namespace, "pod-security.kubernetes.io/warn=restricted")

    def warnings(**values: bool) -> str:
        place = (f"--namespace={cluster.namespace}", "--kube-version=1.37.1")
        rendered = helm("template", "accelbench", CHART, *place, values=THE_NAMESPACES_OWN | values)
        return cluster.kubectl("apply", "--dry-run=server", "--filename=-", input=rendered.stdout).stderr

    assert "would violate PodSecurity" in warnings(hostNetwork=True)
    assert "PodSecurity" not in warnings()


def test_whoever_may_edit_a_namespace_may_run_benchmarks_there_and_write_no_result(installed: Cluster) -> None:
    installed.kubectl("create", "rolebinding", "engineer", "--clusterrole=edit", "--user=engineer")

    def may(verb: str, resource: str, part: str = "") -> bool:
        asked = ("auth", "can-i", verb, f"{resource}.accelbench.dev", f"--subresource={part}", "--as=engineer")
        return installed.kubectl(*asked, check=False).stdout.strip() == "yes"

    wait_until(lambda: may("create", "benchmarkruns"), what="the role to be aggregated")
    assert may("get", "benchmarkresults")
    assert not may("create", "benchmarkresults")
    assert not may("update", "benchmarkruns", "status")


def test_the_notes_say_what_to_do_next(cluster: Cluster) -> None:
    def notes(**values: Any) -> str:
        place = (f"--kubeconfig={cluster.kubeconfig}", f"--namespace={cluster.namespace}", "--take-ownership")
        done = helm("install", cluster.namespace, *place, CHART, "--dry-run=server", values=values)
        assert done.returncode == 0, done.stderr
        return done.stdout.partition("NOTES:")[2]

    here = f"--namespace {cluster.namespace}"
    assert f"helm test {cluster.namespace} {here}" in notes()
    assert "do kind load image-archive $image; done" in notes()
    assert "kind load" not in notes(images={"registry": "registry.example.com"})
    assert "kubectl apply --namespace default -f" in notes(namespaces=["default"])
    assert "className: second" in notes(className="second")
    assert "kubectl apply --server-side -f crds/" in notes(crds={"enabled": False})
    assert "deletes every run and every result" in notes(crds={"keep": False})
