"""The leader is killed by SIGKILL and both replicas are upgraded: the outcome is the same, without duplicates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from cluster.wait import HANG_SECONDS, wait_until
from e2e.installation import conditions

if TYPE_CHECKING:
    from e2e.installation import Installed


def two_small_cases(name: str) -> str:
    """A run of two short cases."""
    spec = {
        "workload": {"name": "matmul-chain", "parameters": {"length": 4}},
        "variants": [{"use": "numpy/eager"}, {"name": "again", "use": "numpy/eager"}],
        "sweep": [{"name": "size", "values": [64, 96]}],
        "measurement": {"rounds": {"min": 3, "max": 3}, "timeLimitSeconds": HANG_SECONDS, "acceptNoise": True},
    }
    manifest = {
        "apiVersion": "accelbench.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": name},
        "spec": spec,
    }
    return yaml.safe_dump(manifest)


def pod_phases(installed: Installed, run: str) -> set[str]:
    return {pod["status"].get("phase", "") for pod in installed.owned("pods", run)}


def test_a_killed_and_upgraded_operator_ends_with_the_same_results(installed: Installed) -> None:
    name = "killed"
    installed.apply(two_small_cases(name))
    seen: dict[str, str] = {}

    def look() -> dict[str, Any]:
        """Remember every Job that there ever was, by its name."""
        for job in installed.owned("jobs", name):
            seen[job["metadata"]["name"]] = job["metadata"]["labels"]["accelbench.dev/case"]
        return seen

    wait_until(look, what="the first Job", every_seconds=0.05)
    installed.kill_leader()
    wait_until(lambda: look() and "Running" in pod_phases(installed, name), what="the first pod to run")
    installed.kill_leader()
    installed.upgrade()
    wait_until(
        # A case that has ended goes from a pod that succeeded to a stored result, sooner than one may look.
        lambda: look() and ("Succeeded" in pod_phases(installed, name) or installed.owned("benchmarkresults", name)),
        what="the first case to end",
        every_seconds=0.2,
    )
    installed.kill_leader()
    wait_until(lambda: len(look()) == 2, what="the second Job")
    installed.kill_leader()
    run = installed.finished(name)
    look()

    reasons = {kind: condition["reason"] for kind, condition in conditions(run).items()}
    # Where others use the machine, rounds are noisy.
    assert reasons["Succeeded"] in {"Succeeded", "Noisy"}, (conditions(run), installed.owned("benchmarkresults", name))
    assert (reasons["Accepted"], reasons["Finished"]) == ("Accepted", reasons["Succeeded"])
    assert sorted(seen.values()) == sorted(run["status"]["measuredCases"])
    results = installed.owned("benchmarkresults", name)
    assert [result["result"]["case"]["origin"]["attempt"] for result in results] == [1, 1]
    assert sorted(result["result"]["case"]["swept"]["size"] for result in results) == [64, 96]
