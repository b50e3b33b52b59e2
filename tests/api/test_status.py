import json
from typing import Any

from accelbench.api.run import Attempt, BenchmarkRun, BenchmarkRunStatus, CaseCounts, ComparisonStatus, Condition
from api.manifests import GOOD, changed
from cluster.cluster import Cluster

NOW = "2026-11-21T09:00:00Z"
STATUS = BenchmarkRunStatus(
    observed_generation=1,
    conditions=tuple(
        Condition(
            type=kind,
            status="True",
            reason="Succeeded",
            message="all well",
            last_transition_time=NOW,
            observed_generation=1,
        )
        for kind in ("Accepted", "Finished", "Succeeded")
    ),
    phase="Succeeded",
    cases=CaseCounts(total=2, measured=2),
    headline="jax/jit faster 2.04x (2.01 to 2.07)",
    start_time=NOW,
    completion_time=NOW,
    attempts=(Attempt(case="all", number=1, job="matmul-chain-all-0123456789", start_time=NOW, finished=True),),
    comparisons=(
        ComparisonStatus(case="all", variant="jax/jit", verdict="faster", speedup="2.04x", rounds=8, result="r"),
    ),
)


def patch_status(cluster: Cluster, status: dict[str, Any], **also: Any) -> str:
    patch = json.dumps({"status": status, **also})
    arguments = ("patch", "bmr", "matmul-chain", "--subresource=status", "--type=merge", f"--patch={patch}")
    return cluster.kubectl(*arguments, check=False).stderr


def test_a_status_in_a_manifest_is_ignored_and_no_generation_counts_as_observed(server: Cluster) -> None:
    server.apply(changed({"status": {"phase": "Succeeded", "observedGeneration": 1}}))
    assert server.get("bmr", "matmul-chain")["status"] == {"observedGeneration": 0}


def test_the_status_comes_back_as_it_was_reported(server: Cluster) -> None:
    server.apply(GOOD)
    patch_status(server, json.loads(STATUS.to_json()))
    stored = server.get("bmr", "matmul-chain")
    assert BenchmarkRun.model_validate(stored).status == STATUS
    assert stored["metadata"]["generation"] == 1


def test_the_status_subresource_leaves_the_spec_alone(server: Cluster) -> None:
    server.apply(GOOD)
    patch_status(server, {"phase": "Running"}, spec={"runPolicy": {"suspend": True}})
    stored = server.get("bmr", "matmul-chain")
    assert stored["status"]["phase"] == "Running"
    assert stored["spec"]["runPolicy"]["suspend"] is False


def test_a_change_of_the_spec_leaves_the_status_alone(server: Cluster) -> None:
    server.apply(GOOD)
    patch_status(server, {"phase": "Running"})
    server.apply(changed({"spec.runPolicy.suspend": True, "status": {"phase": "Finished"}}))
    stored = server.get("bmr", "matmul-chain")
    assert stored["status"]["phase"] == "Running"
    assert stored["metadata"]["generation"] == 2


def test_a_condition_type_occurs_once(server: Cluster) -> None:
    server.apply(GOOD)
    twice = json.loads(STATUS.to_json())["conditions"][:1] * 2
    assert 'status.conditions[1]: Duplicate value: {"type":"Accepted"}' in patch_status(server, {"conditions": twice})


def test_an_invalid_time_is_refused(server: Cluster) -> None:
    server.apply(GOOD)
    assert "status.startTime: Invalid value" in patch_status(server, {"startTime": "this morning"})


def test_kubectl_get_shows_the_progress_of_a_run(server: Cluster) -> None:
    server.apply(GOOD)
    patch_status(server, json.loads(STATUS.to_json()))
    header, row = server.kubectl("get", "bmr").stdout.splitlines()
    assert header.split() == ["NAME", "WORKLOAD", "STATUS", "DONE", "CASES", "RESULT", "AGE"]
    expected = "matmul-chain matmul-chain Succeeded 2 2 jax/jit faster 2.04x (2.01 to 2.07)"
    assert " ".join(row.split()).startswith(expected)


def test_kubectl_get_shows_a_run_without_a_status(server: Cluster) -> None:
    server.apply(GOOD)
    _, row = server.kubectl("get", "bmr").stdout.splitlines()
    assert row.split()[:2] == ["matmul-chain", "matmul-chain"]


def test_kubectl_waits_for_a_condition(server: Cluster) -> None:
    server.apply(GOOD)
    patch_status(server, json.loads(STATUS.to_json()))
    waited = server.kubectl("wait", "--for=condition=Finished", "bmr/matmul-chain", "--timeout=900s")
    assert waited.stdout == "benchmarkrun.accelbench.dev/matmul-chain condition met\n"
