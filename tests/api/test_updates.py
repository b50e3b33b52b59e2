"""The fields of an applied run that may change: a run is one experiment."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from api.manifests import ABSENT, GOOD, changed, runner
from api.refusals import from_kubectl
from api.requests import Runs, runs_of
from cluster.cluster import Cluster

ONE_EXPERIMENT = "Forbidden: cannot be changed: a run is one experiment; apply it under another name"
IN_FLIGHT = "Forbidden: cannot be changed: all cases of a run share it; apply the run under another name"
FULL = changed(
    {
        "metadata.name": "updates",
        "spec.series": "nightly",
        "spec.baseline": "pytorch/eager",
        "spec.workload.parameters": {"length": 1},
        "spec.variants[1].options": {"mode": "a"},
        "spec.sweep": [{"name": "size", "values": [1, 2]}],
        "spec.expectations": [{"metric": "speedup", "variant": "jax/jit", "atLeast": "1"}],
        "spec.podTemplate": runner(env=[{"name": "A", "value": "1"}], resources={"limits": {"cpu": 1}}),
        "spec.runPolicy.activeDeadlineSeconds": 600,
    }
)

ALLOWED: dict[str, dict[str, Any]] = {
    "nothing": {},
    "suspend": {"spec.runPolicy.suspend": True},
    "cancel": {"spec.runPolicy.cancel": True},
    "a first start deadline": {"spec.runPolicy.startDeadlineSeconds": 60},
    "a longer deadline": {"spec.runPolicy.activeDeadlineSeconds": 1200},
    "no deadline any more": {"spec.runPolicy.activeDeadlineSeconds": ABSENT},
    "a time to live": {"spec.runPolicy.ttlSecondsAfterFinished": 0},
    "labels": {"metadata.labels": {"team": "vision"}},
    "a default written out": {"spec.measurement": {"seed": 0, "rounds": {"min": 5}}},
}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "another series": ({"spec.series": "weekly"}, f"spec.series: {ONE_EXPERIMENT}"),
    "no series any more": ({"spec.series": ABSENT}, f"spec.series: {ONE_EXPERIMENT}"),
    "another workload": ({"spec.workload.name": "xor"}, f"spec.workload: {ONE_EXPERIMENT}"),
    "another parameter": ({"spec.workload.parameters.length": 2}, f"spec.workload: {ONE_EXPERIMENT}"),
    "the same parameter in another type": (
        {"spec.workload.parameters.length": "1"},
        f"spec.workload: {ONE_EXPERIMENT}",
    ),
    "one more variant": (
        {"spec.variants": [*FULL["spec"]["variants"], {"use": "a"}]},
        f"spec.variants: {ONE_EXPERIMENT}",
    ),
    "variants in another order": (
        {"spec.variants": FULL["spec"]["variants"][::-1]},
        f"spec.variants: {ONE_EXPERIMENT}",
    ),
    "another option": ({"spec.variants[1].options.mode": "b"}, f"spec.variants: {ONE_EXPERIMENT}"),
    "another baseline": ({"spec.baseline": ABSENT}, f"spec.baseline: {ONE_EXPERIMENT}"),
    "one more value": ({"spec.sweep[0].values": [1, 2, 3]}, f"spec.sweep: {ONE_EXPERIMENT}"),
    "no sweep": ({"spec.sweep": ABSENT}, f"spec.sweep: {ONE_EXPERIMENT}"),
    "more rounds": ({"spec.measurement": {"rounds": {"max": 30}}}, f"spec.measurement: {ONE_EXPERIMENT}"),
    "another profile": ({"spec.accelerator": {"profile": "gpu"}}, f"spec.accelerator: {ONE_EXPERIMENT}"),
    "another variable": (
        {"spec.podTemplate.spec.containers[0].env[0].value": "2"},
        f"spec.podTemplate: {ONE_EXPERIMENT}",
    ),
    "another amount": (
        {"spec.podTemplate.spec.containers[0].resources.limits.cpu": 2},
        f"spec.podTemplate: {ONE_EXPERIMENT}",
    ),
    "another expectation": ({"spec.expectations[0].atLeast": "2"}, f"spec.expectations: {ONE_EXPERIMENT}"),
    "more retries": ({"spec.runPolicy.infrastructureRetries": 2}, f"spec.runPolicy.infrastructureRetries: {IN_FLIGHT}"),
    "more spot capacity": ({"spec.runPolicy.disruptionRetries": 2}, f"spec.runPolicy.disruptionRetries: {IN_FLIGHT}"),
}


@pytest.fixture(scope="module")
def runs(crds: Cluster) -> Iterator[Runs]:
    crds.apply(FULL)
    with runs_of(crds) as found:
        yield found
    crds.kubectl("delete", "bmr", "updates")


@pytest.mark.parametrize("changes", ALLOWED.values(), ids=ALLOWED)
def test_how_a_run_is_executed_may_change(runs: Runs, changes: dict[str, Any]) -> None:
    assert runs.refusals_to_update(changed(changes, FULL)) == set()


@pytest.mark.parametrize(("changes", "refusal"), REFUSED.values(), ids=REFUSED)
def test_what_a_run_measures_may_not_change(runs: Runs, changes: dict[str, Any], refusal: str) -> None:
    assert runs.refusals_to_update(changed(changes, FULL)) == {refusal}


def test_a_series_cannot_be_added_later(server: Cluster) -> None:
    server.apply(GOOD)
    later = changed({"spec.series": "nightly"})
    done = server.kubectl("apply", "--filename=-", input=json.dumps(later), check=False)
    assert from_kubectl(done.stderr) == {f"spec.series: {ONE_EXPERIMENT}"}


def test_a_run_that_was_refused_before_it_started_may_be_corrected(server: Cluster) -> None:
    server.apply(FULL)
    write_status(server, {"phase": "InvalidSpec"})
    server.apply(changed({"spec.variants": GOOD["spec"]["variants"], "spec.series": "weekly"}, FULL))
    write_status(server, {"phase": "InvalidSpec", "measuredCases": ["size-1"]})
    done = server.kubectl("apply", "--filename=-", input=json.dumps(FULL), check=False)
    assert f"spec.series: {ONE_EXPERIMENT}" in from_kubectl(done.stderr)


def write_status(server: Cluster, status: dict[str, Any]) -> None:
    """Write the status, as the operator does."""
    patch = json.dumps({"status": status})
    server.kubectl("patch", "bmr", FULL["metadata"]["name"], "--subresource=status", "--type=merge", f"--patch={patch}")


def test_a_cancelled_run_stays_cancelled(server: Cluster) -> None:
    server.apply(changed({"spec.runPolicy.cancel": True}))
    server.apply(changed({"spec.runPolicy": {"cancel": True, "suspend": True}}))
    done = server.kubectl(
        "apply", "--filename=-", input=json.dumps(changed({"spec.runPolicy.cancel": False})), check=False
    )
    assert from_kubectl(done.stderr) == {
        "spec.runPolicy.cancel: Forbidden: a cancelled run stays cancelled; apply it under another name to run it again"
    }
