"""Kueue's own controller beside a control plane, with its webhooks, on this machine instead of in a pod."""

from __future__ import annotations

import base64
import json
import urllib.request
from typing import TYPE_CHECKING, Any

import yaml

from cluster.certificates import Authority
from cluster.ports import free_port

if TYPE_CHECKING:
    from pathlib import Path

    from cluster.cluster import Cluster
    from cluster.processes import Processes
    from kueue.build import Kueue

__all__ = ["start_kueue"]

HOST = "127.0.0.1"
INTEGRATION = "batch/job"


def start_kueue(kueue: Kueue, cluster: Cluster, processes: Processes, directory: Path) -> None:
    """Install Kueue as its release does, and return once it takes part in the creation of Jobs."""
    cluster.define(kueue.crds)
    authority = Authority(directory)
    pair = authority.server("tls", (HOST,))  # tls.crt and tls.key, as it looks for them
    webhooks, health = free_port(), free_port()
    configuration = directory / "kueue.json"
    configuration.write_text(json.dumps(_configuration(pair.certificate.parent, webhooks, health)))
    processes.start("kueue", [kueue.program, f"--config={configuration}"], {"KUBECONFIG": str(cluster.kubeconfig)})
    processes.wait_for("kueue", lambda: _answers(health), what="Kueue to be ready")
    cluster.apply(*_webhooks(kueue, webhooks, authority.certificate))

    def is_asked() -> bool:
        # The webhook for Jobs is the last that it serves.
        job = ("create", "job", "probe", "--image=none", "--dry-run=server")
        return cluster.kubectl(*job, check=False).returncode == 0

    processes.wait_for("kueue", is_asked, what="Kueue's webhooks to answer")


def _configuration(certificates: Path, webhooks: int, health: int) -> dict[str, Any]:
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta1",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": f"{HOST}:{health}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"host": HOST, "port": webhooks, "certDir": str(certificates)},
        "leaderElection": {"leaderElect": False},
        # It would sign for the name of a Service.
        "internalCertManagement": {"enable": False},
        "integrations": {"frameworks": [INTEGRATION]},
        "clientConnection": {"qps": 1000, "burst": 2000},
        # An API server of its own on a port that cannot be chosen.
        "featureGates": {"VisibilityOnDemand": False},
    }


def _webhooks(kueue: Kueue, port: int, authority: Path) -> list[dict[str, Any]]:
    """The module's own, less those for kinds that this Kueue does not manage, at an address instead of a Service."""
    bundle = base64.b64encode(authority.read_bytes()).decode()
    configurations = list(yaml.safe_load_all(kueue.webhooks.read_text()))
    for each in configurations:
        each["metadata"]["name"] = f"kueue-{each['metadata']['name']}"
        each["webhooks"] = [webhook for webhook in each["webhooks"] if _is_served(webhook)]
        for webhook in each["webhooks"]:
            path = webhook["clientConfig"]["service"]["path"]
            webhook["clientConfig"] = {"url": f"https://{HOST}:{port}{path}", "caBundle": bundle}
    return configurations


def _is_served(webhook: dict[str, Any]) -> bool:
    [rule] = webhook["rules"]
    [group] = rule["apiGroups"]
    return group == "kueue.x-k8s.io" or (group, rule["resources"]) == ("batch", ["jobs"])


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://{HOST}:{port}/readyz", timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False
