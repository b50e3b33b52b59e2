"""The manifests that the chart renders."""

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
from accelbench.api.profiles import ALWAYS_AVAILABLE, Profile, load_presets, parse_profiles
from accelbench_operator import installed, settings
from accelbench_operator.engine.election import LeaseName
from accelbench_operator.rbac import SCRAPERS
from accelbench_operator.runs.retention import Retention
from chart.helm import CHART, helm, render, template
from chart.rendered import environment, only, operator, permissions
from chart.switches import SWITCHES
from cluster.build import binaries

if TYPE_CHECKING:
    from pathlib import Path

ROOT = CHART.parents[1]
LINKS = {
    ROOT / "crds": "definitions",
    ROOT / "grafana" / "dashboards": "dashboards",
}
"""What stands elsewhere, and where the chart has it."""
DASHBOARDS = sorted((ROOT / "grafana" / "dashboards").glob("*.json"))
RULES_FILES = sorted((CHART / "rules").glob("*.yaml"))
SHOW_TEST = "--show-only=templates/tests/at-work.yaml"
SELECTOR = {"matchLabels": {"dashboards": "grafana"}}
H100 = {
    "platform": "cuda",
    "resource": "nvidia.com/gpu",
    "nodeSelector": {"cloud.google.com/gke-accelerator": "nvidia-h100-80gb"},
    "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
    "env": {"NCCL_DEBUG": "WARN"},
    "runtimeClassName": "nvidia",
    "cpu": 8,
    "memory": "64Gi",
    "ephemeralStorage": "20Gi",
    "arch": "amd64",
}


def test_lint_finds_nothing_even_when_strict() -> None:
    done = helm("lint", "--strict", CHART)
    assert done.returncode == 0, done.stdout
    assert "[ERROR]" not in done.stdout
    assert "[WARNING]" not in done.stdout


def test_lint_finds_mistakes() -> None:
    done = helm("lint", "--strict", CHART, values={"metrics": {"port": "http"}})
    assert done.returncode != 0
    assert "[ERROR]" in done.stdout + done.stderr


def test_the_chart_has_the_version_of_the_package() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == accelbench.__version__


def test_a_package_holds_the_definitions_and_dashboards_that_its_links_point_to(tmp_path: Path) -> None:
    done = helm("package", CHART, "--destination", tmp_path)
    assert done.returncode == 0, done.stderr
    (package,) = tmp_path.iterdir()
    listed = subprocess.run(["tar", "tf", package], capture_output=True, text=True, check=True).stdout.split()
    for folder, link in LINKS.items():
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


def test_the_operator_gets_the_name_of_the_runners_image() -> None:
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


def test_the_operator_reads_every_variable_that_it_is_given(tmp_path: Path) -> None:
    file = tmp_path / "profiles.yaml"
    file.write_text(profiles({"profiles": {"nvidia-h100": H100}}))
    values = {"metrics": {"port": 9191}, "health": {"port": 8181}, "namespaces": ["team-a"]}
    given = environment(values | {"metrics": SWITCHES["metrics over TLS"]["metrics"] | {"port": 9191}})
    assert given.keys() == set(
        re.findall(r"`(ACCELBENCH_\w+)`", inspect.getsource(settings) + inspect.getsource(settings.RunSettings))
    )
    of_the_pod = {name: "" for name, value in given.items() if value.startswith("/etc/") or value == "true"}
    read = settings.read_settings(given | of_the_pod | {"ACCELBENCH_PROFILES": str(file)})
    assert (read.runner_image, read.namespaces) == (f"accelbench-runner:{accelbench.__version__}", ("team-a",))
    assert (read.metrics_port, read.metrics_series, read.health_port) == (9191, 100, 8181)
    assert read.class_name == "accelbench"
    assert read.lease == LeaseName("system", "accelbench")
    assert read.retention == Retention()
    assert "nvidia-h100" in read.profiles.names


def test_class_and_history_reach_the_operator_unchanged() -> None:
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


def test_replicas_on_the_host_network_end_before_their_replacement_starts() -> None:
    strategy = only(render({"hostNetwork": True}), "Deployment")["spec"]["strategy"]
    assert strategy["rollingUpdate"] == {"maxUnavailable": 1, "maxSurge": 0}


def test_a_single_replica_can_be_drained() -> None:
    assert not [each for each in render() if each["kind"] == "PodDisruptionBudget"]


def test_probes_use_the_ports_of_the_operator() -> None:
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


def test_a_service_monitor_exists_on_request_and_keeps_our_labels() -> None:
    assert not [manifest for manifest in render() if manifest["kind"] == "ServiceMonitor"]
    values = {"metrics": {"serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}}}}
    manifests = render(values)
    monitor = only(manifests, "ServiceMonitor")
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["spec"]["endpoints"] == [{"port": "metrics", "interval": "30s", "honorLabels": True}]
    assert monitor["spec"]["namespaceSelector"] == {"matchNames": ["system"]}
    assert (
        monitor["spec"]["selector"]["matchLabels"].items() <= only(manifests, "Service")["metadata"]["labels"].items()
    )


def test_every_dashboard_is_unchanged_in_a_config_map_for_grafanas_sidecar() -> None:
    found = [each for each in render() if each["metadata"]["labels"].get("grafana_dashboard") == "1"]
    data = {name: text for each in found for name, text in each["data"].items()}
    assert data == {f"accelbench-{path.name}": path.read_text() for path in DASHBOARDS}
    assert len(found) == len(DASHBOARDS)
    off = render({"dashboards": {"enabled": False}})
    assert not [each for each in off if "dashboard" in each["metadata"]["name"]]


def test_the_grafana_operator_gets_each_dashboard_from_its_config_map() -> None:
    values = {"enabled": False, "grafanaOperator": {"enabled": True, "instanceSelector": SELECTOR, "folder": "Ours"}}
    manifests = render({"dashboards": values})
    maps = {each["metadata"]["name"]: each for each in manifests if each["kind"] == "ConfigMap"}
    found = [each["spec"] for each in manifests if each["kind"] == "GrafanaDashboard"]
    assert len(found) == len(DASHBOARDS)
    for spec in found:
        source = maps[spec["configMapRef"]["name"]]
        assert json.loads(source["data"][spec["configMapRef"]["key"]])["title"]
        assert "grafana_dashboard" not in source["metadata"]["labels"], "Grafana's sidecar would show it again"
        assert (spec["instanceSelector"], spec["folder"]) == (SELECTOR, "Ours")


def named(manifests: list[dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    found: dict[str, Any]
    (found,) = (each for each in manifests if each["kind"] == kind and each["metadata"]["name"] == name)
    return found


def test_the_definitions_are_those_of_the_release_and_are_kept() -> None:
    for path in (ROOT / "crds").glob("*.yaml"):
        written = yaml.safe_load(path.read_text())
        rendered = named(render(), "CustomResourceDefinition", written["metadata"]["name"])
        assert rendered["spec"] == written["spec"]
        assert rendered["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}
        assert rendered["metadata"]["labels"]["app.kubernetes.io/instance"] == "accelbench"
    going = [each for each in render({"crds": {"keep": False}}) if each["kind"] == "CustomResourceDefinition"]
    assert not [each for each in going if "annotations" in each["metadata"]]


def test_a_user_with_rights_in_namespaces_alone_can_install_the_chart() -> None:
    manifests = render(SWITCHES["nothing of the cluster's"])
    assert not [each["kind"] for each in manifests if "namespace" not in each["metadata"]]


def test_monitors_of_pods_and_services_scrape_alike_and_keep_our_labels() -> None:
    service = only(render(SWITCHES["a ServiceMonitor"]), "ServiceMonitor")
    pod = only(render(SWITCHES["a PodMonitor"]), "PodMonitor")
    (scraped,) = service["spec"]["endpoints"]
    assert [scraped] == pod["spec"]["podMetricsEndpoints"]
    assert scraped["honorLabels"] is True
    assert scraped["scrapeTimeout"] == "10s"
    assert {each["port"] for each in (scraped,)} <= {port["name"] for port in operator()["ports"]}
    labels_of_pods = only(render(), "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert pod["spec"]["selector"]["matchLabels"].items() <= labels_of_pods.items()


def test_metrics_are_served_over_tls_to_permitted_accounts() -> None:
    manifests = render(SWITCHES["metrics over TLS"])
    container = operator(SWITCHES["metrics over TLS"])
    variables = environment(SWITCHES["metrics over TLS"])
    mounts = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    volumes = {each["name"]: each for each in container["pod"]["volumes"]}
    assert variables["ACCELBENCH_METRICS_TLS"] == mounts["tls"]
    assert volumes["tls"]["secret"]["secretName"] == "metrics"
    assert variables["ACCELBENCH_METRICS_CLIENT_CA"] == f"{mounts['client-ca']}/ca.crt"
    assert volumes["client-ca"]["configMap"]["name"] == "scrapers"
    assert variables["ACCELBENCH_METRICS_AUTHORIZATION"] == "true"
    (endpoint,) = only(manifests, "ServiceMonitor")["spec"]["endpoints"]
    assert endpoint["scheme"] == "https"
    assert endpoint["tlsConfig"] == {"serverName": "accelbench-metrics"}
    assert endpoint["authorization"]["credentials"]["name"] == "prometheus"
    asking = named(manifests, "ClusterRole", "accelbench-scrapers")
    assert permissions(asking) == {(rule.group, rule.resource, verb) for rule in SCRAPERS for verb in rule.verbs}
    scraping = named(manifests, "ClusterRole", "accelbench-metrics")["rules"]
    assert scraping == [{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]


def test_rules_reach_prometheus_unchanged() -> None:
    manifests = render({"metrics": {"prometheusRule": {"enabled": True}}})
    for path in RULES_FILES:
        rule = named(manifests, "PrometheusRule", f"accelbench-{path.stem}")
        assert rule["spec"] == {"groups": yaml.safe_load(path.read_text())["groups"]}


def test_prometheus_accepts_the_rules() -> None:
    done = subprocess.run(
        [binaries().promtool, "check", "rules", *RULES_FILES], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def alerts_of(manifests: list[Any]) -> list[dict[str, Any]]:
    groups = [group for each in manifests if each["kind"] == "PrometheusRule" for group in each["spec"]["groups"]]
    return [rule for group in groups for rule in group["rules"] if "alert" in rule]


def test_an_alert_can_be_left_out_or_labelled_for_its_route() -> None:
    left_out = {"enabled": True, "disabled": ["AccelbenchNobodyLeads"], "alertLabels": {"team": "ml"}}
    alerts = alerts_of(render({"metrics": {"prometheusRule": left_out}}))
    assert "AccelbenchNobodyLeads" not in [rule["alert"] for rule in alerts]
    kept = alerts_of(render(SWITCHES["rules"]))
    assert kept
    assert all(rule["labels"]["team"] == "ml" and rule["labels"]["severity"] for rule in kept)


def test_an_alert_links_to_its_runbook_at_the_configured_address() -> None:
    urls = {rule["alert"]: rule["annotations"]["runbook_url"] for rule in alerts_of(render(SWITCHES["rules"]))}
    assert urls
    assert urls == {name: f"https://docs.example.com/alerts#{name.lower()}" for name in urls}
    without = alerts_of(render({"metrics": {"prometheusRule": {"enabled": True}}}))
    assert all("runbook_url" not in rule["annotations"] for rule in without)


def test_a_global_registry_overrides_the_charts_own() -> None:
    values = {
        "global": {"imageRegistry": "mirror.example.com", "imagePullSecrets": [{"name": "mirror"}]},
        "images": {"registry": "registry.example.com", "pullSecrets": [{"name": "own"}]},
    }
    container = operator(values)
    assert container["image"].startswith("mirror.example.com/accelbench-operator:")
    assert environment(values)["ACCELBENCH_RUNNER_IMAGE"].startswith("mirror.example.com/accelbench-runner:")
    assert container["pod"]["imagePullSecrets"] == [{"name": "mirror"}, {"name": "own"}]


def test_labels_of_users_do_not_override_selector_labels() -> None:
    mine = {"app.kubernetes.io/name": "mine", "team": "ml"}
    manifests = render({"commonLabels": mine, "podLabels": mine})
    pod = only(manifests, "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert only(manifests, "Service")["spec"]["selector"].items() <= pod.items()
    assert pod["team"] == "ml"
    assert all(each["metadata"]["labels"]["team"] == "ml" for each in manifests)


def test_annotations_for_every_object_are_on_every_object() -> None:
    manifests = render({"commonAnnotations": {"owner": "nobody"}, "podAnnotations": {"owner": "me"}})
    assert all(each["metadata"]["annotations"]["owner"] == "nobody" for each in manifests)
    assert only(manifests, "Deployment")["spec"]["template"]["metadata"]["annotations"]["owner"] == "me"


def test_replicas_are_spread_over_nodes_unless_values_say_otherwise() -> None:
    (spread,) = operator()["pod"]["topologySpreadConstraints"]
    labels_of_pods = only(render(), "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert spread["labelSelector"]["matchLabels"].items() <= labels_of_pods.items()
    own = spread | {"labelSelector": {"matchLabels": {"a": "b"}}}
    assert operator({"topologySpreadConstraints": [own]})["pod"]["topologySpreadConstraints"] == [own]
    assert "topologySpreadConstraints" not in operator({"topologySpreadConstraints": []})["pod"]


def test_placement_and_mounts_of_the_operator_follow_the_values() -> None:
    values = SWITCHES["placement"] | SWITCHES["environment and volumes"]
    container = operator(values)
    assert operator()["pod"]["nodeSelector"] == {"kubernetes.io/os": "linux"}
    assert container["pod"]["nodeSelector"] == {"kubernetes.io/os": "linux"} | values["nodeSelector"]
    for field in ("tolerations", "affinity", "priorityClassName", "runtimeClassName"):
        assert container["pod"][field] == values[field]
    assert values["extraVolumes"][0] in container["pod"]["volumes"]
    assert values["extraVolumeMounts"][0] in container["volumeMounts"]
    assert container["envFrom"] == values["extraEnvFrom"]
    assert container["resources"] == yaml.safe_load((CHART / "values.yaml").read_text())["resources"]


def test_a_disruption_budget_can_be_set_in_each_way_or_left_out() -> None:
    def budget(values: dict[str, Any]) -> list[dict[str, Any]]:
        return [each["spec"] for each in render(values) if each["kind"] == "PodDisruptionBudget"]

    assert budget(SWITCHES["replicas"])[0]["minAvailable"] == 2
    (by_share,) = budget(SWITCHES["replicas by share"])
    assert by_share["maxUnavailable"] == "40%"
    assert "minAvailable" not in by_share
    assert budget(SWITCHES["no budget"]) == []


def test_helm_test_runs_with_the_operators_settings() -> None:
    values = SWITCHES["environment and volumes"] | {"namespaces": ["team-a"]}
    (pod,) = (each for each in yaml.safe_load_all(template(json.dumps(values), SHOW_TEST)) if each)
    (container,) = pod["spec"]["containers"]
    assert container["command"] == ["python", "-m", installed.__name__]
    for field in ("image", "env", "envFrom", "securityContext"):
        assert container[field] == operator(values)[field]
    assert pod["spec"]["serviceAccountName"] == operator(values)["pod"]["serviceAccountName"]
    # Else the Service would send scrapes to it.
    assert not only(render(values), "Service")["spec"]["selector"].items() <= pod["metadata"]["labels"].items()


def profiles(values: dict[str, Any]) -> str:
    (found,) = (each for each in render(values) if each["metadata"]["name"].endswith("-profiles"))
    return str(found["data"]["profiles.yaml"])


def test_profiles_reach_the_operator_unchanged() -> None:
    assert parse_profiles(profiles({}), source="chart") == ()
    (read,) = parse_profiles(profiles({"profiles": {"nvidia-h100": H100}}), source="chart")
    assert read.name == "nvidia-h100"
    assert read.model_dump(by_alias=True, mode="json", exclude_unset=True) == H100 | {"name": "nvidia-h100"}


def test_every_ready_profile_can_be_adapted_in_the_values() -> None:
    values = {"profiles": {name: {"preset": name} for name in load_presets()}}
    assert {profile.name: profile for profile in parse_profiles(profiles(values), source="chart")} == load_presets()


def test_defaults_for_pods_reach_the_operator_unchanged(tmp_path: Path) -> None:
    written = {"spec": {"priorityClassName": "benchmarks"}}
    (found,) = (each for each in render({"podTemplate": written}) if each["metadata"]["name"].endswith("-profiles"))
    file = tmp_path / "pod-template.yaml"
    file.write_text(found["data"]["pod-template.yaml"])
    variables = environment()
    assert variables["ACCELBENCH_POD_TEMPLATE"].endswith("/pod-template.yaml")
    given = variables | {"ACCELBENCH_POD_TEMPLATE": str(file), "ACCELBENCH_PROFILES": ""}
    assert settings.read_settings(given).pod_template == written


def test_the_command_line_finds_the_profiles_by_their_labels() -> None:
    (found,) = (each for each in render({"className": "mine"}) if each["metadata"]["name"].endswith("-profiles"))
    assert {labels.PROFILES: "true", labels.CLASS: "mine"}.items() <= found["metadata"]["labels"].items()


def test_the_operator_restarts_when_its_profiles_change() -> None:
    def checksum(values: dict[str, Any]) -> str:
        annotations = only(render(values), "Deployment")["spec"]["template"]["metadata"]["annotations"]
        return str(annotations["checksum/profiles"])

    assert checksum({}) != checksum({"profiles": {"nvidia-h100": H100}})


def test_the_schema_of_a_profile_has_the_fields_that_the_operator_reads() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())["definitions"]["profile"]
    fields = Profile.model_json_schema(by_alias=True)["properties"]
    assert set(schema["properties"]) == set(fields) - {"name"} | {"preset"}
    assert schema["properties"]["preset"]["enum"] == list(load_presets())


def test_the_notes_name_every_preset() -> None:
    notes = (CHART / "templates" / "NOTES.txt").read_text()
    presets = " ".join(f'"{name}"' for name in ALWAYS_AVAILABLE)
    assert f"Profiles: {{{{ concat (list {presets}) " in notes


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
    ("values", "expected_text"),
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
        ({"networkPolicy": {"enable": True}}, "enable"),
        ({"networkPolicy": {"metricsFrom": [{"namespace": "monitoring"}]}}, "namespace"),
        ({"networkPolicy": {"apiServer": {"ports": ["https"]}}}, "ports"),
        ({"extraEnv": {"NAME": "value"}}, "extraEnv"),
        ({"global": {"imagePullSecrets": ["registry"]}}, "imagePullSecrets"),
        ({"crds": {"kept": True}}, "kept"),
        ({"podDisruptionBudget": {"minAvailable": "half"}}, "minAvailable"),
        ({"podLabels": {"team": "machine learning"}}, "team"),
        ({"tolerations": [{"key": "a", "effect": "Never"}]}, "effect"),
        ({"affinity": {"nodeaffinity": {}}}, "nodeaffinity"),
        ({"topologySpreadConstraints": [{"maxSkew": 1}]}, "topologyKey"),
        ({"extraVolumeMounts": [{"name": "a"}]}, "mountPath"),
        ({"rbac": {"enabled": False}}, "enabled"),
        ({"admissionPolicy": {"enable": True}}, "enable"),
        ({"namespaceLabels": {"team": "machine learning"}}, "team"),
        ({"metrics": {"podMonitor": {"interval": "often"}}}, "interval"),
        ({"metrics": {"service": {"ipFamilyPolicy": "Both"}}}, "ipFamilyPolicy"),
        ({"dashboards": {"grafanaOperator": {"instanceSelector": {"dashboards": "grafana"}}}}, "instanceSelector"),
    ],
)
def test_an_unknown_value_is_refused_by_name(values: dict[str, Any], expected_text: str) -> None:
    done = helm("template", "accelbench", CHART, values=values)
    assert done.returncode != 0
    assert expected_text in done.stderr


def test_the_schema_knows_every_value_and_no_other() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    values = yaml.safe_load((CHART / "values.yaml").read_text())

    def compare(schema: dict[str, Any], values: dict[str, Any], path: str) -> None:
        # What a parent chart says to all its charts is for others as well.
        assert path == "values.global" or schema["additionalProperties"] is False, path
        assert set(schema["properties"]) == set(values), path
        for name, value in values.items():
            # What is empty has fields that are Kubernetes' to name.
            if value and isinstance(value, dict) and "properties" in schema["properties"][name]:
                compare(schema["properties"][name], value, f"{path}.{name}")

    compare(schema, values, "values")
