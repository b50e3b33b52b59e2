"""accelbench as a platform team has it: the Dockerfile's images, the chart by helm, Prometheus, Alertmanager."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chart.helm import CHART, helm
from chart.schemas import schemas
from cluster.errors import DeadlineError
from cluster.wait import wait_until
from e2e.monitoring import VALUES
from image.load import values_for
from metrics.prometheus import running_prometheus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from alerting.alertmanager import Notifications
    from cluster.cluster import Cluster
    from metrics.prometheus import Prometheus

__all__ = ["REPLICAS", "Installed", "conditions", "install", "process_of", "scraping"]

RELEASE = "accelbench"
OPERATOR = f"app.kubernetes.io/instance={RELEASE},app.kubernetes.io/component=operator"
"""Its pods; the pod of `helm test` stays as well."""
REPLICAS = 2


@dataclass(frozen=True)
class Installed:
    """Hold a cluster with two replicas of the operator, the Prometheus that scrapes them, and its notifications."""

    cluster: Cluster
    """In the namespace of the runs."""
    system: Cluster
    """In that of the operator."""
    prometheus: Prometheus
    notifications: Notifications

    def apply(self, manifest: str) -> None:
        """`kubectl apply` a manifest's text."""
        self.cluster.kubectl("apply", "--filename=-", input=manifest)

    def run(self, name: str) -> dict[str, Any]:
        """The BenchmarkRun as it is now."""
        return self.cluster.get("benchmarkrun", name)

    def until(self, condition: Callable[[], object], name: str, *, what: str) -> None:
        """Wait for something of a run that goes on; AssertionError with how the run stands where it does not come."""
        with contextlib.suppress(DeadlineError):
            wait_until(lambda: condition() or self._has_finished(name), what=what, every_seconds=1)
        assert condition(), f"in vain for: {what}\n{self._told(name)}"

    def finished(self, name: str) -> dict[str, Any]:
        """The BenchmarkRun once it has finished; AssertionError with how it stands where it does not."""
        self.until(lambda: self._has_finished(name), name, what=f"{name} to finish")
        return self.run(name)

    def _has_finished(self, name: str) -> bool:
        return conditions(self.run(name)).get("Finished", {}).get("status") == "True"

    def _told(self, name: str) -> str:
        """All that the cluster has to say of a run."""
        pods = f"--selector=accelbench.dev/run={name}"
        asked = ("describe", "benchmarkrun", name), ("describe", "pods", pods), ("logs", pods, "--tail=40")
        answers = [self.cluster.kubectl(*each, check=False) for each in asked]
        return "\n".join([*(each.stdout + each.stderr for each in answers), _why(self.system)])

    def owned(self, kind: str, run: str) -> list[dict[str, Any]]:
        """The objects of a kind that belong to a run, by label."""
        return self.cluster.get(kind, f"--selector=accelbench.dev/run={run}")["items"]

    def kill_leader(self) -> None:
        """SIGKILL the leader, as the kernel would; returns once another process leads and both replicas run."""

        def leads() -> str:
            return holder if (holder := self._holder()).partition("_")[0] in self._containers() else ""

        killed = wait_until(leads, what="a replica to lead")
        os.kill(process_of(self._containers()[killed.partition("_")[0]]), signal.SIGKILL)
        wait_until(lambda: self._holder() not in {"", killed} and leads(), what="another to lead")
        wait_until(lambda: len(self._containers()) == REPLICAS, what="both replicas to run again")

    def _holder(self) -> str:
        """Who has the Lease: pod and process; a process that was killed has it for some seconds still."""
        return str(self.system.get("lease", RELEASE)["spec"].get("holderIdentity", ""))

    def upgrade(self) -> None:
        """`helm upgrade`, to pods with one more annotation: each replica is asked to end once a new one is ready."""
        changed = "--set-string=podAnnotations.upgraded=true"
        done = helm(
            "upgrade", RELEASE, CHART, *_place(self.system), "--reuse-values", changed, "--wait", "--timeout=900s"
        )
        assert done.returncode == 0, done.stderr + _why(self.system)
        wait_until(self._is_upgraded, what="the former replicas to end")

    def _is_upgraded(self) -> bool:
        pods = self.system.get("pods", f"--selector={OPERATOR}")["items"]
        return ["upgraded" in (pod["metadata"].get("annotations") or {}) for pod in pods] == [True] * REPLICAS

    def _containers(self) -> dict[str, str]:
        """Those that run, by the pod's name."""
        pods = self.system.get("pods", f"--selector={OPERATOR}")["items"]
        return {
            pod["metadata"]["name"]: status["containerID"]
            for pod in pods
            for status in pod["status"].get("containerStatuses", ())
            if status["state"].get("running")
        }


@contextlib.contextmanager
def install(cluster: Cluster, profiles: Mapping[str, Any]) -> Iterator[None]:
    """The chart beside the Prometheus Operator's definitions, with two replicas, for as long as the context lasts."""
    cluster.define(schemas().crds)
    values = values_for(cluster) | {"profiles": dict(profiles), "replicas": REPLICAS, "metrics": VALUES}
    place = _place(cluster)
    done = helm("install", "--take-ownership", RELEASE, CHART, *place, "--wait", "--timeout=900s", values=values)
    assert done.returncode == 0, done.stderr + _why(cluster)
    try:
        yield
    finally:
        helm("uninstall", RELEASE, *place, "--wait")


@contextlib.contextmanager
def scraping(cluster: Cluster, directory: Path, replicas: int) -> Iterator[Prometheus]:
    """A Prometheus that finds the operator's pods in the cluster's namespace, where no ServiceMonitor says how."""
    pods = {
        "role": "pod",
        "kubeconfig_file": str(cluster.kubeconfig),
        "namespaces": {"names": [cluster.namespace]},
        "selectors": [{"role": "pod", "label": OPERATOR}],
    }
    port = {"source_labels": ["__meta_kubernetes_pod_container_port_name"], "regex": "metrics", "action": "keep"}
    scraped = {"honor_labels": True, "kubernetes_sd_configs": [pods], "relabel_configs": [port]}
    with running_prometheus(directory, expected=replicas, scraped=scraped) as server:
        yield server


def _place(cluster: Cluster) -> tuple[str, ...]:
    return f"--kubeconfig={cluster.kubeconfig}", f"--namespace={cluster.namespace}"


def conditions(run: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """A run's conditions by type."""
    return {condition["type"]: condition for condition in run.get("status", {}).get("conditions", [])}


def process_of(container: str) -> int:
    """The container's first process on this machine: the one whose parent is not in the container."""
    identifier = container.rpartition("/")[2]
    assert identifier, "there is no running container"
    inside = [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdecimal() and identifier in _read(entry / "cgroup")
    ]
    assert inside, f"no process of container {identifier} is on this machine"
    return min(inside)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _why(cluster: Cluster) -> str:
    pods = cluster.get("pods")["items"]
    logs = cluster.kubectl("logs", f"--selector={OPERATOR}", "--tail=50", check=False)
    return json.dumps([pod["status"] for pod in pods], indent=1) + logs.stdout + logs.stderr
