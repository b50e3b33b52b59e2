"""kubeconform, strictly, with the schemas of each Kubernetes that the chart says it runs on."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from chart.helm import CHART, template
from chart.schemas import MINORS, NEWEST, schemas
from chart.switches import EVERYTHING, SWITCHES
from cluster.build import kubernetes_version

OURS = sorted((CHART.parents[1] / "crds").glob("*.yaml"))
OLDER = [pytest.param(minor, marks=pytest.mark.nightly) for minor in MINORS if minor != NEWEST]


def judged(values: dict[str, Any], kubernetes: str) -> str:
    return schemas().judge(template(json.dumps(values)), kubernetes, OURS)


@pytest.mark.parametrize("kubernetes", [*OLDER, NEWEST])
def test_each_kubernetes_knows_every_field_that_the_chart_can_write(kubernetes: str) -> None:
    assert judged({}, kubernetes) == ""
    assert judged(EVERYTHING, kubernetes) == ""


@pytest.mark.nightly
@pytest.mark.parametrize("name", SWITCHES)
def test_each_switch_writes_fields_that_kubernetes_knows(name: str) -> None:
    assert judged(SWITCHES[name], NEWEST) == ""


@pytest.mark.parametrize(
    ("values", "expected_text"),
    [
        ({"podSecurityContext": {"runAsNotRoot": True}}, "runAsNotRoot"),
        ({"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": 1}]}, "whenUnsat"),
        ({"metrics": {"serviceMonitor": {"enabled": True, "relabelings": [{"source": ["a"]}]}}}, "source"),
    ],
)
def test_an_unknown_field_is_detected(values: dict[str, Any], expected_text: str) -> None:
    assert expected_text in judged(values, NEWEST)


def test_every_kubernetes_version_that_the_chart_declares_is_tested() -> None:
    oldest = ".".join(next(iter(MINORS)).split(".")[:2])
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["kubeVersion"] == f">={oldest}.0-0"
    assert kubernetes_version() == f"v{NEWEST}", "the tests' own cluster is of another minor"
