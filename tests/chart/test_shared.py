"""The chart's values and the objects of the example for a cluster that teams share."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from accelbench.api.crd import DIRECTORY
from accelbench_operator.runs.job import build_job
from chart.helm import CHART, render, template
from chart.schemas import NEWEST, schemas
from cluster.wait import wait_until
from operator_world.builders import make_plan, run_manifest
from security.release import installed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cluster.cluster import Cluster

VALUES: dict[str, Any] = yaml.safe_load((CHART / "values-shared.yaml").read_text())
EXAMPLE = CHART.parents[1] / "examples" / "shared-cluster"
TEAMS = VALUES["namespaces"]
LIMIT = 3
"""Runs of a namespace, in place of the example's number: a test need not create as many."""


def kinds(manifests: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [each for each in manifests if each["kind"] == kind]


def example(name: str) -> list[dict[str, Any]]:
    return [*yaml.safe_load_all((EXAMPLE / name).read_text())]


def test_the_operator_is_limited_to_the_teams_by_roles_policies_and_networks() -> None:
    manifests = render(VALUES)
    assert {each["metadata"]["namespace"] for each in kinds(manifests, "Role")} == {"system", *TEAMS}
    bound = kinds(manifests, "ClusterRoleBinding")
    assert [each["metadata"]["name"] for each in bound] == ["accelbench-scrapers"]
    assert len(kinds(manifests, "ValidatingAdmissionPolicyBinding")) == 3
    assert {each["metadata"]["namespace"] for each in kinds(manifests, "NetworkPolicy")} == {"system", *TEAMS}


def test_metrics_are_served_over_tls_to_permitted_accounts() -> None:
    manifests = render(VALUES)
    (pod,) = (each["spec"]["template"]["spec"] for each in kinds(manifests, "Deployment"))
    variables = {each["name"]: each.get("value") for each in pod["containers"][0]["env"]}
    assert variables["ACCELBENCH_METRICS_AUTHORIZATION"] == "true"
    volumes = {each["name"]: each for each in pod["volumes"]}
    assert volumes["tls"]["secret"]["secretName"] == VALUES["metrics"]["tls"]["secretName"]
    roles = {each["metadata"]["name"] for each in kinds(manifests, "ClusterRole")}
    (binding,) = kinds(example("cluster.yaml"), "ClusterRoleBinding")
    assert binding["roleRef"]["name"] in roles


def test_the_secret_that_the_values_name_for_prometheus_holds_the_token_of_an_account_that_may_scrape() -> None:
    text = (CHART / "values-shared.yaml").read_text()
    (block,) = re.findall(r"^  # serviceMonitor:\n(?:  # .*\n)+", text, re.MULTILINE)
    monitor = yaml.safe_load(re.sub(r"^  # ", "", block, flags=re.MULTILINE))
    (scraped,) = kinds(render(VALUES | {"metrics": VALUES["metrics"] | monitor}), "ServiceMonitor")
    named = scraped["spec"]["endpoints"][0]["authorization"]["credentials"]
    (secret,) = kinds(example("cluster.yaml"), "Secret")
    assert (secret["metadata"]["name"], secret["metadata"]["namespace"]) == (named["name"], "accelbench")
    account = secret["metadata"]["annotations"]["kubernetes.io/service-account.name"]
    (binding,) = kinds(example("cluster.yaml"), "ClusterRoleBinding")
    assert {"kind": "ServiceAccount", "name": account, "namespace": "accelbench"} in binding["subjects"]


def test_the_cluster_autoscaler_adds_nodes_for_benchmarks() -> None:
    """Below this priority it neither adds a node for a pod nor keeps the pod's node, by its default."""
    (priority,) = kinds(example("cluster.yaml"), "PriorityClass")
    assert -10 <= priority["value"] < 0


def test_no_namespace_but_a_teams_may_use_a_profile() -> None:
    (found,) = (each for each in render(VALUES) if each["metadata"]["name"].endswith("-profiles"))
    profiles = yaml.safe_load(found["data"]["profiles.yaml"])
    assert {"cpu", "nvidia"} <= profiles.keys()
    assert all(profile["namespaces"] and set(profile["namespaces"]) <= set(TEAMS) for profile in profiles.values())


def test_kubernetes_knows_every_field_of_the_values_and_of_the_example() -> None:
    ours = sorted((CHART.parents[1] / "crds").glob("*.yaml"))
    objects = "\n---\n".join(path.read_text() for path in sorted(EXAMPLE.glob("*.yaml")))
    assert schemas().judge(template(json.dumps(VALUES)), NEWEST, ours) == ""
    assert schemas().judge(objects, NEWEST, ours) == ""


def test_the_quota_of_the_documents_is_part_of_that_of_the_example() -> None:
    page = (CHART.parents[1] / "docs" / "operations" / "limits.md").read_text()
    (written,) = map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", page, re.DOTALL))
    quotas = {each["metadata"]["name"]: each["spec"]["hard"] for each in kinds(example("team.yaml"), "ResourceQuota")}
    assert written["spec"]["hard"].items() <= quotas["benchmarks"].items()


@pytest.fixture
def team(cluster: Cluster) -> Iterator[Cluster]:
    """The namespace of a team, with the release of the shared values and the objects of the example."""
    cluster.define(DIRECTORY)
    name = f"{cluster.namespace}-team"
    own = dataclasses.replace(cluster, namespace=name)
    # The release has the name of the test's namespace.
    written = (EXAMPLE / "team.yaml").read_text().replace("accelbench-", f"{cluster.namespace}-")
    written = written.replace("team-a", name).replace('"200"', f'"{LIMIT}"')
    (priority,) = kinds(example("cluster.yaml"), "PriorityClass")
    try:
        cluster.apply(priority)
        # Each object says in which namespace it is.
        cluster.kubectl("apply", "--namespace=", "--filename=-", input=written)
        with installed(cluster, **VALUES | {"namespaces": [name]}):
            yield own
    finally:
        cluster.kubectl("delete", "priorityclass", priority["metadata"]["name"], "--ignore-not-found")
        cluster.kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=false")


def refusal(team: Cluster, manifest: dict[str, Any], *options: str) -> str:
    """Return the API server's refusal of its creation; empty if it is accepted."""
    command = ("create", "--validate=false", "--filename=-", *options)
    done = team.kubectl(*command, input=json.dumps(manifest), check=False)
    return done.stderr if done.returncode else ""


def run(number: int) -> dict[str, Any]:
    manifest: dict[str, Any] = run_manifest()
    return manifest | {"metadata": {"name": f"chain-{number}"}}


@pytest.mark.slow
def test_a_team_may_run_benchmarks_and_others_may_not(team: Cluster) -> None:
    def may(group: str, namespace: str) -> bool:
        who = ("--as=jane", f"--as-group={group}", f"--namespace={namespace}")
        return team.kubectl("auth", "can-i", "create", "benchmarkruns", *who, check=False).stdout.strip() == "yes"

    wait_until(lambda: may(team.namespace, team.namespace), what="the role to be bound")
    assert not may("team-z", team.namespace)
    assert not may(team.namespace, "default")


@pytest.mark.slow
def test_a_quota_limits_the_runs_of_a_namespace_and_a_deletion_makes_room(team: Cluster) -> None:
    # Until the cluster has counted what there is, it refuses everything that is counted.
    wait_until(lambda: not refusal(team, run(0)), what="the quota to be counted")
    assert [refusal(team, run(number)) for number in range(1, LIMIT)] == [""] * (LIMIT - 1)
    message = refusal(team, run(LIMIT))
    assert "exceeded quota: benchmarks" in message
    assert f"used: count/benchmarkruns.accelbench.dev={LIMIT}" in message
    team.kubectl("delete", "bmr", "chain-0")
    wait_until(lambda: not refusal(team, run(LIMIT)), what="room for another run")


@pytest.mark.slow
def test_a_runs_pod_is_admitted_with_the_priority_of_benchmarks_and_with_no_other(team: Cluster) -> None:
    plan = make_plan()
    pod = build_job(plan.run, plan.cases[0], 1, plan.runner)["spec"]["template"] | {"apiVersion": "v1", "kind": "Pod"}
    pod["metadata"]["name"] = "pod"

    def denial(priority: str) -> str:
        return refusal(team, pod | {"spec": pod["spec"] | {"priorityClassName": priority}}, "--dry-run=server")

    given = VALUES["podTemplate"]["spec"]["priorityClassName"]
    wait_until(lambda: not denial(given), what="the quotas to be counted")
    assert "exceeded quota: other-priorities" in denial("system-cluster-critical")
