"""accelbench as a user has it: images from the Dockerfile, the chart by helm, Prometheus scraping the operator."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chart.helm import CHART, helm
from cluster.wait import wait_until
from image.load import values_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from cluster.cluster import Cluster
    from metrics.prometheus import Prometheus

__all__ = ["Installed", "conditions", "install", "process_of"]

RELEASE = "accelbench"
OPERATOR = f"--selector=app.kubernetes.io/instance={RELEASE},app.kubernetes.io/component=operator"
"""Its pods; the pod of `helm test` stays as well."""


@dataclass(frozen=True)
class Installed:
    """A cluster that runs the operator, and the Prometheus that scrapes it."""

    cluster: Cluster
    """In the namespace of the runs."""
    system: Cluster
    """In that of the operator."""
    prometheus: Prometheus

    def apply(self, manifest: str) -> None:
        """`kubectl apply` a manifest's text."""
        self.cluster.kubectl("apply", "--filename=-", input=manifest)

    def run(self, name: str) -> dict[str, Any]:
        """The BenchmarkRun as it is now."""
        return self.cluster.get("benchmarkrun", name)

    def finished(self, name: str, *, seconds: float) -> dict[str, Any]:
        """The BenchmarkRun once `kubectl wait` has seen it finish."""
        wait_until(
            lambda: conditions(self.run(name)).get("Finished", {}).get("status") == "True",
            what=f"{name} to finish",
            seconds=seconds,
            every_seconds=1,
        )
        return self.run(name)

    def owned(self, kind: str, run: str) -> list[dict[str, Any]]:
        """The objects of a kind that belong to a run, by label."""
        return self.cluster.get(kind, f"--selector=accelbench.dev/run={run}")["items"]

    def kill_operator(self) -> None:
        """SIGKILL the operator's process, as the kernel would; the kubelet starts its container again."""
        before = self._container()
        process = process_of(before)
        os.kill(process, signal.SIGKILL)
        wait_until(lambda: self._container() not in {"", before}, what="the operator to be started again", seconds=120)

    def upgrade(self) -> None:
        """`helm upgrade`, to pods with one more annotation: one operator is asked to end, another begins."""
        changed = "--set-string=podAnnotations.upgraded=true"
        done = helm(
            "upgrade", RELEASE, CHART, *_place(self.system), "--reuse-values", changed, "--wait", "--timeout=300s"
        )
        assert done.returncode == 0, done.stderr + _why(self.system)
        # On the node's network the chart lets the only pod go first, and helm then waits for none.
        wait_until(lambda: self._is_upgraded() and self._container(), what="the upgraded operator", seconds=120)

    def _is_upgraded(self) -> bool:
        pods = self.system.get("pods", OPERATOR)["items"]
        return ["upgraded" in (pod["metadata"].get("annotations") or {}) for pod in pods] == [True]

    def _container(self) -> str:
        (pod,) = self.system.get("pods", OPERATOR)["items"]
        (status,) = pod["status"].get("containerStatuses") or [{}]
        return str(status.get("containerID", "")) if status.get("state", {}).get("running") else ""


@contextlib.contextmanager
def install(cluster: Cluster, profiles: Mapping[str, Any]) -> Iterator[str]:
    """The chart in the cluster's namespace for as long as the context lasts; gives the metrics' address."""
    values = values_for(cluster) | {"profiles": dict(profiles)}
    place = _place(cluster)
    done = helm("install", "--take-ownership", RELEASE, CHART, *place, "--wait", "--timeout=600s", values=values)
    assert done.returncode == 0, done.stderr + _why(cluster)
    try:
        yield f"127.0.0.1:{values['metrics']['port']}"
    finally:
        helm("uninstall", RELEASE, *place, "--wait")


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
    logs = cluster.kubectl("logs", OPERATOR, "--tail=50", check=False)
    return json.dumps([pod["status"] for pod in pods], indent=1) + logs.stdout + logs.stderr
