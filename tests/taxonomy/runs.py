"""Runs that fail, and their conditions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cluster.wait import wait_until
from e2e.installation import conditions

if TYPE_CHECKING:
    from cluster.cluster import Cluster

PROFILES = {name: {"platform": "cpu", "resource": f"example.com/{name}", "memory": "1Gi"} for name in ("slot", "rare")}
"""By two devices that the test node offers: runs in trouble share the first, and dispute the second."""
OFFERED = {"example.com/slot": 100, "example.com/rare": 1}
NAMESPACE = "accelbench-taxonomy"
SCRIPT = """
def arrays(rng):
    return {"x": rng.standard_normal(8)}


def pytorch(x):
    import time
    time.sleep(1)
    return x + 1
"""
"""A workload that takes its time and no processor."""


def manifest(name: str, *, pod: dict[str, Any] | None = None, limits: dict[str, str] | None = None, **spec: Any) -> Any:
    """A run of one slow variant; `pod` is of its pods' spec, `limits` are its container's, beside a small share."""
    container: dict[str, Any] = {"name": "runner", "resources": {"limits": {"cpu": "150m"} | (limits or {})}}
    given = dict(pod or {})
    container |= given.pop("container", {})
    return {
        "apiVersion": "accelbench.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": name},
        "spec": {
            "workload": {"script": {"configMapKeyRef": {"name": "slow", "key": "slow.py"}}},
            "variants": [{"use": "pytorch/eager"}],
            "measurement": {"rounds": {"min": 50, "max": 50}, "timeLimitSeconds": 3600},
            "accelerator": {"profile": "slot"},
            "podTemplate": {"spec": {"containers": [container], **given}},
        }
        | spec,
    }


def prepare(cluster: Cluster) -> None:
    """Make the cluster's namespace, with the slow script, and return once it takes pods."""
    cluster.kubectl("create", "namespace", cluster.namespace)
    there = ("get", "serviceaccount", "default")
    wait_until(lambda: cluster.kubectl(*there, check=False).returncode == 0, what="the service account")
    script = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "slow"}, "data": {"slow.py": SCRIPT}}
    cluster.apply(script)


def condition(cluster: Cluster, run: str, kind: str = "Finished") -> dict[str, Any]:
    """Return a present condition of the run."""
    nothing = {"type": kind, "status": "", "reason": "", "message": ""}
    return conditions(cluster.get("bmr", run)).get(kind, nothing)


def wait_for_words(cluster: Cluster, run: str, *words: str) -> dict[str, Any]:
    """Return `Finished` when its message has all these words while the run continues."""
    found: dict[str, Any] = {}

    def says() -> bool:
        found.update(condition(cluster, run))
        return all(word in found["message"] for word in words)

    try:
        wait_until(says, what=f"{run} to say {words}")
    except Exception as error:
        raise AssertionError(f"{run} says {found}, {cluster.get('bmr', run).get('status')}") from error
    return found


def ended(cluster: Cluster, run: str, reason: str | tuple[str, ...], *words: str) -> dict[str, Any]:
    """Return `Succeeded` when the run has finished with one of these reasons and all these words."""

    def finished() -> bool:
        return condition(cluster, run)["status"] == "True"

    try:
        wait_until(finished, what=f"{run} to finish")
    except Exception as error:
        raise AssertionError(f"{run} has not finished: {cluster.get('bmr', run).get('status')}") from error
    cluster.kubectl("wait", "--for=condition=Finished", "--timeout=900s", f"bmr/{run}")
    found = condition(cluster, run, "Succeeded")
    reasons = (reason,) if isinstance(reason, str) else reason
    assert (found["status"], found["reason"] in reasons) == ("False", True), found
    for word in words:
        assert word in found["message"], found
    return found
