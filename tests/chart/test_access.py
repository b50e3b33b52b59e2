"""Permissions, roles, accounts and network policies of the chart."""

from __future__ import annotations

import re
from typing import Any

import yaml

from accelbench_operator.rbac import LEASE, RULES
from accelbench_operator.runs.job import ANY_CASE, build_job
from chart.helm import CHART, render
from chart.rendered import environment, only, operator, permissions
from chart.switches import SWITCHES
from operator_world.builders import make_plan

ROOT = CHART.parents[1]
RUNNERS = ANY_CASE["labelSelector"]


NEEDED = {(rule.group, rule.resource, verb) for rule in RULES for verb in rule.verbs}


def test_the_operator_may_do_what_it_needs_and_nothing_else() -> None:
    manifests = render()
    (role,) = (each for each in manifests if each["kind"] == "ClusterRole" and each["metadata"]["name"] == "accelbench")
    assert permissions(role) == NEEDED
    binding = only(manifests, "ClusterRoleBinding")
    assert binding["roleRef"]["name"] == "accelbench"
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "accelbench", "namespace": "system"}]
    assert operator()["pod"]["serviceAccountName"] == "accelbench"


def test_an_operator_of_some_namespaces_may_do_nothing_in_the_others() -> None:
    manifests = render({"namespaces": ["team-a", "team-b"]})
    roles = {each["metadata"]["namespace"]: permissions(each) for each in manifests if each["kind"] == "Role"}
    lease = {(LEASE.group, LEASE.resource, verb) for verb in LEASE.verbs}
    assert roles == {"team-a": NEEDED, "team-b": NEEDED, "system": lease}
    bound = {each["metadata"]["namespace"] for each in manifests if each["kind"] == "RoleBinding"}
    assert bound == {"team-a", "team-b", "system"}
    assert not [each for each in manifests if each["kind"] == "ClusterRoleBinding"]
    assert environment({"namespaces": ["team-a", "team-b"]})["ACCELBENCH_NAMESPACES"] == "team-a,team-b"


POLICIES = {"networkPolicy": {"enabled": True}}


def policies(values: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found = [each for each in render(values) if each["kind"] == "NetworkPolicy"]
    return {each["metadata"]["namespace"]: each["spec"] for each in found}


def test_no_network_policy_exists_unless_it_is_requested() -> None:
    assert policies({}) == {}


def test_the_network_policy_allows_probes_scrapes_dns_and_the_api_server() -> None:
    spec = policies(POLICIES)["system"]
    deployment = only(render(POLICIES), "Deployment")["spec"]["template"]
    assert spec["podSelector"]["matchLabels"].items() <= deployment["metadata"]["labels"].items()
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    names = {port["name"] for port in operator()["ports"]}
    assert {port["port"] for rule in spec["ingress"] for port in rule["ports"]} == names
    assert {port["port"] for rule in spec["egress"] for port in rule["ports"]} == {53, 443, 6443}


def test_scrapes_and_the_api_server_can_be_limited_to_their_addresses() -> None:
    monitoring = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
    server = {"ipBlock": {"cidr": "10.0.0.1/32"}}
    values = {"enabled": True, "metricsFrom": [monitoring], "apiServer": {"ports": [6443], "to": [server]}}
    spec = policies({"networkPolicy": values})["system"]
    assert spec["ingress"][1]["from"] == [monitoring]
    assert spec["egress"][1] == {"ports": [{"port": 6443, "protocol": "TCP"}], "to": [server]}


def test_pods_of_runs_have_no_network_in_the_namespaces_of_the_operator() -> None:
    found = policies(POLICIES | {"namespaces": ["team-a", "team-b"]})
    assert found.keys() == {"system", "team-a", "team-b"}
    nothing = {"podSelector": RUNNERS, "policyTypes": ["Ingress", "Egress"]}
    assert found["team-a"] == found["team-b"] == nothing


def test_the_policy_of_the_documents_is_the_charts() -> None:
    text = (ROOT / "docs" / "operations" / "security.md").read_text()
    (written,) = map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", text, re.DOTALL))
    (spec,) = (each for place, each in policies(POLICIES | {"namespaces": ["a"]}).items() if place == "a")
    assert written["kind"] == "NetworkPolicy"
    assert written["spec"] == spec


def test_the_policy_selects_the_pods_of_cases_and_no_others() -> None:
    plan = make_plan()
    marks = build_job(plan.run, plan.cases[0], 1, plan.runner)["spec"]["template"]["metadata"]["labels"]
    assert RUNNERS["matchLabels"].items() <= marks.items()
    assert {each["key"] for each in RUNNERS["matchExpressions"]} <= marks.keys()
    assert (
        not RUNNERS["matchLabels"].items()
        <= only(render(), "Deployment")["spec"]["template"]["metadata"]["labels"].items()
    )


ACCOUNT = 'request.userInfo.username == "system:serviceaccount:system:accelbench"'


def test_the_api_server_limits_the_operators_account_and_no_other() -> None:
    found = [each for each in render() if each["kind"].startswith("ValidatingAdmissionPolicy")]
    names = {"accelbench-jobs", "accelbench-claims", "accelbench-writes"}
    policies = {each["metadata"]["name"]: each["spec"] for each in found if not each["kind"].endswith("Binding")}
    bindings = [each["spec"] for each in found if each["kind"].endswith("Binding")]
    assert policies.keys() == {each["policyName"] for each in bindings} == names
    assert all(each["validationActions"] == ["Deny"] for each in bindings)
    for spec in policies.values():
        assert [condition["expression"] for condition in spec["matchConditions"]] == [ACCOUNT]
        assert spec["failurePolicy"] == "Fail"
    off = render(SWITCHES["no admission policy"])
    assert not [each for each in off if each["kind"].startswith("ValidatingAdmissionPolicy")]


def test_the_roles_of_users_are_aggregated_to_those_of_kubernetes_only_on_request() -> None:
    def marks(values: dict[str, Any]) -> dict[str, set[str]]:
        roles = {each["metadata"]["name"]: each["metadata"] for each in render(values) if each["kind"] == "ClusterRole"}
        users = ("accelbench-edit", "accelbench-view")
        return {name: {label for label in roles[name]["labels"] if "aggregate-to-" in label} for name in users}

    prefix = "rbac.authorization.k8s.io/aggregate-to"
    assert marks({}) == {"accelbench-edit": set(), "accelbench-view": set()}
    assert marks(SWITCHES["benchmarks for all who may edit"]) == {
        "accelbench-edit": {f"{prefix}-edit"},
        "accelbench-view": {f"{prefix}-view"},
    }


def test_roles_can_be_left_out_if_others_grant_them() -> None:
    kinds = {each["kind"] for each in render(SWITCHES["no roles"])}
    assert not kinds & {"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}


def test_an_existing_account_is_used() -> None:
    manifests = render(SWITCHES["an account that is there"])
    assert "ServiceAccount" not in {each["kind"] for each in manifests}
    assert only(manifests, "ClusterRoleBinding")["subjects"][0]["name"] == "mine"
    assert operator(SWITCHES["an account that is there"])["pod"]["serviceAccountName"] == "mine"


def test_no_pod_gets_the_operators_token_automatically() -> None:
    assert only(render(), "ServiceAccount")["automountServiceAccountToken"] is False
    assert operator()["pod"]["automountServiceAccountToken"] is True
