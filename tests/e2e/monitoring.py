"""Prometheus and Alertmanager, configured from the chart's objects as by the Prometheus Operator."""

from __future__ import annotations

import contextlib
import json
import re
from typing import TYPE_CHECKING, Any

from alerting.alertmanager import running_alertmanager
from metrics.prometheus import running_prometheus

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from alerting.alertmanager import Notifications
    from cluster.cluster import Cluster
    from metrics.prometheus import Prometheus

__all__ = ["VALUES", "monitored"]

VALUES = {
    "serviceMonitor": {"enabled": True, "interval": "1s"},
    "prometheusRule": {"enabled": True, "alertLabels": {"team": "ml"}},
}
"""Of the chart's `metrics`."""
TARGET = {"namespace": "namespace", "service": "service_name", "pod": "pod_name", "container": "pod_container_name"}
"""A target's labels, by what Kubernetes calls them: the Prometheus Operator sets these and `endpoint`."""


@contextlib.contextmanager
def monitored(cluster: Cluster, directory: Path, replicas: int) -> Iterator[tuple[Prometheus, Notifications]]:
    """Both, as the ServiceMonitor and the PrometheusRules in the cluster's namespace have them."""
    (monitor,) = cluster.get("servicemonitors")["items"]
    (endpoint,) = monitor["spec"]["endpoints"]
    selected = ",".join(f"{name}={value}" for name, value in monitor["spec"]["selector"]["matchLabels"].items())
    (service,) = cluster.get("services", f"--selector={selected}")["items"]
    with running_alertmanager(directory / "alertmanager") as (address, notifications):
        more = {
            "rule_files": _rules(cluster, directory),
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": [address]}]}]},
        }
        with running_prometheus(
            directory / "prometheus",
            expected=replicas,
            job=service["metadata"]["name"],
            every=endpoint["interval"],
            scraped=_scraped(cluster, monitor["spec"], endpoint),
            more=more,
        ) as server:
            yield server, notifications


def _scraped(cluster: Cluster, spec: dict[str, Any], endpoint: dict[str, Any]) -> dict[str, Any]:
    """How the ServiceMonitor has the operator scraped, in Prometheus's own words."""
    found = {
        "role": "endpointslice",
        "kubeconfig_file": str(cluster.kubeconfig),
        "namespaces": {"names": spec["namespaceSelector"]["matchNames"]},
    }
    kept = {f"service_label_{name}": value for name, value in spec["selector"]["matchLabels"].items()}
    kept["endpointslice_port_name"] = endpoint["port"]
    return {
        "honor_labels": endpoint["honorLabels"],
        "scheme": endpoint.get("scheme", "http"),
        "metrics_path": endpoint.get("path", "/metrics"),
        "kubernetes_sd_configs": [found],
        "relabel_configs": [
            *({**_of(name), "regex": re.escape(value), "action": "keep"} for name, value in kept.items()),
            *({**_of(name), "target_label": label} for label, name in TARGET.items()),
            {"target_label": "endpoint", "replacement": endpoint["port"]},
        ],
    }


def _of(name: str) -> dict[str, list[str]]:
    return {"source_labels": [f"__meta_kubernetes_{re.sub('[^a-zA-Z0-9]', '_', name)}"]}


def _rules(cluster: Cluster, directory: Path) -> list[str]:
    """Files with the rules of every PrometheusRule, evaluated each second: a test does not wait for minutes."""
    files = []
    for each in cluster.get("prometheusrules")["items"]:
        groups = [{**group, "interval": "1s"} for group in each["spec"]["groups"]]
        path = directory / f"{each['metadata']['name']}.json"
        path.write_text(json.dumps({"groups": groups}))
        files.append(str(path))
    assert files
    return files
