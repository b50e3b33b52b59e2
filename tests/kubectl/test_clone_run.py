"""The fields of an old run that its clone keeps."""

from typing import Any

import pytest

from accelbench.kubectl.clone_run import clone_run
from accelbench.local.errors import InvalidSpecError


def old(**metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "accelbench.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {
            "name": "nightly-x7k2p",
            "namespace": "team",
            "uid": "u",
            "resourceVersion": "7",
            "generation": 2,
            "creationTimestamp": "2026-03-01T12:00:00Z",
            "managedFields": [{}],
            "ownerReferences": [{}],
            "finalizers": ["a/b"],
            **metadata,
        },
        "spec": {"workload": {"name": "matmul-chain"}, "runPolicy": {"cancel": True, "suspend": True}},
        "status": {"phase": "Cancelled"},
    }


def test_a_cloned_run_has_no_generated_field_of_the_old_one() -> None:
    run = old()
    made = clone_run(run)
    assert made["metadata"] == {"generateName": "nightly-x7k2p-", "namespace": "team"}
    assert made["spec"] == {"workload": {"name": "matmul-chain"}, "series": "nightly-x7k2p"}
    assert set(made) == {"apiVersion", "kind", "metadata", "spec"}
    assert run["spec"]["runPolicy"] == {"cancel": True, "suspend": True}


def test_a_refused_run_cannot_be_cloned() -> None:
    refused = {"status": "True", "reason": "InvalidSpec", "message": "nothing was measured"}
    why = {"type": "Succeeded", "status": "False", "reason": "InvalidSpec", "message": 'unknown profile "h10"'}
    run = old() | {"status": {"conditions": [{"type": "Finished", **refused}, why]}}
    with pytest.raises(InvalidSpecError, match="nightly-x7k2p"):
        clone_run(run)


def test_a_clone_gets_a_new_generated_name_or_the_given_one() -> None:
    assert clone_run(old(generateName="nightly-"))["metadata"]["generateName"] == "nightly-"
    assert clone_run(old(), "tuesday")["metadata"] == {"name": "tuesday", "namespace": "team"}


def test_labels_of_users_are_kept_and_those_of_tools_are_not() -> None:
    marks = {"team": "ml", "kueue.x-k8s.io/queue-name": "a", "kueue.x-k8s.io/managed": "true", "helm.sh/chart": "b"}
    annotations = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "why": "a regression"}
    made = clone_run(old(labels=marks, annotations=annotations))["metadata"]
    assert made["labels"] == {"team": "ml", "kueue.x-k8s.io/queue-name": "a"}
    assert made["annotations"] == {"why": "a regression"}
