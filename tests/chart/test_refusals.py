"""Contradicting values are refused with their names and the remedy."""

from __future__ import annotations

from typing import Any

import pytest

from chart.helm import CHART, helm

BOTH = {"enabled": True}


@pytest.mark.parametrize(
    ("values", "names", "does"),
    [
        (
            {"metrics": {"serviceMonitor": BOTH, "podMonitor": BOTH}},
            "metrics.serviceMonitor.enabled and metrics.podMonitor.enabled",
            "enable one of them",
        ),
        (
            {"replicas": 2, "podDisruptionBudget": {"minAvailable": 1, "maxUnavailable": 1}},
            "podDisruptionBudget.minAvailable and podDisruptionBudget.maxUnavailable",
            "leave the other empty",
        ),
        (
            {"replicas": 2, "podDisruptionBudget": {"minAvailable": 2}},
            "podDisruptionBudget.minAvailable=2 with replicas=2",
            "give at most 1",
        ),
        (
            {"replicas": 3, "podDisruptionBudget": {"minAvailable": "70%"}},
            "podDisruptionBudget.minAvailable=70% with replicas=3",
            "give at most 2",
        ),
        (
            {"replicas": 2, "podDisruptionBudget": {"maxUnavailable": 0}},
            "podDisruptionBudget.maxUnavailable=0",
            "give at least 1",
        ),
        (
            {"replicas": 2, "podDisruptionBudget": {"maxUnavailable": "0%"}},
            "podDisruptionBudget.maxUnavailable=0%",
            "give at least 1",
        ),
        (
            {"serviceAccount": {"create": False}},
            "serviceAccount.create=false without serviceAccount.name",
            "set rbac.create=false",
        ),
        (
            {"serviceAccount": {"create": False}, "rbac": {"create": False}},
            "admissionPolicy.enabled with serviceAccount.create=false and without serviceAccount.name",
            "name the operator's account",
        ),
        (
            {"rbac": {"aggregate": True, "userRoles": False}},
            "rbac.aggregate with rbac.userRoles=false",
            "userRoles=true",
        ),
        (
            {"namespaces": ["team-a"], "namespaceLabels": {"a": "b"}},
            "namespaces and namespaceLabels",
            "leave one of them empty",
        ),
        (
            {"namespaceLabels": {"a": "b"}, "admissionPolicy": {"enabled": False}},
            "namespaceLabels with admissionPolicy.enabled=false",
            "or list the namespaces",
        ),
        ({"crds": {"enabled": False, "keep": False}}, "crds.enabled=false with crds.keep=false", "leave crds.keep"),
        ({"metrics": {"port": 8080}}, "metrics.port and health.port are both 8080", "change one of them"),
        (
            {"metrics": {"authorization": True}},
            "metrics.authorization without metrics.tls.secretName",
            "name a Secret",
        ),
        ({"metrics": {"tls": {"clientCA": "a"}}}, "metrics.tls.clientCA without", "name a Secret"),
        (
            {"networkPolicy": BOTH, "hostNetwork": True},
            "networkPolicy.enabled with hostNetwork",
            "one of them to false",
        ),
        (
            {"images": {"tag": "1", "operatorDigest": f"sha256:{'a' * 64}", "runnerDigest": f"sha256:{'b' * 64}"}},
            "images.tag with both digests",
            "leave images.tag empty",
        ),
        (
            {"images": {"registry": "https://registry.example.com/ml"}},
            "images.registry=https://registry.example.com/ml: an image's name has no scheme",
            "give only what follows ://",
        ),
        (
            {"global": {"imageRegistry": "oci://registry.example.com"}},
            "global.imageRegistry=oci://registry.example.com: an image's name has no scheme",
            "give only what follows ://",
        ),
        (
            {"extraEnv": [{"name": "ACCELBENCH_METRICS_PORT", "value": "1"}]},
            "extraEnv sets ACCELBENCH_METRICS_PORT",
            "from its own values",
        ),
        (
            {"metrics": {"prometheusRule": {"disabled": ["AccelbenchNobodyLed"]}}},
            'there is no alert "AccelbenchNobodyLed"',
            "AccelbenchNobodyLeads",
        ),
        (
            {"dashboards": {"grafanaOperator": BOTH}},
            "dashboards.grafanaOperator.enabled without dashboards.grafanaOperator.instanceSelector",
            "select yours",
        ),
    ],
)
def test_a_contradiction_is_named_with_the_remedy(values: dict[str, Any], names: str, does: str) -> None:
    message = refused(values)
    assert names in message
    assert does in message


@pytest.mark.parametrize(
    ("values", "expected_text"),
    [
        ({"image": {"registry": "a"}}, "at '': additional properties 'image' not allowed"),
        ({"images": {"registy": "a"}}, "at '/images': additional properties 'registy' not allowed"),
        ({"replicas": "2"}, "at '/replicas': got string, want integer"),
        ({"metrics": {"port": 80}}, "at '/metrics/port': minimum: got 80, want 1,024"),
        (
            {"images": {"pullPolicy": "always"}},
            "at '/images/pullPolicy': value must be one of 'Always', 'IfNotPresent', 'Never'",
        ),
        (
            {"profiles": {"h100": {"preset": "cpu", "memory": "64 GB"}}},
            "at '/profiles/h100/memory': '64 GB' does not match pattern",
        ),
    ],
)
def test_helm_names_the_place_of_a_wrong_value_and_the_accepted_ones(
    values: dict[str, Any], expected_text: str
) -> None:
    assert expected_text in refused(values)


def test_all_contradictions_are_named_at_once() -> None:
    message = refused({"metrics": {"port": 8080}, "crds": {"enabled": False, "keep": False}})
    assert "metrics.port" in message
    assert "crds.keep" in message


def refused(values: dict[str, Any]) -> str:
    done = helm("template", "accelbench", CHART, "--kube-version=1.37.1", values=values)
    assert done.returncode != 0
    return done.stderr
