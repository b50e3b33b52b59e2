"""Runs on a real node whose case cannot start: each reports the cluster's message, and ends with it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from taxonomy.runs import NAMESPACE, ended, manifest, prepare, wait_for_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from cluster.cluster import Cluster
    from e2e.installation import Installed

pytestmark = pytest.mark.nightly

LATE = {"startDeadlineSeconds": 75, "infrastructureRetries": 0}
NO_KEY = {"env": [{"name": "MINE", "valueFrom": {"configMapKeyRef": {"name": "slow", "key": "no-such-key"}}}]}
NOT_FOR_LONG = {"key": "x", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 5}


def quota(what: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few"},
        "spec": {"hard": {what: "0"}},
    }


PLACES: Mapping[str, tuple[dict[str, Any], ...]] = {
    NAMESPACE: (
        manifest("no-devices", accelerator={"profile": "nvidia"}, runPolicy=LATE),
        manifest("no-node", pod={"nodeSelector": {"model": "none"}}, runPolicy=LATE),
        manifest("no-priority", pod={"priorityClassName": "urgent"}, runPolicy=LATE),
        manifest("no-image", pod={"container": {"image": "registry.invalid/no/where:1"}}, runPolicy=LATE),
        manifest("no-key", pod={"container": NO_KEY}, runPolicy=LATE),
        manifest("no-pod", pod={"tolerations": [NOT_FOR_LONG]}, runPolicy=LATE),
        manifest("no-program", pod={"container": {"image": "localhost/pod:pause"}}, runPolicy=LATE),
    ),
    f"{NAMESPACE}-jobs": (quota("count/jobs.batch"), manifest("no-jobs", runPolicy=LATE)),
    f"{NAMESPACE}-pods": (quota("pods"), manifest("no-pods", runPolicy=LATE)),
    f"{NAMESPACE}-policy": (manifest("no-policy", runPolicy=LATE),),
}
NO_JOBS_ON_SUNDAYS = (
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "no-jobs"},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": f"{NAMESPACE}-policy"}},
                "resourceRules": [
                    {"apiGroups": ["batch"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["jobs"]}
                ],
            },
            "validations": [{"expression": "false", "message": "no Jobs on Sundays", "reason": "Forbidden"}],
        },
    },
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "no-jobs"},
        "spec": {"policyName": "no-jobs", "validationActions": ["Deny"]},
    },
)


@pytest.fixture(scope="module")
def places(installed: Installed) -> Iterator[dict[str, Cluster]]:
    """By the name of the run, where it is: all of them were applied at once."""
    found: dict[str, Cluster] = {}
    installed.cluster.apply(*NO_JOBS_ON_SUNDAYS)
    try:
        for namespace, objects in PLACES.items():
            place = dataclasses.replace(installed.cluster, namespace=namespace)
            prepare(place)
            place.apply(*objects)
            found |= {each["metadata"]["name"]: place for each in objects}
        yield found
    finally:
        installed.cluster.kubectl("delete", "validatingadmissionpolicybinding,validatingadmissionpolicy", "no-jobs")
        installed.cluster.kubectl("delete", "namespace", *PLACES, "--wait=false")


# What the cluster says, and what to do about it.
WAITING = {
    "not enough devices": ("no-devices", "Insufficient nvidia.com/gpu", "or install its device plugin"),
    "no matching node": ("no-node", "didn't match Pod's node affinity/selector", "spec.podTemplate does: check its"),
    "quota for Jobs": ("no-jobs", "exceeded quota: few, requested: count/jobs.batch=1", "have the quota raised"),
    "quota for pods": ("no-pods", "exceeded quota: few, requested: pods=1", "have the quota raised"),
    "no such priority": ("no-priority", "no PriorityClass with name urgent was found", "Create that PriorityClass"),
    "admission policy": ("no-policy", "denied request: no Jobs on Sundays", "Change what the policy names"),
    "image cannot be pulled": ("no-image", "registry.invalid/no/where:1", "spec.podTemplate.spec.imagePullSecrets"),
    "container has no configuration": ("no-key", "couldn't find key no-such-key in ConfigMap", "spec.podTemplate"),
}


@pytest.fixture(scope="module")
def waits(places: dict[str, Cluster]) -> dict[str, dict[str, Any]]:
    """By row, what its run says before its time is over, which comes for all of them at once."""
    return {row: wait_for_words(places[run], run, *words) for row, (run, *words) in WAITING.items()}


@pytest.mark.parametrize("row", WAITING)
def test_a_case_that_cannot_start_reports_the_clusters_message_and_ends_with_it(
    places: dict[str, Cluster], waits: dict[str, dict[str, Any]], record: Callable[..., None], row: str
) -> None:
    run, *words = WAITING[row]
    assert (waits[row]["status"], waits[row]["reason"]) == ("False", "Queued")
    record(row, waits[row], ended(places[run], run, "StartDeadlineExceeded", *words))


def test_a_pod_that_the_api_server_refuses_ends_the_case_at_once_with_its_message(
    places: dict[str, Cluster], record: Callable[..., None]
) -> None:
    words = ("JobRefused", "effect must be 'NoExecute' when `tolerationSeconds` is set", "Check spec.podTemplate")
    record("invalid pod", ended(places["no-pod"], "no-pod", "CaseFailed", *words))


def test_a_container_that_cannot_start_ends_the_case_with_the_runtimes_message(
    places: dict[str, Cluster], record: Callable[..., None]
) -> None:
    words = ("StartError", 'exec: "python": executable file not found', "Check the image")
    record("container cannot start", ended(places["no-program"], "no-program", "CaseFailed", *words))
