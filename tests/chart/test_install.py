"""The chart on a real API server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chart.helm import CHART, helm
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
    done = helm("install", *release, CHART, values={})
    assert done.returncode == 0, done.stderr
    yield cluster
    helm("uninstall", *release)


def test_it_installs_the_definitions_with_the_operator(installed: Cluster) -> None:
    assert installed.get("benchmarkruns")["items"] == []
    assert installed.get("benchmarkresults")["items"] == []
    (deployment,) = installed.get("deployments")["items"]
    assert deployment["spec"]["template"]["spec"]["serviceAccountName"] == installed.namespace


def test_every_object_passes_the_api_servers_strict_validation(cluster: Cluster) -> None:
    rendered = helm("template", "accelbench", CHART, f"--namespace={cluster.namespace}", "--kube-version=1.37.1")
    validated = ("apply", "--dry-run=server", "--validate=strict", "--filename=-")
    assert "deployment" in cluster.kubectl(*validated, input=rendered.stdout).stdout


def test_the_pod_satisfies_the_restricted_pod_security_standard(cluster: Cluster) -> None:
    cluster.kubectl("label", "namespace", cluster.namespace, "pod-security.kubernetes.io/warn=restricted")

    def warnings(**values: bool) -> str:
        place = (f"--namespace={cluster.namespace}", "--kube-version=1.37.1")
        rendered = helm("template", "accelbench", CHART, *place, values=values)
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
