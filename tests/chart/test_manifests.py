"""What the chart renders."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import yaml

import accelbench
from accelbench.api import labels
from accelbench.api.profiles import ALWAYS, Profile, parse_profiles, ready
from accelbench_operator import settings
from accelbench_operator.lead import LeaseName
from accelbench_operator.rbac import LEASE, RULES
from accelbench_operator.retention import Retention
from chart.helm import CHART, helm, render

if TYPE_CHECKING:
    from pathlib import Path

ROOT = CHART.parents[1]
H100 = {
    "platform": "cuda",
    "resource": "nvidia.com/gpu",
    "nodeSelector": {"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"},
    "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
    "env": {"NCCL_DEBUG": "WARN"},
    "runtimeClassName": "nvidia",
    "cpu": 8,
    "memory": "64Gi",
}


def only(manifests: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    found: dict[str, Any]
    (found,) = (manifest for manifest in manifests if manifest["kind"] == kind)
    return found


def operator(values: dict[str, Any] | None = None) -> dict[str, Any]:
    pod: dict[str, Any] = only(render(values), "Deployment")["spec"]["template"]["spec"]
    container: dict[str, Any]
    (container,) = pod["containers"]
    return container | {"pod": pod}


def environment(values: dict[str, Any] | None = None) -> dict[str, str]:
    return {variable["name"]: variable.get("value", "") for variable in operator(values)["env"]}


def test_lint_finds_nothing_even_when_strict() -> None:
    done = helm("lint", "--strict", CHART)
    assert done.returncode == 0, done.stdout
    assert "[ERROR]" not in done.stdout
    assert "[WARNING]" not in done.stdout


def test_the_chart_has_the_version_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == accelbench.__version__


def test_a_package_holds_the_definitions_and_dashboards_that_its_links_point_to(tmp_path: Path) -> None:
    done = helm("package", CHART, "--destination", tmp_path)
    assert done.returncode == 0, done.stderr
    (package,) = tmp_path.iterdir()
    listed = subprocess.run(["tar", "tf", package], capture_output=True, text=True, check=True).stdout.split()
    for folder, link in ((ROOT / "crds", "crds"), (ROOT / "grafana" / "dashboards", "dashboards")):
        names = {f"accelbench/{link}/{path.name}" for path in folder.iterdir()}
        assert names
        assert names <= set(listed)


def test_the_operator_runs_restricted_with_a_root_it_cannot_write_to() -> None:
    container = operator()
    assert container["pod"]["securityContext"] == {
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert "hostNetwork" not in container["pod"]


def test_the_operator_is_told_which_image_measures() -> None:
    assert environment()["ACCELBENCH_RUNNER_IMAGE"] == f"accelbench-runner:{accelbench.__version__}"


@pytest.mark.parametrize(
    ("images", "image"),
    [
        ({}, f"accelbench-operator:{accelbench.__version__}"),
        (
            {"registry": "registry.example.com/ml/"},
            f"registry.example.com/ml/accelbench-operator:{accelbench.__version__}",
        ),
        ({"operator": "mine", "tag": "test"}, "mine:test"),
        ({"operatorDigest": f"sha256:{'a' * 64}"}, f"accelbench-operator@sha256:{'a' * 64}"),
    ],
)
def test_an_image_is_named_by_registry_repository_and_tag_or_digest(images: dict[str, str], image: str) -> None:
    assert operator({"images": images})["image"] == image


def permissions(role: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


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


def test_the_operator_reads_every_variable_that_it_is_given(tmp_path: Path) -> None:
    file = tmp_path / "profiles.yaml"
    file.write_text(profiles({"profiles": {"nvidia-h100": H100}}))
    given = environment({"metrics": {"port": 9191}, "health": {"port": 8181}, "namespaces": ["team-a"]})
    assert given.keys() == set(re.findall(r"`(ACCELBENCH_\w+)`", inspect.getsource(settings)))
    read = settings.read_settings(given | {"ACCELBENCH_PROFILES": str(file), "ACCELBENCH_POD_TEMPLATE": ""})
    assert (read.runner_image, read.namespaces) == (f"accelbench-runner:{accelbench.__version__}", ("team-a",))
    assert (read.metrics_port, read.health_port) == (9191, 8181)
    assert read.class_name == "accelbench"
    assert read.lease == LeaseName("system", "accelbench")
    assert read.retention == Retention()
    assert "nvidia-h100" in read.profiles.names


def test_class_and_history_reach_the_operator_as_they_were_written() -> None:
    given = environment({"className": "staging", "results": {"perCase": 7, "total": 1000000, "maximumAgeDays": 30}})
    read = settings.read_settings(given | {"ACCELBENCH_PROFILES": "", "ACCELBENCH_POD_TEMPLATE": ""})
    assert read.class_name == "staging"
    assert read.retention == Retention(per_case=7, total=1_000_000, maximum_age=timedelta(days=30))


def test_replicas_are_drained_one_after_the_other_and_replaced_before_they_go() -> None:
    manifests = render({"replicas": 2})
    assert only(manifests, "PodDisruptionBudget")["spec"]["minAvailable"] == 1
    deployment = only(manifests, "Deployment")["spec"]
    assert deployment["replicas"] == 2
    assert deployment["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    assert operator({})["readinessProbe"]["httpGet"]["path"] == "/readyz"


def test_replicas_on_their_nodes_network_make_room_for_the_next() -> None:
    strategy = only(render({"hostNetwork": True}), "Deployment")["spec"]["strategy"]
    assert strategy["rollingUpdate"] == {"maxUnavailable": 1, "maxSurge": 0}


def test_a_single_replica_can_be_drained() -> None:
    assert not [each for each in render() if each["kind"] == "PodDisruptionBudget"]


def test_probes_and_ports_meet() -> None:
    container = operator({"metrics": {"port": 9191}, "health": {"port": 8181}})
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"metrics": 9191, "health": 8181}
    assert {container[f"{kind}Probe"]["httpGet"]["port"] for kind in ("startup", "liveness", "readiness")} == {"health"}


def test_the_metrics_service_finds_the_operators_pod_and_its_port() -> None:
    manifests = render()
    service = only(manifests, "Service")["spec"]
    pod = only(manifests, "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert service["selector"].items() <= pod.items()
    assert [port["targetPort"] for port in service["ports"]] == ["metrics"]


def test_a_service_monitor_is_there_on_request_and_leaves_our_labels_alone() -> None:
    assert not [manifest for manifest in render() if manifest["kind"] == "ServiceMonitor"]
    values = {"metrics": {"serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}}}}
    manifests = render(values)
    monitor = only(manifests, "ServiceMonitor")
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["spec"]["endpoints"] == [{"port": "metrics", "interval": "30s", "honorLabels": True}]
    assert (
        monitor["spec"]["selector"]["matchLabels"].items() <= only(manifests, "Service")["metadata"]["labels"].items()
    )


def test_the_dashboard_arrives_byte_for_byte_where_grafanas_sidecar_looks() -> None:
    (found,) = (each for each in render() if each["metadata"]["labels"].get("grafana_dashboard") == "1")
    sources = {f"accelbench-{path.name}": path.read_text() for path in (ROOT / "grafana" / "dashboards").iterdir()}
    assert found["data"] == sources
    off = render({"dashboards": {"enabled": False}})
    assert not [each for each in off if "grafana_dashboard" in each["metadata"]["labels"]]


def profiles(values: dict[str, Any]) -> str:
    (found,) = (each for each in render(values) if each["metadata"]["name"].endswith("-profiles"))
    return str(found["data"]["profiles.yaml"])


def test_profiles_reach_the_operator_as_they_were_written() -> None:
    assert parse_profiles(profiles({}), source="chart") == ()
    (read,) = parse_profiles(profiles({"profiles": {"nvidia-h100": H100}}), source="chart")
    assert read.name == "nvidia-h100"
    assert read.model_dump(by_alias=True, mode="json", exclude_unset=True) == H100 | {"name": "nvidia-h100"}


def test_every_ready_profile_can_be_taken_up_in_the_values() -> None:
    values = {"profiles": {name: {"preset": name} for name in ready()}}
    assert {profile.name: profile for profile in parse_profiles(profiles(values), source="chart")} == ready()


def test_defaults_for_pods_reach_the_operator_as_they_were_written(tmp_path: Path) -> None:
    written = {"spec": {"priorityClassName": "benchmarks"}}
    (found,) = (each for each in render({"podTemplate": written}) if each["metadata"]["name"].endswith("-profiles"))
    file = tmp_path / "pod-template.yaml"
    file.write_text(found["data"]["pod-template.yaml"])
    told = environment()
    assert told["ACCELBENCH_POD_TEMPLATE"].endswith("/pod-template.yaml")
    given = told | {"ACCELBENCH_POD_TEMPLATE": str(file), "ACCELBENCH_PROFILES": ""}
    assert settings.read_settings(given).pod_template == written


def test_the_command_line_finds_the_profiles_by_their_labels() -> None:
    (found,) = (each for each in render({"className": "mine"}) if each["metadata"]["name"].endswith("-profiles"))
    assert {labels.PROFILES: "true", labels.CLASS: "mine"}.items() <= found["metadata"]["labels"].items()


def test_the_operator_starts_anew_when_its_profiles_change() -> None:
    def checksum(values: dict[str, Any]) -> str:
        annotations = only(render(values), "Deployment")["spec"]["template"]["metadata"]["annotations"]
        return str(annotations["checksum/profiles"])

    assert checksum({}) != checksum({"profiles": {"nvidia-h100": H100}})


def test_the_schema_of_a_profile_has_the_fields_that_the_operator_reads() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())["definitions"]["profile"]
    fields = Profile.model_json_schema(by_alias=True)["properties"]
    assert set(schema["properties"]) == set(fields) - {"name"} | {"preset"}
    assert schema["properties"]["preset"]["enum"] == list(ready())


def test_the_notes_name_every_preset() -> None:
    notes = (CHART / "templates" / "NOTES.txt").read_text()
    assert f"Profiles: {', '.join(ALWAYS)}" in notes


def test_a_node_without_services_is_reached_through_the_hosts_network() -> None:
    values = {
        "hostNetwork": True,
        "extraEnv": [
            {"name": "KUBERNETES_SERVICE_HOST", "value": "127.0.0.1"},
            {"name": "KUBERNETES_SERVICE_PORT", "value": "6443"},
        ],
    }
    assert operator(values)["pod"]["hostNetwork"] is True
    assert environment(values)["KUBERNETES_SERVICE_PORT"] == "6443"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"image": {}}, "image"),
        ({"images": {"repository": "mine"}}, "repository"),
        ({"images": {"pullPolicy": "Sometimes"}}, "pullPolicy"),
        ({"images": {"operatorDigest": "sha256:1"}}, "operatorDigest"),
        ({"profiles": {"h100": {"resource": "nvidia.com/gpu"}}}, "platform"),
        ({"profiles": {"h100": {"platform": "gpu"}}}, "platform"),
        ({"profiles": {"h100": {"platform": "cuda", "nodeselector": {}}}}, "nodeselector"),
        ({"profiles": {"H100": {"platform": "cuda"}}}, "H100"),
        ({"profiles": {"h100": {"preset": "nvidia", "pricePerHour": 11.06}}}, "pricePerHour"),
        ({"profiles": {"h100": {"preset": "nvidia", "namespaces": "ml"}}}, "namespaces"),
        ({"profiles": {"h100": {"preset": "gke-h100"}}}, "preset"),
        ({"podTemplate": {"hostNetwork": True}}, "podTemplate"),
        ({"metrics": {"port": "http"}}, "port"),
        ({"metrics": {"port": 80}}, "port"),
        ({"className": "Staging"}, "className"),
        ({"results": {"perCase": 0}}, "perCase"),
        ({"extraEnv": {"NAME": "value"}}, "extraEnv"),
    ],
)
def test_a_value_that_means_nothing_is_refused_and_named(values: dict[str, Any], said: str) -> None:
    done = helm("template", "accelbench", CHART, values=values)
    assert done.returncode != 0
    assert said in done.stderr


def test_the_schema_knows_every_value_and_no_other() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())

    def compare(schema: dict[str, Any], values: dict[str, Any], path: str) -> None:
        assert schema["additionalProperties"] is False, path
        assert set(schema["properties"]) - {"global"} == set(values), path
        for name, value in values.items():
            if isinstance(value, dict) and "properties" in schema["properties"][name]:
                compare(schema["properties"][name], value, f"{path}.{name}")

    compare(schema, values, "values")
